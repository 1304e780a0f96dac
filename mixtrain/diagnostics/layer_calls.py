"""The tensors of each layer call in a pass over a batch, and the gradients of its outputs and parameters."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Callable, Container, Sequence
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.boundary import UserTensor, to_backend_tensors
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.referenced_layers import referenced_variables
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.seed import stream_states
from mixtrain.typing import Network, Tensor, Tree, Variable

# What a pass raises where a layer's code does not take float32 of one layer together with half of another.
DTYPE_ERRORS: Final[tuple[type[Exception], ...]] = (TypeError, ValueError, *backend.VALUE_ERRORS)


@dataclasses.dataclass(frozen=True)
class LayerCall:
    """One call of a layer: its path, and its float tensors; inputs are those after the casts of the precision plan."""

    path: str
    inputs: list[Tensor]
    outputs: list[Tensor]


@dataclasses.dataclass(frozen=True)
class LayerGradients:
    """The layer calls, in the order in which they end, the loss and the gradients of one pass.

    `added`: The losses that Keras layers added, with the layers' paths. `of_outputs`: The gradients of the outputs of
    each call. `of_inputs`: Those of its inputs, if requested. `of_parameters`: Those of the parameters that each layer
    owns, by its path.
    """

    calls: list[LayerCall]
    loss: Tensor
    added: list[tuple[str, Tensor]]
    of_outputs: list[list[Tensor | None]]
    of_inputs: list[list[Tensor | None]]
    of_parameters: dict[str, list[Tensor | None]]


@dataclasses.dataclass(frozen=True)
class Recorded:
    """The layer calls of a forward pass, its loss, and the losses that Keras layers added, with the layers' paths."""

    calls: list[LayerCall]
    loss: Tensor
    added: list[tuple[str, Tensor]]


def record_calls(
    network: Network, run: Callable[[], Tensor], tap: Callable[[Tensor], Tensor] = lambda value: value,
    tap_input: Callable[[Tensor], Tensor] | None = None,
) -> Recorded:
    """Run a forward pass; return the float tensors of each layer call, in the order in which calls end, and the loss.

    A call inside a loop or a branch, whose tensors end with it, counts as part of the layer that runs the loop; so do
    the cells of Keras's recurrent layers, whose loop is a Python loop where nothing is compiled. Variables that it
    writes (moving statistics, random states) are restored. `tap` maps each float output of a layer to the tensor that
    the pass continues with; `tap_input` does so for each float input.
    """
    calls: list[LayerCall] = []
    added: list[tuple[str, Tensor]] = []
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
                if tap_input is not None:
                    args, kwargs = keras.tree.map_structure(functools.partial(_tapped, tap_input), (args, kwargs))
                inputs = list(filter(is_float_tensor, map(_computed, keras.tree.flatten((args, kwargs)))))
                result = forward(*args, **kwargs)
                flat = keras.tree.flatten(result)
                outputs = []
                for index, value in enumerate(flat):
                    computed = _computed(value)
                    if is_float_tensor(computed):
                        flat[index] = backend.on_layout(tap, value)
                        outputs.append(_computed(flat[index]))
                calls.append(LayerCall(path, inputs, outputs))
                return keras.tree.pack_sequence_as(result, flat)

            return call

        return wrap

    def recording_losses(path: str) -> Callable[[Forward], Forward]:
        def wrap(add_loss: Forward) -> Forward:
            def call(loss: Any) -> Any:
                if backend.value_scope() is scope:
                    added.extend((path, value) for value in map(_computed, keras.tree.flatten(loss)))
                return add_loss(loss)

            return call

        return wrap

    with contextlib.ExitStack() as stack:
        for variable, value in snapshots:
            stack.callback(variable.assign, value)
        for node in nodes:
            # What Keras calls of a quantized layer; one that a plan has made plain is called as any other.
            quantized = getattr(getattr(node.layer, "dtype_policy", None), "quantization_mode", None)
            stack.callback(interpose(
                node.layer, recording(node.path), method="quantized_call" if quantized is not None else None
            ))
            if isinstance(node.layer, keras.Layer):
                stack.callback(interpose(node.layer, recording_losses(node.path), method="add_loss"))
        loss = to_backend_tensors(run())
        weights = [(path, weight) for path, group in parameters_by_path(network).items() for weight in group]
        regularized = [(path, weight) for path, weight in weights if getattr(weight, "regularizer", None) is not None]
        added += [(path, _computed(weight.regularizer(weight))) for path, weight in regularized]
    return Recorded(calls, loss, [(path, value) for path, value in added if is_float_tensor(value)])


