"""The tensors of each call of a layer in one pass over a batch, and the gradients of its outputs and parameters."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend
from mixtrain.boundary import settled
from mixtrain.common.referenced_layers import referenced_variables
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.seed import stream_states


@dataclasses.dataclass(frozen=True)
class LayerCall:
    """One call of a layer.

    Attributes:
        path: The layer's path.
        inputs: The float tensors that came in, after the casts of the plan.
        outputs: Those that came out.
    """

    path: str
    inputs: list[Any]
    outputs: list[Any]


@dataclasses.dataclass(frozen=True)
class LayerGradients:
    """The gradients of one pass.

    Attributes:
        calls: Its calls of layers, in the order in which they end.
        loss: Its loss.
        of_outputs: The gradients of the outputs of each call.
        of_parameters: The gradients of the parameters that a layer owns, by its path.
    """

    calls: list[LayerCall]
    loss: Any
    of_outputs: list[list[Any]]
    of_parameters: dict[str, list[Any]]


def watched(
    network: Any, run: Callable[[], Any], tap: Callable[[Any], Any] = lambda value: value
) -> tuple[list[LayerCall], Any]:
    """Run a forward pass, and note the float tensors of each layer call, innermost first.

    Variables that it writes (moving statistics, random states) are put back.

    Args:
        network: The network to look into.
        run: Runs it and returns the loss.
        tap: Takes each float output of a layer, and returns what the pass goes on with.
    """
    calls: list[LayerCall] = []
    nodes = list(tree_of(network).walk())
    variables = [*referenced_variables([network, run]), *stream_states()]
    before = [(variable, backend.snapshot(variable)) for variable in variables]

    def watching(path: str) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def call(*args: Any, **kwargs: Any) -> Any:
                inputs = list(filter(is_float_tensor, map(_computed, keras.tree.flatten((args, kwargs)))))
                result = forward(*args, **kwargs)
                flat = keras.tree.flatten(result)
                outputs = []
                for place, value in enumerate(flat):
                    computed = _computed(value)
                    if is_float_tensor(computed):
                        outputs.append(tap(computed))
                        view = backend.nhwc_of(value) is not None
                        flat[place] = backend.from_channels_last(outputs[-1]) if view else outputs[-1]
                calls.append(LayerCall(path, inputs, outputs))
                return keras.tree.pack_sequence_as(result, flat)

            return call

        return wrap

    with contextlib.ExitStack() as stack:
        for node in nodes:
            stack.callback(interpose(node.layer, watching(node.path)))
        loss = settled(run())
    for variable, value in before:
        variable.assign(value)
    return calls, loss


def _computed(value: Any) -> Any:
    """Return a value as the backend tensor that was computed: channels last where it is a view of one."""
    nhwc = backend.nhwc_of(value)
    return settled(value) if nhwc is None else nhwc


def layer_gradients(network: Any, run: Callable[[], Any], loss_scale: Any) -> LayerGradients:
    """Run a pass forward and backward; return the gradients of each layer's outputs and parameters.

    Args:
        network: The network to look into.
        run: Runs it and returns the loss.
        loss_scale: What the loss is multiplied by, a float or a scalar tensor.
    """
    owned = parameters_by_path(network)
    variables = [variable for group in owned.values() for variable in group]

    def tapped(tap: Callable[[Any], Any]) -> tuple[Any, Any]:
        calls, loss = watched(network, run, tap)
        return keras.ops.cast(loss, "float32"), ([(call.path, call.inputs, call.outputs) for call in calls], loss)

    scale = keras.ops.convert_to_tensor(loss_scale, "float32")
    _, (parts, loss), found = backend.tapped_gradients(tapped, variables, scale)
    calls, gradients = [LayerCall(*part) for part in parts], iter(found)
    of_parameters = {path: [next(gradients) for _ in held] for path, held in owned.items()}
    return LayerGradients(calls, loss, [[next(gradients) for _ in call.outputs] for call in calls], of_parameters)


def parameters_by_path(network: Any) -> dict[str, list[Any]]:
    """Return the trainable variables by the path of the innermost layer that holds them."""
    owned: dict[str, list[Any]] = {}
    seen: set[int] = set()
    for node in reversed(list(tree_of(network).walk())):
        held = node.layer.trainable_params() if is_cell(node.layer) else getattr(node.layer, "trainable_variables", ())
        owned[node.path] = [variable for variable in held if id(variable) not in seen]
        seen |= {id(variable) for variable in held}
    return owned


def is_float_tensor(value: Any) -> bool:
    """Whether a value is a backend tensor of a floating-point format."""
    return backend.is_tensor(value) and "float" in keras.backend.standardize_dtype(value.dtype)
