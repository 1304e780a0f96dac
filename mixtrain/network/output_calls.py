"""The layers that compute a network's outputs, and for each of these the layers that compute its inputs."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Final

import keras

from mixtrain.network.keras_own import keras_owns
from mixtrain.network.returned import Origin, returned_by
from mixtrain.network.walk import children_of, is_cell
from mixtrain.typing import Layer, Network

_LIBRARY: Final = "mixtrain."
# Layers that return the output of the layer inside them.
_WRAPPERS: Final = (keras.layers.TimeDistributed, keras.layers.SpectralNormalization)


@dataclasses.dataclass(frozen=True)
class CallSite:
    """One call of a layer inside a network.

    Attributes:
        layer: The Cell, Keras layer, or operation of a functional model.
        key: Distinguishes this call of the layer from its other calls.
        sources: Returns the calls whose outputs are its inputs; none for the network's own inputs.
    """

    layer: Layer
    key: tuple[int, int]
    sources: Callable[[], Sequence[CallSite]]


def output_calls(layer: Layer) -> Sequence[CallSite]:
    """Return the calls inside a layer whose outputs are the layer's own; none for a layer without children.

    A functional model is read from its graph, a `call` or `construct` of the user's from its source. Where the source
    cannot be read, the last layer is assumed to be the end.

    `layer`: A Cell, Keras layer or operation.
    """
    if isinstance(layer, _WRAPPERS):
        return [_in_order([layer.layer])]
    if isinstance(layer, keras.layers.Bidirectional):
        return [_in_order([layer.forward_layer]), _in_order([layer.backward_layer])]
    if isinstance(layer, keras.Model) and not isinstance(layer, keras.Sequential) and hasattr(layer, "operations"):
        return [_in_graph(output) for output in layer.outputs]
    if not is_cell(layer) and not isinstance(layer, keras.Model) and keras_owns(type(layer)):
        return []  # Attention and recurrent layers, whose sublayers have no such order.
    children = list(children_of(layer).values())
    if not children:
        return []
    method = inspect.unwrap(type(layer).construct if is_cell(layer) else type(layer).call)
    # `call` of Keras and `construct` of mixtrain run layers in order.
    is_users = not keras_owns(method) and not str(getattr(method, "__module__", "")).startswith(_LIBRARY)
    origins = returned_by(method.__code__) if is_users and hasattr(method, "__code__") else None
    return [_in_order(children)] if origins is None else _in_code(layer, origins)


def _in_code(network: Network, origins: Sequence[Origin]) -> list[CallSite]:
    """Return the calls of layers among the origins that a method's source shows."""
    calls = []
    for origin in origins:
        layer = getattr(network, origin.attribute, None) if origin.attribute else None
        if isinstance(layer, (list, tuple)) and layer:
            layer = layer[-1]
        layer = getattr(layer, "keras_layer", layer)
        if isinstance(layer, keras.Layer) or is_cell(layer):
            sources = functools.partial(_in_code, network, origin.inputs)
            calls.append(CallSite(layer, (id(layer), id(origin)), sources))
    return calls


def _in_order(layers: Sequence[Layer]) -> CallSite:
    return CallSite(layers[-1], (id(layers[-1]), -len(layers)), lambda: [_in_order(layers[:-1])] if layers[:-1] else [])


def _in_graph(tensor: keras.KerasTensor) -> CallSite:
    # Keras has no public attribute for the operation that made a tensor, nor for the inputs of an operation's calls but
    # the first; tests/network/test_ends.py fails if these private names change.
    operation, node, _ = tensor._keras_history
    inputs = operation._inbound_nodes[node].input_tensors
    return CallSite(operation, (id(operation), node), lambda: [_in_graph(source) for source in inputs])
