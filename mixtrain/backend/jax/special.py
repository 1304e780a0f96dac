"""Special functions, bits and random numbers that Keras, or some of its versions, lack."""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp

from mixtrain.typing import Tensor

igamma = jax.scipy.special.gammainc
igammac = jax.scipy.special.gammaincc
zeta = jax.scipy.special.zeta
polygamma = jax.lax.polygamma
betainc = jax.scipy.special.betainc
nextafter = jax.numpy.nextafter
dct = functools.partial(jax.scipy.fft.dct, norm="ortho")
idct = functools.partial(jax.scipy.fft.idct, norm="ortho")


def lu(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return jax.lax.linalg.lu(x)


def float32_bits(x: Tensor) -> Tensor:
    return jax.lax.bitcast_convert_type(x, "int32")


def bitcast(x: Tensor, dtype: str) -> Tensor:
    return jax.lax.bitcast_convert_type(x, dtype)


def random_bits(shape: tuple[int, ...], seed: Tensor, index: int) -> Tensor:
    """XLA fuses it into what uses the numbers, so that no memory holds them; JAX's own would not be."""
    first = _mixed(seed[0] + jnp.uint32(index * 0x9E3779B9 % 2**32))
    second = _mixed(first ^ seed[1])
    numbers = jax.lax.iota("uint32", math.prod(shape)).reshape(shape)
    return _mixed(_mixed(numbers + first) ^ second)


def _mixed(x: Tensor) -> Tensor:
    """Mix the bits of uint32 numbers, one to one. Source: Wellons, "Hash function prospector", lowbias32, 2018."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def poisson(seed: Tensor, rate: Tensor, shape: tuple[int, ...]) -> Tensor:
    return jax.random.poisson(seed, rate, shape).astype(jax.numpy.float32)
