"""Special functions, bits and random numbers that Keras, or some of its versions, lack."""

from __future__ import annotations

import tensorflow as tf

from mixtrain.typing import Tensor

igamma = tf.math.igamma
igammac = tf.math.igammac
zeta = tf.math.zeta
polygamma = tf.math.polygamma
betainc = tf.math.betainc
nextafter = tf.math.nextafter


def float32_bits(x: Tensor) -> Tensor:
    return tf.bitcast(x, "int32")


def bitcast(x: Tensor, dtype: str) -> Tensor:
    return tf.bitcast(x, dtype)


def random_bits(shape: tuple[int, ...], seed: Tensor, index: int) -> Tensor:
    # The state has two int64 numbers, the first below 2**31.
    key = tf.stack([seed[0] + (index << 32), seed[1]])
    return tf.random.stateless_uniform(shape, key, None, None, tf.uint32, alg="philox")


def poisson(seed: Tensor, rate: Tensor, shape: tuple[int, ...]) -> Tensor:
    return tf.random.stateless_poisson(shape, seed, rate, dtype=tf.float32)
