"""Bijectors of this package and of users, and the distributions that they transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.nn.probability.bijector as msb
import mixtrain.nn.probability.distribution as msd
from mixtrain import Parameter, Tensor


class Cubed(msb.Bijector):
    """A bijector of a user, as MindSpore's are written."""

    def __init__(self, scale: Any) -> None:
        param = dict(locals())
        param["param_dict"] = {"scale": scale}
        super().__init__(name="Cubed", dtype=mixtrain.float32, param=param)
        self._scale = self._add_parameter(scale, "scale")

    def _forward(self, x: Any) -> Any:
        x = self._check_value_dtype(x)
        return self.cast_param_by_value(x, self._scale) * x**3

    def _inverse(self, y: Any) -> Any:
        return (y / self._scale) ** (1 / 3)

    def _inverse_log_jacobian(self, y: Any) -> Any:
        return -mixtrain.ops.log(3 * self._scale * self._inverse(y) ** 2)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_users_bijector_transforms_a_distribution(compiled: bool) -> None:
    cubed = Cubed(np.float32([2.0, 4.0]))
    transformed = cubed(msd.Normal(1.0, 0.5, seed=3))
    y = Tensor([2.5, 3.0])
    log_prob = mixtrain.jit(transformed.log_prob) if compiled else transformed.log_prob
    x = (np.array([2.5, 3.0]) / [2.0, 4.0]) ** (1 / 3)
    expected = -0.5 * ((x - 1) / 0.5) ** 2 - np.log(0.5 * np.sqrt(2 * np.pi)) - np.log(3 * np.array([2.0, 4.0]) * x**2)
    np.testing.assert_allclose(log_prob(y).asnumpy(), expected, rtol=1e-5)
    assert tuple(transformed.sample((3, 2)).shape) == (3, 2)
    assert (transformed.broadcast_shape, transformed.batch_shape, cubed.shape_mapping((3, 1))) == ((2,), (), (3, 2))
    with pytest.raises(AttributeError):
        cubed.forward_log_jacobian(y)


@pytest.mark.parametrize("name", ["Exp", "PowerTransform", "ScalarAffine", "Softplus", "GumbelCDF"])
def test_inverses_and_jacobians_agree(name: str) -> None:
    one = getattr(msb, name)()
    x = Tensor([0.3, 0.8])
    y = one.forward(x)
    np.testing.assert_allclose(one("inverse", y).asnumpy(), x.asnumpy(), rtol=1e-5)
    slope = mixtrain.grad(lambda x: one.forward(x).sum())(x).asnumpy()
    np.testing.assert_allclose(np.exp(one.forward_log_jacobian(x).asnumpy()) * np.ones(2), slope, rtol=1e-5)
    total = one.forward_log_jacobian(x).asnumpy() + one.inverse_log_jacobian(y).asnumpy()
    np.testing.assert_allclose(total, np.zeros_like(total), atol=1e-5)


def test_attributes_are_those_of_mindspore() -> None:
    affine = msb.ScalarAffine(np.float32([1.0, 2.0]), np.float32(0.5))
    assert (affine.batch_shape, affine.is_scalar_batch, affine.is_constant_jacobian) == ((2,), False, True)
    assert (affine.name, affine.dtype, repr(affine)) == ("ScalarAffine", None, "ScalarAffine(batch_shape = (2,))")
    inverse = msb.Invert(affine)
    assert (inverse.name, inverse.batch_shape, inverse.bijector is affine) == ("InvertScalarAffine", (2,), True)
    assert not list(msb.ScalarAffine(Parameter(Tensor([2.0]), name="a"), Tensor([1.0])).get_parameters())


ERRORS: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "int": (lambda: msb.PowerTransform(2), TypeError),
    "none": (lambda: msb.Softplus(None), TypeError),
    "negative": (lambda: msb.PowerTransform(-1.0), ValueError),
    "zero": (lambda: msb.GumbelCDF(0.0, 0.0), ValueError),
    "dtypes": (lambda: msb.ScalarAffine(np.float16(1), np.float32(1)), TypeError),
    "ints": (lambda: msb.Exp().forward(Tensor([1])), TypeError),
    "number": (lambda: msb.Exp().forward(1.0), TypeError),
    "half": (lambda: Cubed(1.0).forward(Tensor([1.0], mixtrain.float16)), TypeError),
    "function": (lambda: msb.Exp()("backward", Tensor([1.0])), ValueError),
    "no bijector": (lambda: msb.Invert(1), TypeError),
    "no name": (lambda: msb.Bijector(), TypeError),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_mindspores_types_and_say_what_to_write(name: str) -> None:
    call, kind = ERRORS[name]
    with pytest.raises(kind, match="Write "):
        call()
