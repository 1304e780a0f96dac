"""The own loss of a Keras network: its `compute_loss`, the losses that its layers add, or a scalar output."""

from __future__ import annotations

import contextlib
import inspect
import itertools
from collections.abc import Iterator, Sequence

import keras

from mixtrain import checks
from mixtrain.network.keras_own import overrides
from mixtrain.step.output_losses import LossCall
from mixtrain.typing import Network, Tensor, Tree


def computes_loss(network: Network) -> bool:
    """Whether a network is a Keras model that overrides `compute_loss`."""
    return isinstance(network, keras.Model) and overrides(network, "compute_loss")


def computed_loss(
    network: keras.Model, loss: LossCall | None, columns: Sequence[Tree], outputs: Tree, *, training: bool
) -> Tensor:
    """Call the `compute_loss` of a Keras model.

    `network`: The model. `loss`: The loss function that Keras's own `compute_loss` uses when the model calls
    ``super()``, or None. `columns`: The batch: data, label, sample weights; the last two may be missing. `outputs`: The
    outputs of the model for the data. `training`: Whether the loss is differentiated.

    Raises: ValueError if the method returned None.
    """
    data, label, weight = [*columns, None, None][:3]
    # Early versions of Keras 3 had no `training` here, and models written for them override the method without it.
    parameters = inspect.signature(network.compute_loss).parameters.values()
    takes_training = any(item.name == "training" or item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters)
    with _compiled_with(network, loss):
        value = network.compute_loss(data, label, outputs, weight, **({"training": training} if takes_training else {}))
    if value is None:
        raise checks.fail_value(
            "Model", f"{type(network).__name__}.compute_loss must return a scalar", None, "return loss as its last line"
        )
    return value


def added_loss(network: Network, outputs: Tree, losses: Sequence[Tensor]) -> Tensor:
    """Return the loss of a Keras network that was given no loss function, or None if it has no loss.

    `network`: The Keras layer or model, for errors. `outputs`: The outputs of the network. `losses`: The losses that
    its layers added, scalars.

    Returns: The sum of the losses; without losses, the output itself if it is a single scalar, else None.

    Raises: ValueError if there are losses, and the output is a scalar too.
    """
    scalar = not keras.tree.is_nested(outputs) and tuple(outputs.shape) == ()
    if scalar and losses:
        raise checks.fail_value(
            "Model", "a Keras network without a loss_fn must either return its loss or add it",
            f"a scalar output and {len(losses)} losses of layers of {type(network).__name__}",
            "self.add_loss(loss) in call for each term, or Model(network, loss_fn, optimizer)",
        )
    if losses:
        return sum(losses[1:], start=losses[0])
    return outputs if scalar else None


def no_loss(network: Network, outputs: Tree) -> ValueError:
    """Return the error for training a network without a loss.

    `network`: The Keras layer or model. `outputs`: The outputs of the network.
    """
    shapes = ", ".join(str(tuple(output.shape)) for output in keras.tree.flatten(outputs))
    return checks.fail_value(
        "Model", "a Keras network without a loss_fn must add losses (add_loss, regularizers) or return a scalar loss",
        f"{type(network).__name__} with outputs of shape {shapes} and no losses",
        "Model(network, loss_fn, optimizer)",
    )


def inputs_of(network: Network, columns: Sequence[Tree]) -> Sequence[Tree]:
    """Return the columns of a batch that a Keras network without a loss function takes as inputs.

    As in Keras, that is the first column. A `call` that requires several tensors takes all columns: a network that
    returns its own loss needs the label too. Of a batch that is a dict it takes those with the names of its parameters.

    `network`: A Keras layer or model. `columns`: The columns of a batch.

    Raises: ValueError if a batch that is a dict lacks one of several required tensors.
    """
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(network.call).parameters.values()
    several = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
    tensors = [item for item in parameters if item.kind in positional and item.name not in ("training", "mask")]
    required = [parameter.name for parameter in tensors if parameter.default is inspect.Parameter.empty]
    if not several and len(required) <= 1:
        return columns[:1]
    by_name = columns[0] if len(columns) == 1 and isinstance(columns[0], dict) and not several else None
    if by_name is None:
        return columns
    if not all(name in by_name for name in required):
        raise checks.fail_value(
            "Model", f"a batch that is a dict must have the inputs of {type(network).__name__} by name, "
            f"{checks.join_names(required)}", list(by_name), f"batches with those names, or ({', '.join(required)})",
        )
    names = (parameter.name for parameter in tensors)
    return [by_name[name] for name in itertools.takewhile(by_name.__contains__, names)]


@contextlib.contextmanager
def _compiled_with(network: keras.Model, loss: LossCall | None) -> Iterator[None]:
    """Let Keras's own `compute_loss` use a loss as if the model had been compiled with it.

    The public `compile` would replace the user's optimizer, metrics and loss for good. tests/step/test_own_loss.py
    fails if the private name moves.
    """

    def compiled(label: Tree, outputs: Tree, sample_weight: Tree | None = None) -> Tensor:
        return loss and loss(outputs, label, *(() if sample_weight is None else (sample_weight,)))

    previous = network._compile_loss
    object.__setattr__(network, "_compile_loss", None if loss is None else compiled)
    try:
        yield
    finally:
        object.__setattr__(network, "_compile_loss", previous)
