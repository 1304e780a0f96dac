"""Determinants whose logarithm is finite although they are not."""

from __future__ import annotations

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import ops


@pytest.mark.parametrize("scale", [10.0, 0.1])
def test_a_log_determinant_does_not_overflow(scale: float) -> None:
    x = ms.Tensor(scale * np.eye(60, dtype=np.float32))
    sign, logarithm = ops.slogdet(x)
    assert float(sign) == 1
    assert float(logarithm) == pytest.approx(60 * np.log(scale), rel=1e-5)
    assert float(ops.logdet(x)) == pytest.approx(60 * np.log(scale), rel=1e-5)


def test_log_determinants_of_negative_and_singular_matrices() -> None:
    x = ms.Tensor(np.stack([np.diag([-1.0, 2.0]), np.zeros((2, 2))]).astype(np.float32))
    sign, logarithm = ops.slogdet(x)
    np.testing.assert_allclose(sign.asnumpy(), [-1, 0])
    np.testing.assert_allclose(logarithm.asnumpy(), [np.log(2), -np.inf], rtol=1e-6)
    np.testing.assert_allclose(ops.logdet(x).asnumpy(), [np.nan, -np.inf])
