"""Statistics that pass over NaN are NumPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import Tensor, ops
from tests.backends import ON_TENSORFLOW, quick_every

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((3, 4, 5)).astype(np.float32)
X[0, 1] = X[1, 2, 3] = np.nan


@quick_every(3)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("q", [0.3, [0.0, 0.25, 1.0]])
def test_quantiles_and_means_pass_over_nan(q: Any, axis: int | None, keepdims: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # A row of NaN alone has the mean NaN, in NumPy with a warning.
        expected = (np.nanquantile(X, np.float32(q), axis=axis, keepdims=keepdims),
                    np.nanmean(X, axis=axis, keepdims=keepdims), np.nansum(X, axis=axis, keepdims=keepdims))
    result = (ops.nanquantile(ms.Tensor(X), q, axis, keepdims), ops.nanmean(ms.Tensor(X), axis, keepdims),
              ops.nansum(ms.Tensor(X), axis, keepdims))
    for one, other in zip(result, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-5, atol=1e-6)


def test_the_norm_of_several_axes_is_that_of_one_vector() -> None:
    x = Tensor((np.arange(12) - 6).reshape(3, 4), ms.float32)
    for order, expected in ((0, 11.0), (1, 36.0), (2, 12.083046), (4.5, 7.2243643), (float("inf"), 6.0)):
        assert float(ops.vector_norm(x, order, (0, 1))) == pytest.approx(expected, rel=1e-5)
    assert ops.vector_norm(x, 2, (0, 1), True).shape == (1, 1) and ops.vector_norm(x, 2, 1, True).shape == (3, 1)


def test_cumulative_products_and_methods_of_small_integers_are_widened() -> None:
    if ON_TENSORFLOW:  # JAX has no int64.
        assert ops.cumprod(Tensor([100000, 100000], ms.int32), 0).asnumpy().tolist() == [100000, 10000000000]
    assert Tensor([200, 100], ms.uint8).cumsum(0).asnumpy().tolist() == [200, 300]
    assert ms.numpy.cumsum(Tensor([200, 100], ms.uint8)).asnumpy().tolist() == [200, 300]
    gradient = ms.grad(lambda a: ms.numpy.average(a))(Tensor([1.0, 2.0, 4.0]))
    assert gradient.asnumpy().tolist() == pytest.approx([1 / 3] * 3)
