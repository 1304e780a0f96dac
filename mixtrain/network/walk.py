"""The tree of a network's layers with their paths, Cells and Keras layers alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import keras

from mixtrain.network.keras_own import preprocessor_of
from mixtrain.network.unique_names import unique_names
from mixtrain.typing import Layer, Network, Variable


@dataclasses.dataclass(frozen=True)
class Node:
    """One layer of a network.

    Attributes:
        path: Names from the root down, joined by dots (Cells) or slashes (Keras); "" for the root.
        layer: The Cell, Keras layer, or Keras operation of a functional model.
        children: The nodes below, in order; a shared layer is a child of its first parent only.
    """

    path: str
    layer: Layer
    children: tuple[Node, ...]

    def walk(self) -> Iterator[Node]:
        """Yield this node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


def is_cell(layer: Layer) -> bool:
    """Whether `layer` is a Cell rather than a Keras layer."""
    # By its methods: this package is below the one that defines Cells.
    is_other = isinstance(layer, (keras.Operation, type))
    return not is_other and hasattr(layer, "child_layers") and hasattr(layer, "construct")


def is_layer(value: Any) -> bool:
    """Whether `value` is a Cell or a Keras layer."""
    return isinstance(value, keras.Layer) or is_cell(value)


def wrapped_layer(cell: Layer) -> keras.Layer | None:
    """Return the Keras layer that a Cell stands for; None for any other Cell."""
    return vars(cell).get("keras_layer")


def is_optimizer_cell(value: Any) -> bool:
    """Whether `value` is an optimizer that is a Cell, rather than Keras's."""
    return is_cell(value) and hasattr(value, "get_lr") and hasattr(value, "state_variables")


def children_of(layer: Layer) -> dict[str, Layer]:
    """Return the direct children of a layer by name, without InputLayers."""
    if isinstance(layer, keras.Operation):
        return _keras_children(layer)
    return layer.child_layers() if is_cell(layer) else {}


def _keras_children(layer: keras.Operation) -> dict[str, Layer]:
    wrapped = getattr(layer, "mixtrain_cell", None)
    if wrapped is not None:
        return {wrapped.cls_name: wrapped}
    layers: list[Layer] = []
    if isinstance(layer, keras.Layer):
        preprocessor = preprocessor_of(layer)
        layers = [child for child in sublayers(layer) if child is not preprocessor]
    if isinstance(layer, keras.Model):
        operations = getattr(layer, "operations", ())
        layers += [operation for operation in operations if not isinstance(operation, keras.Layer)]
    distinct = {id(child): child for child in layers}.values()
    children = [child for child in distinct if not isinstance(child, keras.layers.InputLayer)]
    named = zip(unique_names(child.name for child in children), children, strict=True)
    # A Sequential model keeps a functional copy of itself, which shares its layers.
    return {name: child for name, child in named if not _is_functional_copy(layer, child)}


def sublayers(layer: keras.Layer) -> list[keras.Layer]:
    """Return Keras's own list of the layers directly below a Keras layer; do not modify it."""
    # Keras has no public list of the layers inside a layer that is not a Model (attention, RNN, wrappers);
    # tests/network/test_walk.py fails if this private name changes.
    return layer._layers  # type: ignore[no-any-return]


def variables_of(layer: Layer) -> list[Variable]:
    """Return the variables of a layer and its sublayers; none of a Keras operation."""
    return list(layer.get_parameters() if is_cell(layer) else getattr(layer, "weights", ()))


def outermost_keras_layers(network: Network) -> list[keras.Layer]:
    """Return the Keras layers of a network that no other Keras layer contains, each once."""
    if isinstance(network, keras.Operation):
        return [network]
    found: dict[int, keras.Layer] = {}
    seen: set[int] = set()

    def collect(cell: Layer) -> None:
        seen.add(id(cell))
        for child in children_of(cell).values():
            if isinstance(child, keras.Layer):
                found[id(child)] = child
            elif id(child) not in seen:
                collect(child)

    collect(network)
    inner = {id(node.layer) for layer in found.values() for node in tree_of(layer).walk() if node.layer is not layer}
    return [layer for key, layer in found.items() if key not in inner]


def all_built(network: Network) -> bool:
    """Whether every Keras layer of a network has its variables."""
    layers = (node.layer for node in tree_of(network).walk())
    return all(layer.built or _only_contains(layer) for layer in layers if isinstance(layer, keras.Layer))


def _only_contains(layer: keras.Layer) -> bool:
    """Whether a layer has no variables of its own to build.

    That is a model of sublayers, which may not even have a `call`, or a layer that only computes.
    """
    build = type(layer).build
    if isinstance(layer, keras.Model):
        return build in (keras.Model.build, keras.Sequential.build) and bool(sublayers(layer))
    return build is keras.layers.Layer.build


def _is_functional_copy(layer: Layer, child: Layer) -> bool:
    if not isinstance(layer, keras.Sequential) or not isinstance(child, keras.Model):
        return False
    return all(child is not listed for listed in layer.layers)


def tree_of(network: Network) -> Node:
    """Return the network as a tree of nodes.

    `network`: A Cell, a Keras layer or a Keras model.

    Returns: The root node, whose path is "".

    Raises: TypeError if `network` is neither.
    """
    if not isinstance(network, keras.Operation) and not is_cell(network):
        raise TypeError(
            f"network: expected a mixtrain.nn.Cell or a keras.Layer; got {type(network).__name__}. "
            "Write a class with nn.Cell or keras.Model as its base."
        )
    return _node("", network, set())


def _node(path: str, layer: Layer, seen: set[int]) -> Node:
    seen.add(id(layer))
    separator = "/" if isinstance(layer, keras.Operation) else "."
    nodes = []
    for name, child in children_of(layer).items():
        if id(child) not in seen:
            nodes.append(_node(f"{path}{separator}{name}" if path else name, child, seen))
    return Node(path, layer, tuple(nodes))
