"""Random numbers that Keras lacks."""

from __future__ import annotations

import tensorflow as tf

from mixtrain.typing import Tensor


def poisson(seed: Tensor, rate: Tensor, shape: tuple[int, ...]) -> Tensor:
    return tf.random.stateless_poisson(shape, seed, rate, dtype=tf.float32)
