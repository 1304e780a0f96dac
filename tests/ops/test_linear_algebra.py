"""Linear algebra on inputs that the reference cases do not have: extreme determinants, shapes of all kinds."""

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


def test_kron_inner_and_cdist_take_shapes_that_do_not_broadcast() -> None:
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(ops.kron(ms.Tensor(x), ms.Tensor(y)).asnumpy(), np.kron(x, y))
    np.testing.assert_array_equal(ops.kron(ms.Tensor(x), ms.Tensor(y[0, :2])).asnumpy(), np.kron(x, y[0, :2]))
    np.testing.assert_array_equal(ops.inner(ms.Tensor(x), ms.Tensor(y)).asnumpy(), np.inner(x, y))
    distances = np.linalg.norm(x[:, None] - y[None], axis=-1)
    np.testing.assert_allclose(ops.cdist(ms.Tensor(x), ms.Tensor(y)).asnumpy(), distances, rtol=1e-6)


def test_cross_needs_an_axis_of_length_3() -> None:
    with pytest.raises(ValueError, match=r"ops.cross: input must have an axis of length 3; got \(2, 4\)"):
        ops.cross(ops.ones((2, 4)), ops.ones((2, 4)))


def test_distances_and_similarities_of_halves_do_not_overflow() -> None:
    x, y = ms.Tensor([[300.0, 0.0]], ms.float16), ms.Tensor([[300.0, 400.0]], ms.float16)
    result = [ops.cosine_similarity(x, y), ops.cdist(x, y), ops.LpNorm(1)(y), ops.pdist(ops.cat((y, 0 * y)))]
    assert [value.dtype for value in result] == [ms.float16] * 4
    np.testing.assert_allclose([value.asnumpy().item() for value in result], [0.6, 400, 500, 500], rtol=1e-3)
    assert ops.cosine_similarity(0 * x, y).asnumpy().tolist() == [0.0]
