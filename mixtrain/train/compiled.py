"""Read the compile arguments of a Keras model, and compile a Keras model as its `Model` trains it."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any, Final

import keras

from mixtrain.step.output_losses import is_keras_loss
from mixtrain.train.keras_metrics import is_keras_metric
from mixtrain.typing import LossFn, Network, Optimizer

# Networks that mixtrain compiled, with the optimizer that each was compiled with.
_COMPILED_HERE: Final[weakref.WeakKeyDictionary[keras.Model, Any]] = weakref.WeakKeyDictionary()


@dataclasses.dataclass(frozen=True)
class CompileArguments:
    """Arguments of `keras.Model.compile` in the forms of `Model`.

    Attributes:
        loss_fn: The loss or the losses of the outputs, or None.
        loss_weights: Their weights, or None.
        optimizer: The optimizer; None where the network has nothing to train.
        metrics: The metrics, or None.
        weighted_metrics: The metrics that use sample weights, or None.
    """

    loss_fn: LossFn | None = None
    loss_weights: Any = None
    optimizer: Optimizer | str | None = None
    metrics: Any = None
    weighted_metrics: Any = None

    def or_compiled(self, network: Network) -> CompileArguments:
        """Return the arguments with which a Keras model was compiled, if these have no loss, in place of missing ones.

        Metrics and weighted metrics go together.
        """
        if self.loss_fn is not None or self.loss_weights is not None or not is_compiled(network):
            return self
        compiled = compile_arguments_of(network)
        if self.optimizer is not None:
            compiled = dataclasses.replace(compiled, optimizer=self.optimizer)
        if self.metrics is None and self.weighted_metrics is None:
            return compiled
        return dataclasses.replace(compiled, metrics=self.metrics, weighted_metrics=self.weighted_metrics)


def is_compiled(network: Network) -> bool:
    """Whether a network, of Keras or of Cells, is a Keras model that its user compiled."""
    if not isinstance(network, keras.Model) or not network.compiled:
        return False
    return network not in _COMPILED_HERE or network.optimizer is not _COMPILED_HERE[network]


def compile_network(network: Network, arguments: CompileArguments) -> None:
    """Compile a Keras model as a Model trains it.

    So `self.model.evaluate` in a Keras callback works, and a ``.keras`` file keeps the optimizer with its state, the
    loss and the metrics. Does nothing if the user has compiled it, or if the loss or the optimizer is not Keras's;
    metrics that are not Keras's are left out.

    `network`: The network, of Keras or of Cells. `arguments`: The arguments of the Model.

    Example:
        >>> network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> compile_network(network, CompileArguments("mse", None, keras.optimizers.SGD(), ["mae"], None))
        >>> network.compiled, is_compiled(network)
        (True, False)
    """
    optimizer = arguments.optimizer
    if not isinstance(network, keras.Model) or not isinstance(optimizer, keras.optimizers.Optimizer):
        return
    # A class that overrides `compile` may take any arguments.
    if type(network).compile is not keras.Model.compile or is_compiled(network):
        return
    if not is_keras_loss(arguments.loss_fn, keras_network=True) or _COMPILED_HERE.get(network) is optimizer:
        return
    network.compile(
        optimizer, arguments.loss_fn, arguments.loss_weights, keras_metrics(arguments.metrics),
        keras_metrics(arguments.weighted_metrics), auto_scale_loss=False,
    )
    _COMPILED_HERE[network] = optimizer


def keras_metrics(metrics: Any) -> Any:
    """Return metrics as `compile` takes them, or None."""
    if isinstance(metrics, (list, tuple, dict)) and all(map(is_keras_metric, keras.tree.flatten(metrics))):
        return metrics
    return None


def compile_arguments_of(network: keras.Model) -> CompileArguments:
    """Return the arguments that a Keras model was compiled with.

    Example:
        >>> network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
        >>> network.compile("sgd", "mse", metrics=["mae"])
        >>> compile_arguments_of(network).metrics
        ['mae']
    """
    optimizer = network.optimizer
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        # Keras wraps the optimizer under a mixed_float16 policy; here a loss-scale manager does that work.
        optimizer = optimizer.inner_optimizer
    trains = not network.built or bool(network.trainable_variables)
    # Keras's public `get_compile_config` serializes these, and a user's own losses and metrics cannot be deserialized;
    # tests/train/test_compiled.py fails if the private name moves.
    config = network._compile_config.config
    return CompileArguments(
        loss_fn=config["loss"],
        loss_weights=config["loss_weights"],
        optimizer=optimizer if trains else None,
        metrics=config["metrics"],
        weighted_metrics=config["weighted_metrics"],
    )
