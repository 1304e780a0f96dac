"""Special functions that Keras, or some of its versions, lack."""

from __future__ import annotations

import jax

from mixtrain.typing import Tensor


def igamma(a: Tensor, x: Tensor) -> Tensor:
    return jax.scipy.special.gammainc(a, x)


def igammac(a: Tensor, x: Tensor) -> Tensor:
    return jax.scipy.special.gammaincc(a, x)


def zeta(x: Tensor, q: Tensor) -> Tensor:
    return jax.scipy.special.zeta(x, q)


def polygamma(n: Tensor, x: Tensor) -> Tensor:
    return jax.lax.polygamma(n, x)


def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    return jax.scipy.special.betainc(a, b, x)


def nextafter(x: Tensor, y: Tensor) -> Tensor:
    return jax.numpy.nextafter(x, y)


def float32_bits(x: Tensor) -> Tensor:
    return jax.lax.bitcast_convert_type(x, "int32")
