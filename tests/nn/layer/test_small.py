"""Cells of one operation give MindSpore 2.10's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, nn

X = Tensor(np.arange(6, dtype=np.float32).reshape(1, 2, 3))


def test_one_operation_each() -> None:
    np.testing.assert_allclose(nn.ReduceLogSumExp(2)(X).asnumpy(), [[2.407605, 5.4076056]], rtol=1e-6)
    shuffled = nn.ChannelShuffle(2)(Tensor(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1)))
    assert shuffled.asnumpy().ravel().tolist() == [0, 2, 1, 3]
    assert nn.Unflatten(2, (3, 1))(X).shape == (1, 2, 3, 1)
    assert float(nn.L1Regularizer(0.5)(X)) == 7.5
    np.testing.assert_allclose(nn.LGamma()(Tensor([0.5, 5.0])).asnumpy(), [0.5723649, 3.178054], rtol=1e-5)
    np.testing.assert_allclose(nn.DiGamma()(Tensor([0.5, 5.0])).asnumpy(), [-1.9635100, 1.5061177], rtol=1e-5)


@pytest.mark.parametrize("axis", [None, 0, (1, 2)])
def test_moments_are_the_mean_and_the_variance(axis: Any) -> None:
    values = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)
    for keep_dims in (None, True):
        mean, variance = nn.Moments(axis, keep_dims)(Tensor(values.astype(np.float16)))
        assert mean.dtype == variance.dtype == mixtrain.float16
        mean, variance = nn.Moments(axis, keep_dims)(Tensor(values))
        np.testing.assert_allclose(mean.asnumpy(), values.mean(axis, keepdims=bool(keep_dims)), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(variance.asnumpy(), values.var(axis, keepdims=bool(keep_dims)), rtol=1e-5, atol=1e-6)
