"""What a compiled call was traced under: a version of each layer that it runs, and what else its trace depends on.

A change belongs to the layer that changed. It retraces the compiled calls that run this layer, and no others.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from mixtrain.network.walk import tree_of

_ATTRIBUTE: Final = "_mixtrain_version"
_numbers = itertools.count(1)


class Version(NamedTuple):
    """How a layer computes.

    Attributes:
        stamp: Another number after each change that cannot be taken back: a hook, `to_float`, a child cell.
        effect: What the plan in force makes of the layer; None where it is as its user left it.
    """

    stamp: int = 0
    effect: Hashable = None


_UNCHANGED: Final = Version()


def version_of(layer: Any) -> Version:
    """Return the version of a Cell, Keras layer or operation."""
    return vars(layer).get(_ATTRIBUTE, _UNCHANGED)


def layer_changed(layer: Any) -> None:
    """Note that a layer computes in another way from now on, so that what runs it is retraced."""
    _set(layer, version_of(layer)._replace(stamp=next(_numbers)))


def network_changed(network: Any) -> None:
    """Note that a network computes in another way from now on, and so does every layer of it."""
    for node in tree_of(network).walk():
        layer_changed(node.layer)


def effect_changed(layer: Any, effect: Hashable) -> None:
    """Note what the plan in force makes of a layer; with an earlier effect the layer has an earlier version again."""
    _set(layer, version_of(layer)._replace(effect=effect))


class _Latest:
    """The number of the latest change of any layer: where it is the same nothing has changed, and nothing is compared.

    It decides no more than that; what is retraced is decided by the versions.
    """

    number = 0


def _set(layer: Any, version: Version) -> None:
    if version == _UNCHANGED:
        vars(layer).pop(_ATTRIBUTE, None)
    else:
        # Past the attribute tracking of Cells and Keras layers.
        object.__setattr__(layer, _ATTRIBUTE, version)
    # Last: another thread that sees the number sees the version.
    _Latest.number = next(_numbers)


class Versions:
    """The versions of layers as they are now, to be compared with those of a later time.

    Args:
        layers: Cells, Keras layers and operations.
        plans: Whether what plans make of the layers is compared, too.
    """

    def __init__(self, layers: Iterable[Any], *, plans: bool = True) -> None:
        self._plans = plans
        self._latest = _Latest.number
        self._versions = [(layer, version_of(layer)) for layer in layers]

    def hold(self) -> bool:
        """Whether every layer is as it was."""
        latest = _Latest.number
        if latest != self._latest:
            if not self.may_hold_again() or self._plans and any(version_of(one) != was for one, was in self._versions):
                return False
            self._latest = latest
        return True

    def may_hold_again(self) -> bool:
        """Whether every layer is as it was, or will be once plans are put in force or undone."""
        return all(version_of(layer).stamp == version.stamp for layer, version in self._versions)


class _Tracing(threading.local):
    """The states of the functions that are being traced in this thread, the outermost first."""

    def __init__(self) -> None:
        self.states: list[TraceState] = []


_tracing = _Tracing()


class TraceState:
    """What a function is traced under: the versions of its layers, and what else is noted while it is traced.

    Args:
        layers: The layers that the function is known to run.
        modes: Whether the trace depends on which of these are in training, too.
    """

    def __init__(self, layers: Iterable[Any], *, modes: bool = False) -> None:
        self._layers = {id(layer): layer for layer in layers}
        self._conditions: dict[Callable[[], Hashable], Hashable] = {}
        self._versions = Versions(self._layers.values())
        # As they are before the function runs, which may switch them. (Keras layers are told by an argument.)
        trained = [layer for layer in self._layers.values() if "training" in vars(layer)] if modes else []
        self._trained = [(layer, bool(layer.training)) for layer in trained]

    def holds(self) -> bool:
        """Whether all is as it was when the function was traced."""
        if not self._versions.hold():
            return False
        for layer, training in self._trained:
            if layer.training is not training:
                return False
        for condition, value in self._conditions.items():
            if condition() != value:
                return False
        return True

    def may_hold_again(self) -> bool:
        """Whether all that has changed since can be taken back."""
        return self._versions.may_hold_again()

    @contextlib.contextmanager
    def tracing(self) -> Iterator[None]:
        """Note the cells and conditions that a function depends on while it is traced."""
        _tracing.states.append(self)
        try:
            yield
        finally:
            _tracing.states.pop()
            self._versions = Versions(self._layers.values())

    def note(self) -> None:
        """Note for the functions that are being traced that they run what this state is of."""
        for state in _tracing.states:
            if state is not self:
                state._layers.update(self._layers)
                state._conditions.update(self._conditions)


def note_layer(layer: Any) -> None:
    """Note that the functions that are being traced run a layer."""
    for state in _tracing.states:
        state._layers[id(layer)] = layer


def note_condition(condition: Callable[[], Hashable]) -> None:
    """Note that the functions that are being traced depend on what `condition` returns now."""
    for state in _tracing.states:
        state._conditions[condition] = condition()
