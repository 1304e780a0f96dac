"""Flatten joins axes in channels-first order."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain import backend
from mixtrain.common.tensor import Tensor
from mixtrain.nn.layer import Flatten

X = np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [((), (2, 60)), ((0,), (120,)), ((1, 2), (2, 12, 5)), ((-2, -1), (2, 3, 20)), ((2, 2), (2, 3, 4, 5))],
)
def test_numbers_stay_in_order(arguments: tuple[int, ...], shape: tuple[int, ...]) -> None:
    assert (backend.to_numpy(Flatten(*arguments)(Tensor(X))) == X.reshape(shape)).all()


@pytest.mark.slow
@pytest.mark.tensorflow
def test_batch_size_may_be_unknown_while_compiling() -> None:
    import tensorflow as tf

    run = tf.function(Flatten(), input_signature=[tf.TensorSpec((None, 3, 4, 5))])
    assert tuple(run.get_concrete_function().output_shapes) == (None, 60)
    assert (run(X).numpy() == X.reshape(2, 60)).all()


def test_axes_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="Flatten: expected start_dim to be an axis of the input; got 1 with input"):
        Flatten()(Tensor([1.0]))
    with pytest.raises(ValueError, match="start_dim must not come after end_dim"):
        Flatten(2, 1)(Tensor(X))
    with pytest.raises(TypeError, match="start_dim must be an int"):
        Flatten(True)
