"""Batch normalization by the rows of all devices of a `keras.distribution`, as Keras computes it there."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import tree_of
from mixtrain.typing import Layer, Tensor

# Keras has no public way to replace the statistics of a batch; tests/distribution/test_joint_statistics.py fails if the
# name moves.
_MOMENTS: Final = "_moments"


def with_joint_statistics(loss_of: Callable[..., Any], layers: Sequence[Layer]) -> Callable[..., Any]:
    """Return a function in which Keras's batch normalizations join their statistics over the replicas that run it."""

    def run(*columns: Any) -> Any:
        nodes = [node.layer for layer in layers for node in tree_of(layer).walk()]
        with contextlib.ExitStack() as stack:
            for layer in nodes:
                if isinstance(layer, keras.layers.BatchNormalization):
                    stack.callback(interpose(layer, functools.partial(_moments, axis=layer.axis), method=_MOMENTS))
            return loss_of(*columns)

    return run


def _moments(own: Forward, axis: int) -> Forward:
    """Return the mean and variance of the rows of all replicas, where they are joined; else those of the layer."""

    def moments(inputs: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        joined: Callable[[Any], Any] = backend.joined_sum
        if joined(1.0) is None:
            return own(inputs, mask)
        rank, ops = len(inputs.shape), keras.ops
        axes = [index for index in range(rank) if index != axis % rank]
        weights = ops.ones_like(inputs) if mask is None else ops.cast(
            ops.broadcast_to(ops.expand_dims(mask, -1), ops.shape(inputs)), inputs.dtype
        )
        count = joined(ops.sum(weights, axes, keepdims=True))
        count = count if mask is None else count + keras.config.epsilon()
        mean = joined(ops.sum(ops.where(weights > 0, inputs, 0.0), axes, keepdims=True)) / count
        squares = ops.square(ops.where(weights > 0, inputs - mean, 0.0))
        variance = joined(ops.sum(squares, axes, keepdims=True)) / count
        return ops.squeeze(mean, axes), ops.squeeze(variance, axes)

    return moments
