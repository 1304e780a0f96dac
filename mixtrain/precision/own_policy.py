"""Which dtype policies of Keras layers the user chose, and which are Keras's default."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import keras

from mixtrain.network.keras_own import keras_owns
from mixtrain.network.marks import OWN_POLICY
from mixtrain.network.walk import Node
from mixtrain.typing import Layer

# Layers whose sublayers Keras creates from a configuration or with their dtype: those tell nothing about the user.
_MAKERS: Final = (keras.layers.RNN, keras.layers.Bidirectional)
# Layers whose arguments are other layers or functions, which Keras does not record.
_UNRECORDED: Final = (*_MAKERS, keras.layers.Wrapper, keras.layers.StackedRNNCells, keras.layers.Lambda)


def own_policy(layer: keras.Layer) -> keras.dtype_policies.DTypePolicy:
    """Return the dtype policy of a layer without any plan."""
    return OWN_POLICY.of(layer) or layer.dtype_policy


def chosen_policies(root: Node) -> frozenset[int]:
    """Return the ids of the Keras layers whose dtype policy the user chose.

    A layer created without a dtype refers to the object that is Keras's global default. A policy with another name is a
    choice. So is another object with the same name (`dtype="float32"`), unless the layer was created from a
    configuration, which gives every layer of a cloned or loaded network an object of its own.
    """
    default = keras.config.dtype_policy()
    layers = (node.layer for node in root.walk())
    if all(own_policy(layer) is default for layer in layers if isinstance(layer, keras.Layer)):
        return frozenset()
    return frozenset(_Choices(root).chosen)


class _Choices:
    """The layers of a network whose dtype policy the user chose. `chosen`: The ids of the layers."""

    def __init__(self, root: Node) -> None:
        self._global = keras.config.dtype_policy()
        layers = list(_users_layers(root))
        self._defaults = {id(self._global), *_former_defaults(layers)}
        # Whether the network was cloned or loaded, so that policies are objects of their own without a choice.
        self._copies = any(self._has_own_object(layer) and _made_from_config(layer) for layer in layers)
        self.chosen: set[int] = set()
        self._visit(root, None)

    def _has_own_object(self, layer: Layer) -> bool:
        """Whether the policy of a Keras layer is another object than a default."""
        return isinstance(layer, keras.Layer) and id(own_policy(layer)) not in self._defaults

    def _visit(self, node: Node, parent: keras.Layer | None) -> None:
        layer = node.layer
        if self._has_own_object(layer) and self._is_chosen(layer, parent):
            self.chosen.add(id(layer))
        parent = layer if isinstance(layer, keras.Layer) else None
        for child in node.children:
            self._visit(child, parent)

    def _is_chosen(self, layer: keras.Layer, parent: keras.Layer | None) -> bool:
        """Whether the user chose a policy that is an object of its own."""
        policy, arguments = own_policy(layer), _recorded_arguments(layer)
        if parent is not None:
            # LSTM and the like create their cell; other layers may pass their policy on.
            made_by_parent = isinstance(parent, keras.layers.RNN) and type(parent) is not keras.layers.RNN
            if made_by_parent or policy is own_policy(parent):
                return id(parent) in self.chosen
            if id(parent) in self.chosen and policy.name == own_policy(parent).name:
                return True
        if policy.name != self._global.name:
            return True
        if arguments is None:
            return not (self._copies and isinstance(layer, _UNRECORDED))
        # Created without a dtype: then the class chose this policy, or it was assigned later.
        return arguments.get("dtype") is None or not _made_from_config(layer)


def _users_layers(node: Node) -> Iterator[keras.Layer]:
    """Yield the Keras layers that the user created."""
    if isinstance(node.layer, keras.Layer):
        yield node.layer
    if not isinstance(node.layer, _MAKERS):
        for child in node.children:
            yield from _users_layers(child)


def _recorded_arguments(layer: keras.Layer) -> dict[str, Any] | None:
    """Return the constructor arguments of a layer; None if some are objects, which Keras does not record."""
    # Private to Keras, where it is the source of get_config; nothing public tells which arguments a caller passed.
    # tests/precision/test_own_policy.py fails if it moves.
    record = getattr(layer, "_auto_config", None)
    return None if record is None else record.config  # type: ignore[no-any-return]


def _former_defaults(layers: Sequence[keras.Layer]) -> Iterator[int]:
    """Yield the ids of policies that were Keras's default when layers were created, if it is another object now."""
    without_dtype = [
        layer for layer in layers
        if (arguments := _recorded_arguments(layer)) is not None and arguments.get("dtype") is None
    ]
    shared = Counter(id(own_policy(layer)) for layer in without_dtype)
    # A default is shared. A policy that a class chooses by itself, or a user assigns, is an object for each layer.
    yield from (policy for policy, count in shared.items() if count > 1)
    for layer in layers:
        if isinstance(layer, keras.Sequential) or hasattr(layer, "operations"):
            yield id(own_policy(layer))


def _made_from_config(layer: keras.Layer) -> bool:
    """Whether a layer was created by `from_config`, which passes arguments that users leave out."""
    arguments = _recorded_arguments(layer)
    if arguments is None or arguments.get("dtype") is None:
        return False
    return "trainable" in arguments or _takes_dtype(layer.__class__)


@functools.lru_cache(maxsize=1024)
def _takes_dtype(kind: type) -> bool:
    """Whether a class is one of the few of Keras's with a `dtype` argument, whose configuration has no `trainable`."""
    return keras_owns(kind) and "dtype" in inspect.signature(kind).parameters
