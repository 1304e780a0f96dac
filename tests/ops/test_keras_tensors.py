"""Tests of operations on the symbolic tensors of a functional Keras model, whose `==` compares identities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Tensor, ops

X = np.array([[-2.0, -1.0, -0.5, 0.0], [0.0, 0.5, 1.0, np.inf]], np.float32)
Y = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.5, 3.0, 2.0]], np.float32)


@pytest.mark.parametrize(
    "operation",
    [
        ops.digamma, ops.lgamma, ops.isposinf, ops.isneginf, ops.flatten, lambda x: ops.reshape(x, (None, 2, 2)),
        ops.leaky_relu, ops.selu, lambda x: ops.flatten(ops.reshape(x, (-1, 2, 2))),
    ],
)
def test_an_operation_in_a_model_has_the_values_it_has_on_tensors(operation: Callable[[Any], Any]) -> None:
    inputs = keras.Input((4,))
    model = keras.Model(inputs, operation(inputs))
    np.testing.assert_allclose(model.predict(X, verbose=0), operation(Tensor(X)).asnumpy(), rtol=1e-6)


@pytest.mark.parametrize("operation", [ops.xlogy, ops.heaviside, ops.MulNoNan()])
def test_an_operation_of_two_tensors_does_too(operation: Callable[[Any, Any], Any]) -> None:
    inputs = [keras.Input((4,)), keras.Input((4,))]
    model = keras.Model(inputs, operation(*inputs))
    np.testing.assert_allclose(model.predict([X, Y], verbose=0), operation(Tensor(X), Tensor(Y)).asnumpy(), rtol=1e-6)
