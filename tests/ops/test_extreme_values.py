"""Operations on numbers at the ends of a dtype's range, on NaN and at poles."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, nn, ops


def half(values: object) -> Tensor:
    return Tensor(np.array(values, np.float16))


def single(values: object) -> Tensor:
    return Tensor(np.array(values, np.float32))


# The squares, or a partial product, are beyond float16 (65504), and the results are not.
IN_HALF = {
    "norm": (lambda: ops.norm(half([300, 400])), 500),
    "norm of order 3": (lambda: ops.norm(half([300, 400]), 3), 449.75),
    "vector_norm": (lambda: ops.vector_norm(half([300, 400])), 500),
    "matrix_norm": (lambda: ops.matrix_norm(half([[300, 400], [0, 0]])), 500),
    "nn.Norm": (lambda: nn.Norm()(half([300, 400])), 500),
    "dist": (lambda: ops.dist(half([300, 400]), half([0, 0])), 500),
    "std": (lambda: ops.std(half([300, -300])), 300),
    "Tensor.std": (lambda: half([300, -300]).std(), 300),
    "Tensor.norm": (lambda: half([300, 400]).norm(), 500),
    "std_mean": (lambda: ops.std_mean(half([300, -300]))[0], 300),
    "prod": (lambda: ops.prod(half([300, 300, 0.001])), 90.06),
    "renorm": (lambda: ops.renorm(half([[300, 400]]), 2, 0, 5.0), [[3, 4]]),
    "lrn": (lambda: ops.lrn(half([[[[300]], [[400]]]])), [[[[0.6]], [[0.8]]]]),
    "lp_pool1d": (lambda: ops.lp_pool1d(half([[[300, 400]]]), 2.0, 2), [[[500]]]),
    "avg_pool2d": (lambda: ops.avg_pool2d(half(np.full((1, 1, 4, 4), 60000)), 4, 4), [[[[60000]]]]),
}


@pytest.mark.parametrize("name", IN_HALF)
def test_half_sums_are_computed_in_float32(name: str) -> None:
    compute, expected = IN_HALF[name]
    result = compute()
    assert result.dtype == mixtrain.float16
    np.testing.assert_array_equal(result.asnumpy(), np.array(expected, np.float16))


IN_SINGLE: dict[str, tuple[Callable[[], Tensor], list[float]]] = {
    "hypot": (
        lambda: ops.hypot(single([3e30, 0, 1e-30, math.inf]), single([4e30, 0, 0, 1])), [5e30, 0, 1e-30, math.inf],
    ),
    "angle": (lambda: ops.angle(single([math.nan, -1, 1])), [math.nan, math.pi, 0]),
    "lgamma": (lambda: ops.lgamma(single([0, -1, -2, -0.5])), [math.inf, math.inf, math.inf, 1.2655121]),
    "digamma": (lambda: ops.digamma(single([0, -1, -2, -0.5])), [-math.inf, math.nan, math.nan, 0.03648998]),
}


@pytest.mark.parametrize("name", IN_SINGLE)
def test_large_numbers_nan_and_poles(name: str) -> None:
    compute, expected = IN_SINGLE[name]
    np.testing.assert_allclose(compute().asnumpy(), np.array(expected, np.float32), rtol=2e-6)


def test_the_gradient_of_hypot_is_finite_where_squares_overflow() -> None:
    gradients = ops.grad(ops.hypot, (0, 1))(single([3e30]), single([4e30]))
    np.testing.assert_allclose([gradient.asnumpy()[0] for gradient in gradients], [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("compute", [ops.max, ops.min, ops.median])
def test_the_value_and_the_index_are_those_of_the_first_nan(compute: Callable[..., tuple], keepdims: bool) -> None:
    x = single([[1, math.nan, 3, math.nan], [1, 2, 2, 0]])
    values, indices = compute(x, 1, keepdims)
    assert np.isnan(values.asnumpy().ravel()[0]) and indices.asnumpy().ravel()[0] == 1
    assert values.asnumpy().ravel()[1] == {"max": 2, "min": 0, "median": 1}[compute.__name__]
    assert values.shape == indices.shape == ((2, 1) if keepdims else (2,))
