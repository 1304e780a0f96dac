"""Special functions that Keras, or some of its versions, lack."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def igamma(a: Any, x: Any) -> Any:
    """Return the regularized lower incomplete gamma function."""
    return tf.math.igamma(a, x)


def igammac(a: Any, x: Any) -> Any:
    """Return the regularized upper incomplete gamma function."""
    return tf.math.igammac(a, x)


def zeta(x: Any, q: Any) -> Any:
    """Return the Hurwitz zeta function."""
    return tf.math.zeta(x, q)


def polygamma(n: Any, x: Any) -> Any:
    """Return the derivative of order `n` of the digamma function at `x`."""
    return tf.math.polygamma(n, x)


def betainc(a: Any, b: Any, x: Any) -> Any:
    """Return the regularized incomplete beta function."""
    return tf.math.betainc(a, b, x)


def nextafter(x: Any, y: Any) -> Any:
    """Return the next representable number after `x` towards `y`."""
    return tf.math.nextafter(x, y)


def float32_bits(x: Any) -> Any:
    """Return the bits of float32 values as int32."""
    return tf.bitcast(x, "int32")
