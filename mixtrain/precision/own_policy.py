"""The dtype policies of a network's Keras layers: which of them the user chose, and which are Keras's default."""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import keras

from mixtrain.network.keras_own import keras_owns
from mixtrain.network.walk import Node

# Where a Keras layer keeps the policy that the user gave it while a plan is in force.
OWN_POLICY: Final = "_mixtrain_own_policy"
# Keras makes the layers inside these of a configuration or with a dtype of theirs: they tell nothing of the user.
_MAKERS: Final = (keras.layers.RNN, keras.layers.Bidirectional)
# They are made of other layers or of functions, and Keras does not record what they were made with.
_UNRECORDED: Final = (*_MAKERS, keras.layers.Wrapper, keras.layers.StackedRNNCells, keras.layers.Lambda)


def own_policy(layer: keras.Layer) -> Any:
    """Return the dtype policy that a layer has without any plan."""
    return vars(layer).get(OWN_POLICY) or layer.dtype_policy


def chosen_policies(root: Node) -> frozenset[int]:
    """Return the ids of the Keras layers whose dtype policy the user chose.

    A layer that is told no dtype has the one object that is Keras's global default. Another name is a choice. The same
    name in another object is a choice too (`dtype="float32"`), unless the layer was made of a configuration, which
    gives every layer of a cloned or loaded network an object of its own.

    Args:
        root: The network.
    """
    default = keras.config.dtype_policy()
    layers = (node.layer for node in root.walk())
    if all(own_policy(layer) is default for layer in layers if isinstance(layer, keras.Layer)):
        return frozenset()
    return frozenset(_Choices(root).chosen)


class _Choices:
    def __init__(self, root: Node) -> None:
        self._global = keras.config.dtype_policy()
        layers = list(_layers(root))
        self._defaults = {id(self._global), *_former_defaults(layers)}
        self._copies = any(self._is_own(layer) and _made_of_config(layer) for layer in layers)
        self.chosen: set[int] = set()
        self._visit(root, None)

    def _is_own(self, layer: Any) -> bool:
        return isinstance(layer, keras.Layer) and id(own_policy(layer)) not in self._defaults

    def _visit(self, node: Node, above: keras.Layer | None) -> None:
        layer = node.layer
        if self._is_own(layer) and self._is_chosen(layer, above):
            self.chosen.add(id(layer))
        above = layer if isinstance(layer, keras.Layer) else None
        for child in node.children:
            self._visit(child, above)

    def _is_chosen(self, layer: keras.Layer, above: keras.Layer | None) -> bool:
        policy, record = own_policy(layer), _record(layer)
        if above is not None:
            made = isinstance(above, keras.layers.RNN) and type(above) is not keras.layers.RNN
            if made or policy is own_policy(above):
                return id(above) in self.chosen
            if id(above) in self.chosen and policy.name == own_policy(above).name:
                return True
        if policy.name != self._global.name:
            return True
        if record is None:
            return not (self._copies and isinstance(layer, _UNRECORDED))
        # Without a dtype given, the class chose one itself, or it was assigned.
        return record.get("dtype") is None or not _made_of_config(layer)


def _layers(node: Node) -> Iterator[keras.Layer]:
    """Yield the Keras layers that the user made."""
    if isinstance(node.layer, keras.Layer):
        yield node.layer
    if not isinstance(node.layer, _MAKERS):
        for child in node.children:
            yield from _layers(child)


def _record(layer: keras.Layer) -> dict[str, Any] | None:
    """Return the arguments that a layer was made with; None where some are objects, which Keras does not record."""
    # Private to Keras, where it is the source of get_config, and nothing public tells what a caller has written;
    # tests/precision/test_own_policy.py fails if it moves.
    record = getattr(layer, "_auto_config", None)
    return None if record is None else record.config  # type: ignore[no-any-return]


def _former_defaults(layers: Sequence[keras.Layer]) -> Iterator[int]:
    """Yield the ids of the policies that were Keras's default when layers were made; it may be another object now."""
    given_none = [layer for layer in layers if (record := _record(layer)) is not None and record.get("dtype") is None]
    shared = Counter(id(own_policy(layer)) for layer in given_none)
    # Where a class chooses a policy by itself, or a user assigns one, each layer has another object.
    yield from (policy for policy, count in shared.items() if count > 1)
    for layer in layers:
        if isinstance(layer, keras.Sequential) or hasattr(layer, "operations"):
            yield id(own_policy(layer))


def _made_of_config(layer: keras.Layer) -> bool:
    """Whether a layer was given what its configuration holds besides the dtype, as `from_config` does."""
    record = _record(layer)
    if record is None or record.get("dtype") is None:
        return False
    return "trainable" in record or _names_a_dtype(layer.__class__)


@functools.lru_cache(maxsize=1024)
def _names_a_dtype(kind: Any) -> bool:
    """Whether a class is one of Keras's few that name a dtype, and write nothing else that users leave out."""
    return keras_owns(kind) and "dtype" in inspect.signature(kind).parameters
