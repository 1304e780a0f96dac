"""Statistics that pass over NaN are NumPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import ops
from tests.backends import quick_every

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
