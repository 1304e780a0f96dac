"""What TensorFlow alone can do is refused elsewhere in one sentence that says what to write."""

from __future__ import annotations

import keras
import pytest

from mixtrain import data_backend
from mixtrain.errors import UnsupportedBackendError

pytestmark = pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="it can be done there")


def test_records_are_refused() -> None:
    message = "TFRecordDataset: expected TensorFlow, .*; got the Keras backend jax. Set KERAS_BACKEND=tensorflow, or"
    with pytest.raises(UnsupportedBackendError, match=message):
        data_backend.first_example("file.tfrecord", "")
    with pytest.raises(UnsupportedBackendError, match=message):
        data_backend.Examples([], "", 1).read(["file.tfrecord"], count=1)
