"""The tensors of each layer call in a pass over a batch, and the gradients of its outputs and parameters."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Container
from typing import Any

import keras

from mixtrain import backend
from mixtrain.boundary import to_backend_tensors
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.referenced_layers import referenced_variables
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.seed import stream_states
from mixtrain.typing import Network, Tensor, Tree, Variable


@dataclasses.dataclass(frozen=True)
class LayerCall:
    """One call of a layer: its path, and its float tensors; inputs are those after the casts of the precision plan."""

    path: str
    inputs: list[Tensor]
    outputs: list[Tensor]


@dataclasses.dataclass(frozen=True)
class LayerGradients:
    """The layer calls, in the order in which they end, the loss and the gradients of one pass.

    `of_outputs`: The gradients of the outputs of each call. `of_parameters`: Those of the parameters that each layer
    owns, by its path.
    """

    calls: list[LayerCall]
    loss: Tensor
    of_outputs: list[list[Tensor | None]]
    of_parameters: dict[str, list[Tensor | None]]


def record_calls(
    network: Network, run: Callable[[], Tensor], tap: Callable[[Tensor], Tensor] = lambda value: value
) -> tuple[list[LayerCall], Tensor]:
    """Run a forward pass; return the float tensors of each layer call, in the order in which calls end, and the loss.

    A call inside a loop or a branch, whose tensors end with it, counts as part of the layer that runs the loop; so do
    the cells of Keras's recurrent layers, whose loop is a Python loop where nothing is compiled. Variables that it
    writes (moving statistics, random states) are restored. `tap` maps each float output of a layer to the tensor that
    the pass continues with.
    """
    calls: list[LayerCall] = []
    recurrent = [node.layer for node in tree_of(network).walk() if isinstance(node.layer, keras.layers.RNN)]
    looped = {id(node.layer) for layer in recurrent for node in tree_of(layer).walk() if node.layer is not layer}
    nodes = [node for node in tree_of(network).walk() if id(node.layer) not in looped]
    scope = backend.value_scope()
    variables = [*referenced_variables([network, run]), *stream_states()]
    snapshots = [(variable, backend.snapshot(variable)) for variable in variables]

    def recording(path: str) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def call(*args: Any, **kwargs: Any) -> Any:
                if backend.value_scope() is not scope:
                    return forward(*args, **kwargs)
                inputs = list(filter(is_float_tensor, map(_computed, keras.tree.flatten((args, kwargs)))))
                result = forward(*args, **kwargs)
                flat = keras.tree.flatten(result)
                outputs = []
                for index, value in enumerate(flat):
                    computed = _computed(value)
                    if is_float_tensor(computed):
                        outputs.append(tap(computed))
                        is_view = backend.nhwc_of(value) is not None
                        flat[index] = backend.from_channels_last(outputs[-1]) if is_view else outputs[-1]
                calls.append(LayerCall(path, inputs, outputs))
                return keras.tree.pack_sequence_as(result, flat)

            return call

        return wrap

    with contextlib.ExitStack() as stack:
        for node in nodes:
            stack.callback(interpose(node.layer, recording(node.path)))
        loss = to_backend_tensors(run())
    for variable, value in snapshots:
        variable.assign(value)
    return calls, loss


def _computed(value: Any) -> Any:
    """Return the backend tensor of a value; for a channels-last view, the tensor that it is a view of."""
    nhwc = backend.nhwc_of(value)
    return to_backend_tensors(value) if nhwc is None else nhwc


def layer_gradients(network: Network, run: Callable[[], Tensor], loss_scale: Tensor | float) -> LayerGradients:
    """Run a forward and backward pass, and return the gradients of each layer's outputs and parameters."""
    owned = parameters_by_path(network)
    # Next values, as of float8 scales, are computed with the gradients, and are none.
    taking = [variable for variable in referenced_variables([network]) if backend.takes_next_value(variable)]
    variables = [*taking, *(variable for group in owned.values() for variable in group)]

    def tapped(tap: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tree]:
        calls, loss = record_calls(network, run, tap)
        return keras.ops.cast(loss, "float32"), ([(call.path, call.inputs, call.outputs) for call in calls], loss)

    scale = keras.ops.convert_to_tensor(loss_scale, "float32")
    _, (call_fields, loss), flat_gradients = backend.tapped_gradients(tapped, variables, scale)
    calls, gradients = [LayerCall(*fields) for fields in call_fields], iter(flat_gradients[len(taking) :])
    # Gradients of parameters come first, then those of the outputs of each call.
    of_parameters = {path: [next(gradients) for _ in group] for path, group in owned.items()}
    return LayerGradients(calls, loss, [[next(gradients) for _ in call.outputs] for call in calls], of_parameters)


def called_path(path: str, called: Container[str]) -> str:
    """Return the path of the innermost layer around a path, or of its own, that was called; the path if none was."""
    around = path
    while around and around not in called:
        around = around[: max(around.rfind("/"), around.rfind("."), 0)]
    return around or path


def parameters_by_path(network: Network) -> dict[str, list[Variable]]:
    """Return the trainable variables that have gradients by the path of the innermost layer that owns them."""
    owned: dict[str, list[Variable]] = {}
    seen: set[int] = set()
    # Children come after their parents in the walk, so the reverse visits the innermost layers first.
    for node in reversed(list(tree_of(network).walk())):
        layer = node.layer
        variables = layer.trainable_params() if is_cell(layer) else getattr(layer, "trainable_variables", ())
        owned[node.path] = [
            variable for variable in variables if id(variable) not in seen and not backend.takes_next_value(variable)
        ]
        seen |= {id(variable) for variable in variables}
    return owned


def is_float_tensor(value: Any) -> bool:
    return backend.is_tensor(value) and "float" in keras.backend.standardize_dtype(value.dtype)
