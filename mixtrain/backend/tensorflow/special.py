"""Special functions that Keras, or some of its versions, lack."""

from __future__ import annotations

import tensorflow as tf

from mixtrain.typing import Tensor


def igamma(a: Tensor, x: Tensor) -> Tensor:
    """Return the regularized lower incomplete gamma function."""
    return tf.math.igamma(a, x)


def igammac(a: Tensor, x: Tensor) -> Tensor:
    """Return the regularized upper incomplete gamma function."""
    return tf.math.igammac(a, x)


def zeta(x: Tensor, q: Tensor) -> Tensor:
    """Return the Hurwitz zeta function."""
    return tf.math.zeta(x, q)


def polygamma(n: Tensor, x: Tensor) -> Tensor:
    """Return the derivative of order `n` of the digamma function at `x`."""
    return tf.math.polygamma(n, x)


def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    """Return the regularized incomplete beta function."""
    return tf.math.betainc(a, b, x)


def nextafter(x: Tensor, y: Tensor) -> Tensor:
    """Return the next representable number after `x` towards `y`."""
    return tf.math.nextafter(x, y)


def float32_bits(x: Tensor) -> Tensor:
    """Return the bits of float32 values as int32."""
    return tf.bitcast(x, "int32")
