"""Bessel functions by quadrature and asymptotic series, and the gamma and zeta families."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.ops.elementwise import binary_function, unary_function
from mixtrain.ops.inputs import as_floats
from mixtrain.ops.primitive import primitives
from mixtrain.typing import Tensor, TensorLike

# Below: quadrature or power series; from there on the asymptotic series, whose error is then below float32's.
_FAR: Final = 8.0
_TERMS: Final = 12
_ANGLES: Final = (np.arange(64) + 0.5) * (math.pi / 128)
# K's integrand falls double exponentially, so that steps of 1/8 are exact; at 18 it is 0 for any x above 1e-6.
_ARCS: Final = np.arange(145) / 8


def _coefficients(order: int) -> list[float]:
    """Return the coefficients of Hankel's asymptotic expansion."""
    coefficients = [1.0]
    for k in range(1, _TERMS):
        coefficients.append(coefficients[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return coefficients


def _series(x: Tensor, order: int, signs: Callable[[int], int], terms: range) -> Tensor:
    """Return the sum of ``signs(k) * coefficient / x ** k`` over the terms k."""
    coefficients = _coefficients(order)
    total = keras.ops.zeros_like(x)
    for k in terms:
        total = total + signs(k) * coefficients[k] / x**k
    return total


def _wide(compute: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return `compute` in the widest float dtype of the backend."""
    return lambda x: keras.ops.cast(compute(keras.ops.cast(x, backend.canonical_dtype("float64"))), x.dtype)


def _near_or_far(x: Tensor, near: Callable[[Tensor], Tensor], far: Callable[[Tensor], Tensor]) -> Tensor:
    inside = x < _FAR
    return keras.ops.where(inside, near(keras.ops.where(inside, x, 1.0)), far(keras.ops.where(inside, _FAR, x)))


def _over(angles: np.ndarray, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return `x` with an axis for the quadrature nodes, and the nodes in its dtype."""
    return keras.ops.expand_dims(x, -1), keras.ops.convert_to_tensor(angles, dtype=x.dtype)


def _modified_first(order: int, scaled: bool) -> Callable[[Tensor], Tensor]:
    def near(x: Tensor) -> Tensor:
        wide, nodes = _over(np.cos(_ANGLES), x)
        grown, decayed = keras.ops.exp(wide * (nodes - 1)), keras.ops.exp(-wide * (nodes + 1))
        return keras.ops.mean((grown - decayed) * nodes if order else grown + decayed, axis=-1) / 2

    def far(x: Tensor) -> Tensor:
        return _series(x, order, lambda k: (-1) ** k, range(_TERMS)) / keras.ops.sqrt(2 * math.pi * x)

    def compute(x: Tensor) -> Tensor:
        size = keras.ops.abs(x)
        value = _near_or_far(size, near, far)
        value = value if scaled else value * keras.ops.exp(size)
        return value * keras.ops.sign(x) if order else value

    return _wide(compute)


def _first(order: int) -> Callable[[Tensor], Tensor]:
    def near(x: Tensor) -> Tensor:
        wide, nodes = _over(np.cos(_ANGLES), x)
        return keras.ops.mean(keras.ops.sin(wide * nodes) * nodes if order else keras.ops.cos(wide * nodes), axis=-1)

    def compute(x: Tensor) -> Tensor:
        size = keras.ops.abs(x)
        value = _near_or_far(size, near, lambda y: _waves(y, order)[0])
        return value * keras.ops.sign(x) if order else value

    return _wide(compute)


def _waves(x: Tensor, order: int) -> tuple[Tensor, Tensor]:
    """Return J and Y of a large argument."""
    even = _series(x, order, lambda k: (-1) ** (k // 2), range(0, _TERMS, 2))
    odd = _series(x, order, lambda k: (-1) ** (k // 2), range(1, _TERMS, 2))
    angle, size = x - (order / 2 + 0.25) * math.pi, keras.ops.sqrt(2 / (math.pi * x))
    cosine, sine = keras.ops.cos(angle), keras.ops.sin(angle)
    return size * (even * cosine - odd * sine), size * (even * sine + odd * cosine)


def _second(order: int) -> Callable[[Tensor], Tensor]:
    def near(x: Tensor) -> Tensor:
        # The power series: 2/pi (log(x/2) + Euler's constant) J plus harmonic numbers.
        quarter, total, term, harmonic = -x * x / 4, keras.ops.zeros_like(x), keras.ops.ones_like(x), 0.0
        for k in range(40):
            weight = harmonic if order == 0 else 2 * harmonic + 1 / (k + 1)
            total = total + weight * term
            term, harmonic = term * quarter / ((k + 1) * (k + 1 + order)), harmonic + 1 / (k + 1)
        logarithm = keras.ops.log(x / 2) + np.euler_gamma
        if order == 0:
            return 2 / math.pi * (logarithm * _first(0)(x) - total)
        return 2 / math.pi * (logarithm * _first(1)(x) - 1 / x - x * total / 4)

    return _wide(lambda x: _near_or_far(x, near, lambda y: _waves(y, order)[1]))


def _modified_second(order: int, scaled: bool) -> Callable[[Tensor], Tensor]:
    def near(x: Tensor) -> Tensor:
        wide, nodes = _over(np.cosh(_ARCS), x)
        # Beyond 1e4 the integrand is 0, and the exponent would leave float32's range.
        exponent = keras.ops.maximum(-wide * (nodes - 1), -1e4)
        weights = keras.ops.convert_to_tensor(np.where(_ARCS == 0, 0.5, 1) * np.cosh(order * _ARCS) / 8, dtype=x.dtype)
        return keras.ops.sum(keras.ops.exp(exponent) * weights, axis=-1)

    def far(x: Tensor) -> Tensor:
        return _series(x, order, lambda k: 1, range(_TERMS)) * keras.ops.sqrt(math.pi / (2 * x))

    def compute(x: Tensor) -> Tensor:
        value = _near_or_far(x, near, far)
        return value if scaled else value * keras.ops.exp(-x)

    return _wide(compute)


def _bessel(name: str, compute: Callable[[Tensor], Tensor], doc: str) -> Callable[..., Tensor]:
    return unary_function(f"bessel_{name}", compute, f"{doc} of `x`.", parameter="x")


_FIRST, _SECOND = "The Bessel function of the first kind and order", "The Bessel function of the second kind and order"
_MOD_FIRST, _MOD_SECOND = _FIRST.replace("Bessel", "modified Bessel"), _SECOND.replace("Bessel", "modified Bessel")

bessel_j0: Final = _bessel("j0", _first(0), f"{_FIRST} 0")
bessel_j1: Final = _bessel("j1", _first(1), f"{_FIRST} 1")
bessel_y0: Final = _bessel("y0", _second(0), f"{_SECOND} 0")
bessel_y1: Final = _bessel("y1", _second(1), f"{_SECOND} 1")
i0 = unary_function("i0", _modified_first(0, False), f"{_MOD_FIRST} 0 of `input`.")
bessel_i0: Final = _bessel("i0", _modified_first(0, False), f"{_MOD_FIRST} 0")
bessel_i1: Final = _bessel("i1", _modified_first(1, False), f"{_MOD_FIRST} 1")
bessel_i0e: Final = _bessel("i0e", _modified_first(0, True), f"{_MOD_FIRST} 0, times exp(-|x|),")
bessel_i1e: Final = _bessel("i1e", _modified_first(1, True), f"{_MOD_FIRST} 1, times exp(-|x|),")
bessel_k0: Final = _bessel("k0", _modified_second(0, False), f"{_MOD_SECOND} 0")
bessel_k1: Final = _bessel("k1", _modified_second(1, False), f"{_MOD_SECOND} 1")
bessel_k0e: Final = _bessel("k0e", _modified_second(0, True), f"{_MOD_SECOND} 0, times exp(x),")
bessel_k1e: Final = _bessel("k1e", _modified_second(1, True), f"{_MOD_SECOND} 1, times exp(x),")


def _broadcasting(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return `compute` with its arguments broadcast to one shape; halves, which have no kernels, in float32."""

    def call(*values: Tensor) -> Tensor:
        dtype = values[0].dtype
        wide = keras.backend.result_type(dtype, "float32")
        return keras.ops.cast(compute(*_broadcast(tuple(keras.ops.cast(value, wide) for value in values))), dtype)

    return call


def _broadcast(values: tuple[Tensor, ...]) -> list[Tensor]:
    shape = np.broadcast_shapes(*(tuple(value.shape) for value in values))
    return [keras.ops.broadcast_to(value, shape) for value in values]


igamma = binary_function(
    "igamma", _broadcasting(backend.special.igamma),
    "The regularized lower incomplete gamma function of `input` at `other`.", floats=True, tensors=True,
)
igammac = binary_function(
    "igammac", _broadcasting(backend.special.igammac),
    "The regularized upper incomplete gamma function of `input` at `other`.", floats=True, tensors=True,
)
zeta = binary_function(
    "zeta", _broadcasting(backend.special.zeta), "The Hurwitz zeta function of `input` from `other` on.", floats=True,
    tensors=True,
)


def polygamma(n: TensorLike, input: TensorLike) -> Tensor:
    """The derivative of order `n` of `digamma` at `input`."""
    x = as_floats("ops.polygamma", input)
    return backend.special.polygamma(*_broadcast((keras.ops.cast(as_floats("ops.polygamma", n), x.dtype), x)))


def betainc(a: TensorLike, b: TensorLike, x: TensorLike) -> Tensor:
    """The regularized incomplete beta function of `a` and `b` at `x`."""
    values = tuple(as_floats("ops.Betainc", value) for value in (a, b, x))
    return backend.special.betainc(*_broadcast(values))


(
    BesselJ0, BesselJ1, BesselY0, BesselY1, BesselI0, BesselI1, BesselI0e, BesselI1e, BesselK0, BesselK1, BesselK0e,
    BesselK1e, Igamma, Igammac, Zeta, Polygamma, Betainc,
) = primitives(
    BesselJ0=bessel_j0, BesselJ1=bessel_j1, BesselY0=bessel_y0, BesselY1=bessel_y1, BesselI0=bessel_i0,
    BesselI1=bessel_i1, BesselI0e=bessel_i0e, BesselI1e=bessel_i1e, BesselK0=bessel_k0, BesselK1=bessel_k1,
    BesselK0e=bessel_k0e, BesselK1e=bessel_k1e, Igamma=igamma, Igammac=igammac, Zeta=zeta, Polygamma=polygamma,
    Betainc=betainc,
)