def _tapped(tap: Callable[[Tensor], Tensor], value: Any) -> Any:
    """Tap an argument of a layer if it is a float tensor."""
    if not is_float_tensor(value) or backend.nhwc_of(value) is not None:
        return value
    # A copy, whose gradient is that of this use of the tensor alone.
    tapped = tap(keras.ops.copy(to_backend_tensors(value)))
    return backend.public_tensor(tapped) if isinstance(value, UserTensor) else tapped


def _computed(value: Any) -> Any:
    """Return the backend tensor of a value; for a channels-last view, the tensor that it is a view of."""
    nhwc = backend.nhwc_of(value)
    return to_backend_tensors(value) if nhwc is None else nhwc


def layer_gradients(
    network: Network, run: Callable[[], Tensor], loss_scale: Tensor | float, *, with_inputs: bool = False
) -> LayerGradients:
    """Run a forward and backward pass, and return the gradients of each layer's outputs and parameters, and inputs."""
    owned = parameters_by_path(network)
    # Next values, as of float8 scales, are computed with the gradients, and are none.
    taking = [variable for variable in referenced_variables([network]) if backend.takes_next_value(variable)]
    variables = [*taking, *(variable for group in owned.values() for variable in group)]

    # Positions of the gradients of each call's inputs and outputs among those of the tensors that are tapped.
    positions: tuple[list[list[int]], list[list[int]]] = [], []

    def tapped(tap: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tree]:
        position_of: dict[int, int] = {}
        count = itertools.count()

        def tap_next(value: Tensor) -> Tensor:
            result = tap(value)
            position_of[id(result)] = next(count)
            return result

        recorded = record_calls(network, run, tap_next, tap_next if with_inputs else None)
        positions[0][:] = [_found(position_of, call.inputs) for call in recorded.calls]
        positions[1][:] = [_found(position_of, call.outputs) for call in recorded.calls]
        call_fields = as_tuples(recorded.calls)
        return keras.ops.cast(recorded.loss, "float32"), (call_fields, recorded.loss, recorded.added)

    scale = keras.ops.convert_to_tensor(loss_scale, "float32")
    _, (call_fields, loss, added), flat_gradients = backend.tapped_gradients(tapped, variables, scale)
    # Gradients of parameters come first, then those of the tensors that are tapped.
    gradients = iter(flat_gradients[len(taking) :])
    of_parameters = {path: [next(gradients) for _ in group] for path, group in owned.items()}
    of_tapped = [*gradients]
    of_inputs, of_outputs = ([[of_tapped[index] for index in group] for group in found] for found in positions)
    calls = [LayerCall(*fields) for fields in call_fields]
    return LayerGradients(calls, loss, added, of_outputs, of_inputs, of_parameters)


def _found(position_of: dict[int, int], values: Sequence[Tensor]) -> list[int]:
    return [position_of[id(value)] for value in values if id(value) in position_of]


def as_tuples(calls: Sequence[LayerCall]) -> list[Any]:
    """Return the fields of calls, a structure that a compiled function may return."""
    return [(call.path, call.inputs, call.outputs) for call in calls]


def called_path(path: str, called: Container[str]) -> str:
    """Return the path of the innermost layer around a path, or of its own, that was called; the path if none was."""
    around = path
    while around and around not in called:
        around = parent_path(around)
    return around or path


def parent_path(path: str) -> str:
    """Return the path of the layer around another; "" for the network itself."""
    return path[: max(path.rfind("/"), path.rfind("."), 0)]


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
