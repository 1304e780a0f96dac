"""Cells of one operation give MindSpore 2.10's numbers."""

from __future__ import annotations

import numpy as np

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
