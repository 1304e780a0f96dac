"""What a compiled Keras model brings to a Model, and a Keras model compiled as the Model trains it."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any, Final

import keras

from mixtrain.step.output_losses import is_keras_loss
from mixtrain.train.keras_metrics import is_keras_metric

# Networks that mixtrain compiled, with the optimizer that each was compiled with.
_COMPILED_HERE: Final[weakref.WeakKeyDictionary[keras.Model, Any]] = weakref.WeakKeyDictionary()


@dataclasses.dataclass(frozen=True)
class CompileArguments:
    """What `keras.Model.compile` takes, as `Model` takes it.

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
    """Whether a network of either kind is a Keras model that its user compiled."""
    return isinstance(network, keras.Model) and bool(network.compiled) and not _compiled_here(network)


def _compiled_here(network: keras.Model) -> bool:
    return network in _COMPILED_HERE and network.optimizer is _COMPILED_HERE[network]


def compile_network(network: Any, given: CompileArguments) -> None:
    """Compile a Keras model as a Model trains it.

    So `self.model.evaluate` in a Keras callback works, and a ``.keras`` file keeps the optimizer with its state, the
    loss and the metrics. Nothing is done where the user has compiled it, or where the loss or the optimizer is none
    of Keras's; metrics that are none of Keras's are left out.

    Args:
        network: The network of either kind.
        given: What the Model was given.

    Example:
        >>> network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> compile_network(network, CompileArguments("mse", None, keras.optimizers.SGD(), ["mae"], None))
        >>> network.compiled, is_compiled(network)
        (True, False)
    """
    optimizer = given.optimizer
    if not isinstance(network, keras.Model) or not isinstance(optimizer, keras.optimizers.Optimizer):
        return
    # A class with a `compile` of its own takes arguments that nobody here knows.
    if type(network).compile is not keras.Model.compile or is_compiled(network):
        return
    if not is_keras_loss(given.loss_fn, keras_network=True) or _COMPILED_HERE.get(network) is optimizer:
        return
    network.compile(
        optimizer, given.loss_fn, given.loss_weights, _metrics_of_keras(given.metrics),
        _metrics_of_keras(given.weighted_metrics), auto_scale_loss=False,
    )
    _COMPILED_HERE[network] = optimizer


def _metrics_of_keras(metrics: Any) -> Any:
    """Return metrics as `compile` takes them, or None."""
    if isinstance(metrics, (list, tuple, dict)) and all(map(is_keras_metric, keras.tree.flatten(metrics))):
        return metrics
    return None


def brought_by(network: keras.Model) -> CompileArguments:
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
    return CompileArguments(
        loss_fn=given["loss"],
        loss_weights=given["loss_weights"],
        optimizer=optimizer if trains else None,
        metrics=given["metrics"],
        weighted_metrics=given["weighted_metrics"],
    )
