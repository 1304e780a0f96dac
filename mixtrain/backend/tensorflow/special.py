"""Special functions, bits and random numbers that Keras, or some of its versions, lack."""

from __future__ import annotations

import functools

import tensorflow as tf

from mixtrain.typing import Tensor

igamma = tf.math.igamma
igammac = tf.math.igammac
zeta = tf.math.zeta
polygamma = tf.math.polygamma
betainc = tf.math.betainc
nextafter = tf.math.nextafter
dct = functools.partial(tf.signal.dct, norm="ortho")
idct = functools.partial(tf.signal.idct, norm="ortho")


def lu(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    packed, rows = tf.linalg.lu(x)
    places = tf.range(x.shape[-1])
    order, pivots = tf.broadcast_to(places, tf.shape(rows)), []
    for index in range(x.shape[-1]):  # The exchanges that lead to the order, which TensorFlow does not return.
        row, own = rows[..., index : index + 1], order[..., index : index + 1]
        pivot = tf.argmax(tf.cast(order == row, tf.int32), axis=-1, output_type=tf.int32)[..., None]
        order = tf.where(places == index, row, tf.where(places == pivot, own, order))
        pivots.append(pivot)
    return packed, tf.concat(pivots, axis=-1), rows


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
