"""What TensorFlow alone can do is refused elsewhere in one sentence that says what to write."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.errors import UnsupportedBackendError

pytestmark = pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="it can be done there")


@pytest.mark.parametrize(
    ("write", "kind"), [(backend.write_saved_model, "SAVED_MODEL"), (backend.write_onnx, "ONNX")]
)
def test_exports_are_refused(write, kind) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UnsupportedBackendError, match=f'writes file_format="{kind}"; .* Write save_checkpoint'):
        write(lambda x: x, [backend.to_tensor(np.zeros(2, np.float32))], "anywhere")
