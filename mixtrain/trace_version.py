"""Versions of layers, and the conditions under which the trace of a compiled call is valid.

A change of a layer retraces the compiled calls that run this layer, and no others.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Final, NamedTuple

from mixtrain.network.marks import VERSION
from mixtrain.network.walk import tree_of
from mixtrain.typing import Layer, Network

_numbers = itertools.count(1)


class Version(NamedTuple):
    """Version of a layer's computation.

    Attributes:
        stamp: A new number after each change that cannot be undone: a hook, `to_float`, a child cell.
        effect: The effect of the plan in force on the layer; None without one.
    """

    stamp: int = 0
    effect: Hashable = None


_UNCHANGED: Final = Version()


def version_of(layer: Layer) -> Version:
    """Return the version of a Cell, Keras layer or operation."""
    return VERSION.of(layer) or _UNCHANGED


def layer_changed(layer: Layer) -> None:
    """Record that the computation of a layer changed, so that compiled calls which run it are retraced."""
    _set(layer, version_of(layer)._replace(stamp=next(_numbers)))


def network_changed(network: Network) -> None:
    """Record that the computation of every layer of a network changed."""
    for node in tree_of(network).walk():
        layer_changed(node.layer)


def effect_changed(layer: Layer, effect: Hashable) -> None:
    """Record the effect of the plan in force on a layer; an earlier effect restores the earlier version."""
    _set(layer, version_of(layer)._replace(effect=effect))


class _Latest:
    """The number of the latest change of any layer.

    While it is the same, no versions need to be compared. What is retraced is decided by the versions alone.
    """

    number = 0


def _set(layer: Layer, version: Version) -> None:
    if version == _UNCHANGED:
        VERSION.remove(layer)
    else:
        VERSION.put(layer, version)
    # Last, so that another thread that sees the number sees the version, too.
    _Latest.number = next(_numbers)


class Versions:
    """Snapshot of the versions of layers, to compare with later ones.

    `layers`: Cells, Keras layers and operations. `plans`: Whether the effects of plans are compared, too.
    """

    def __init__(self, layers: Iterable[Layer], *, plans: bool = True) -> None:
        self._plans = plans
        self._latest = _Latest.number
        self._versions = [(layer, version_of(layer)) for layer in layers]

    def unchanged(self) -> bool:
        """Whether no layer has changed since."""
        latest = _Latest.number
        if latest != self._latest:
            if not self.may_be_valid_again():
                return False
            if self._plans and any(version_of(layer) != version for layer, version in self._versions):
                return False
            self._latest = latest
        return True

    def may_be_valid_again(self) -> bool:
        """Whether no layer has changed since, except for effects of plans, which may be undone."""
        return all(version_of(layer).stamp == version.stamp for layer, version in self._versions)


class _Tracing(threading.local):
    """The states of the functions being traced in this thread, the outermost first."""

    def __init__(self) -> None:
        self.states: list[TraceState] = []


_tracing = _Tracing()


class TraceState:
    """The versions and conditions that the trace of a function depends on.

    `layers`: The layers that the function is known to run. `modes`: Whether the trace depends on the training modes of
    these layers, too.
    """

    def __init__(self, layers: Iterable[Layer], *, modes: bool = False) -> None:
        self._layers = {id(layer): layer for layer in layers}
        self._conditions: dict[Callable[[], Hashable], Hashable] = {}
        self._versions = Versions(self._layers.values())
        # Read before the function runs, which may switch modes. (Keras layers get theirs as an argument.)
        trained = [layer for layer in self._layers.values() if "training" in vars(layer)] if modes else []
        self._trained = [(layer, bool(layer.training)) for layer in trained]

    def is_valid(self) -> bool:
        """Whether the trace is still valid."""
        if not self._versions.unchanged():
            return False
        for layer, training in self._trained:
            if layer.training is not training:
                return False
        for condition, value in self._conditions.items():
            if condition() != value:
                return False
        return True

    def may_be_valid_again(self) -> bool:
        """Whether the trace may become valid again: no change since is final."""
        return self._versions.may_be_valid_again()

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Collect the layers and conditions that a function depends on while it is traced."""
        _tracing.states.append(self)
        try:
            yield
        finally:
            _tracing.states.pop()
            # With the layers that `note_layer` added meanwhile.
            self._versions = Versions(self._layers.values())

    def note(self) -> None:
        """Add the layers and conditions of this state to those of the functions being traced."""
        for state in _tracing.states:
            if state is not self:
                state._layers.update(self._layers)
                state._conditions.update(self._conditions)


def note_layer(layer: Layer) -> None:
    """Record that the functions being traced run a layer."""
    for state in _tracing.states:
        state._layers[id(layer)] = layer


def note_condition(condition: Callable[[], Hashable]) -> None:
    """Record that the functions being traced depend on the current value of `condition`."""
    for state in _tracing.states:
        state._conditions[condition] = condition()
