"""White and black lists: which layers their entries match, and errors for lists that match nothing."""

from __future__ import annotations

import dataclasses
import fnmatch
from collections.abc import Sequence
from typing import Any, TypeAlias

import keras

from mixtrain import checks
from mixtrain.errors import PrecisionRuleError
from mixtrain.network.walk import Node, is_cell
from mixtrain.typing import Layer

# A layer class, a path pattern, or a layer object.
Entry: TypeAlias = type[Any] | str | Layer


@dataclasses.dataclass(frozen=True)
class Match:
    """The entry of a list that matches a layer.

    `entry`: Description of the entry. `names_layer`: Whether the entry names this very layer, by the object or its
    path, not by a class or pattern.
    """

    entry: str
    names_layer: bool


class LayerList:
    """A white or black list, resolved against one network.

    `entries`: Layer classes, layer objects or path patterns (`fnmatch`: ``"block*.conv?"``), each of which must match.
    A class need not if other entries do, so that ``get_white_list()`` can be used with any network.
    """

    def __init__(self, name: str, entries: Sequence[Entry], root: Node) -> None:
        if not isinstance(entries, (list, tuple, set, frozenset)) or not entries:
            raise checks.fail_type(
                "custom_mixed_precision", f"{name} must be a list with entries", entries, f"{name}=[nn.Dense]"
            )
        self.name = name
        self._matches: dict[int, Match] = {}
        for entry in entries:
            matched = [node for node in root.walk() if matches(name, entry, node)]
            if not matched and not isinstance(entry, type):
                raise PrecisionRuleError(
                    f"custom_mixed_precision: every layer and pattern of {name} must match; {describe(entry)} matches "
                    f"none of {_some_paths(root)}. Write a layer of this network or a pattern of its paths."
                )
            match = Match(describe(entry), not isinstance(entry, type) and not _is_pattern(entry))
            # The first entry that matches a layer is the one that errors and the plan's table name.
            for node in matched:
                self._matches.setdefault(id(node.layer), match)
        if not self._matches:
            raise PrecisionRuleError(
                f"custom_mixed_precision: {name} must match some layer; {checks.join_names(map(describe, entries))} "
                f"matches none of {_some_paths(root)}. Write a layer class, a layer of this network, or a pattern of "
                "its paths."
            )

    def entry_for(self, layer: Layer) -> Match | None:
        return self._matches.get(id(layer))


def matches(name: str, entry: Entry, node: Node) -> bool:
    if isinstance(entry, type):
        return isinstance(node.layer, entry)
    if isinstance(entry, str):
        return fnmatch.fnmatchcase(node.path, entry)
    if isinstance(entry, keras.Operation) or is_cell(entry):
        return node.layer is getattr(entry, "keras_layer", entry)
    raise checks.fail_type(
        "custom_mixed_precision", f"{name} takes layer classes, layers or path patterns", entry, f"{name}=[nn.Dense]"
    )


def describe(entry: Entry) -> str:
    if isinstance(entry, type):
        return entry.__name__
    return checks.short_repr(entry) if isinstance(entry, str) else f"this {type(entry).__name__}"


def _is_pattern(entry: Entry) -> bool:
    return isinstance(entry, str) and any(sign in entry for sign in "*?[")


def _some_paths(root: Node) -> str:
    paths = [node.path for node in root.walk() if node.path]
    return checks.join_names(paths) if paths else "a network without layers below it"
