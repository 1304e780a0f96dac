"""Gather operations that Keras does not have."""

from __future__ import annotations

import tensorflow as tf

from mixtrain.typing import Tensor


def gather_in_batches(x: Tensor, indices: Tensor, *, axis: int, batch_axes: int) -> Tensor:
    return tf.gather(x, indices, axis=axis, batch_dims=batch_axes)


def gather_nd(x: Tensor, indices: Tensor) -> Tensor:
    return tf.gather_nd(x, indices)


def boolean_mask(x: Tensor, mask: Tensor) -> Tensor:
    return tf.boolean_mask(x, mask)


def unique_with_indices(x: Tensor) -> tuple[Tensor, Tensor]:
    values, indices = tf.unique(tf.reshape(x, (-1,)))
    return values, tf.reshape(indices, tf.shape(x))
