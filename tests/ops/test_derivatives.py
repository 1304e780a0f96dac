"""`jet` and `derivative`: the numbers and structures of MindSpore 2.10 for several inputs and several outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, nn, ops

X, Y = Tensor([1.0, 3.0]), Tensor([2.0, 1.0])
ONES, UNIT = Tensor([[1.0, 1.0]] * 3), Tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])


class _Product(nn.Cell):
    def construct(self, x: Any, y: Any) -> Any:
        return ops.sin(x) * y


def _two(x: Any, y: Any) -> Any:
    return x * y, x + y


def _numbers(value: Any) -> Any:
    return [_numbers(item) for item in value] if isinstance(value, (tuple, list)) else value.asnumpy()


# Recorded with mindspore 2.10.0 in PyNative mode.
@pytest.mark.parametrize(
    ("compute", "value", "derivatives"),
    [
        (lambda: ops.jet(ops.sin, X, ONES), [0.84147, 0.14112],
         [[0.5403, -0.98999], [-0.30117, -1.13111], [-2.52441, -0.42336]]),
        (lambda: ops.jet(_Product(), (X, Y), (ONES, ONES)), [1.68294, 0.14112],
         [[1.92208, -0.84887], [1.31974, -2.96998], [-3.48995, -6.64555]]),
        (lambda: ops.jet(lambda x, y: x * y, (X, Y), (ONES, UNIT)), [2.0, 3.0], [[3.0, 4.0], [4.0, 3.0], [5.0, 4.0]]),
        (lambda: ops.jet(ops.sin, X, Tensor([1.0, 1.0])), [0.84147, 0.14112], [[0.5403, -0.98999]]),
        (lambda: ops.jet(_two, (X, Y), (ONES[:2], ONES[:2])), [[2.0, 3.0], [3.0, 4.0]],
         [[[3.0, 4.0], [5.0, 6.0]], [[2.0, 2.0], [2.0, 2.0]]]),
        (lambda: ops.derivative(ops.sin, X, 3), [0.84147, 0.14112], [-0.5403, 0.98999]),
        (lambda: ops.derivative(ops.sin, (X,), 3), [0.84147, 0.14112], [-0.5403, 0.98999]),
        (lambda: ops.derivative(_Product(), (X, Y), 3), [1.68294, 0.14112], [-3.60502, 0.56663]),
        (lambda: ops.derivative(_two, (X, Y), 1), [[2.0, 3.0], [3.0, 4.0]], [[3.0, 4.0], [2.0, 2.0]]),
        (lambda: ops.derivative(ops.sin, Tensor([1, 2]), 1), [0.84147, 0.9093], [0.5403, -0.41615]),
    ],
)
def test_values_and_derivatives_are_mindspore_s(compute: Any, value: Any, derivatives: Any) -> None:
    for found, expected in zip(compute(), (value, derivatives), strict=True):
        assert isinstance(found, list if np.ndim(value) > 1 else Tensor)
        np.testing.assert_allclose(_numbers(found), expected, rtol=2e-5, atol=2e-5)


def test_half_inputs_and_a_missing_series_are_refused() -> None:
    with pytest.raises(TypeError, match="float32 or float64"):
        ops.jet(ops.sin, X.astype(mixtrain.float16), ONES)
    with pytest.raises(ValueError, match="series must have 2 tensors"):
        ops.jet(_two, (X, Y), ONES)
