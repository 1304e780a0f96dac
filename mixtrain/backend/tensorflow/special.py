"""Special functions that Keras, or some of its versions, lack."""

from __future__ import annotations

import tensorflow as tf

from mixtrain.typing import Tensor


def igamma(a: Tensor, x: Tensor) -> Tensor:
    return tf.math.igamma(a, x)


def igammac(a: Tensor, x: Tensor) -> Tensor:
    return tf.math.igammac(a, x)


def zeta(x: Tensor, q: Tensor) -> Tensor:
    return tf.math.zeta(x, q)


def polygamma(n: Tensor, x: Tensor) -> Tensor:
    return tf.math.polygamma(n, x)


def betainc(a: Tensor, b: Tensor, x: Tensor) -> Tensor:
    return tf.math.betainc(a, b, x)


def nextafter(x: Tensor, y: Tensor) -> Tensor:
    return tf.math.nextafter(x, y)


def float32_bits(x: Tensor) -> Tensor:
    return tf.bitcast(x, "int32")
