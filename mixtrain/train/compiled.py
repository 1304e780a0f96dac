"""What a Keras model that was compiled brings to a Model: its loss, optimizer and metrics."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras


@dataclasses.dataclass(frozen=True)
class Brought:
    """What `keras.Model.compile` was given, as `Model` takes it.

    Attributes:
        loss_fn: The loss or the losses of the outputs, or None.
        loss_weights: Their weights, or None.
        optimizer: The optimizer; None where the network has nothing to train.
        metrics: The metrics, or None.
        weighted_metrics: Those that weigh samples, or None.
    """

    loss_fn: Any
    loss_weights: Any
    optimizer: Any
    metrics: Any
    weighted_metrics: Any


def is_compiled(network: Any) -> bool:
    """Whether a network of either kind is a Keras model that was compiled."""
    return isinstance(network, keras.Model) and bool(network.compiled)


def brought_by(network: keras.Model) -> Brought:
    """Return what a compiled Keras model brings.

    Args:
        network: The model, compiled.

    Example:
        >>> network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> network.compile("sgd", "mse", metrics=["mae"])
        >>> brought_by(network).metrics
        ['mae']
    """
    optimizer = network.optimizer
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        # Keras wrapped it for a mixed_float16 policy; here a loss-scale manager does that work.
        optimizer = optimizer.inner_optimizer
    trains = not network.built or bool(network.trainable_variables)
    # Keras's public `get_compile_config` gives these as serialized text, from which metrics and losses of a user's own
    # cannot be made again; tests/train/test_compiled.py fails if the private name moves.
    given = network._compile_config.config
    return Brought(
        loss_fn=given["loss"],
        loss_weights=given["loss_weights"],
        optimizer=optimizer if trains else None,
        metrics=given["metrics"],
        weighted_metrics=given["weighted_metrics"],
    )
