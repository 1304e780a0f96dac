"""`Claims`: the plans that have a row for one layer, of which the last one is in force."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any, Protocol

from mixtrain.network.marks import CLAIMS
from mixtrain.precision.plan import PlanRow
from mixtrain.precision.row_effect import UNCHANGED, Undo, apply_row, effect_of, undo_row
from mixtrain.trace_version import effect_changed
from mixtrain.typing import Layer, Network


class Claimant(Protocol):
    """A plan that claims the layers of its network. `covered`: The rows that a later plan overrides, by layer id."""

    network: Network
    covered: dict[int, PlanRow]


class Claims:
    """The plans that have a row for one layer, in the order in which they were applied.

    Networks may share a layer. The row of the last plan is in force; when that plan is undone, the one before it takes
    effect again.
    """

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._rows: list[tuple[Claimant, PlanRow]] = []
        self._effect: Hashable = UNCHANGED
        self._undo: list[Undo] = []

    def put(self, claimant: Claimant, row: PlanRow) -> bool:
        """Put the row of a plan in force; return whether the layer changed."""
        self._rows = [*(entry for entry in self._rows if entry[0] is not claimant), (claimant, row)]
        return self._update()

    def drop(self, claimant: Claimant) -> bool:
        """Remove the row of a plan; return whether the layer changed."""
        self._rows = [entry for entry in self._rows if entry[0] is not claimant]
        claimant.covered.pop(id(self._layer), None)
        changed = self._update()
        if not self._rows:
            CLAIMS.remove(self._layer)
        return changed

    def _update(self) -> bool:
        """Put the last row in force if its effect is another one than the current; return whether it is."""
        previous, effect = self._effect, effect_of(self._rows[-1][1]) if self._rows else UNCHANGED
        for claimant, row in self._rows:
            if effect_of(row) == effect:
                claimant.covered.pop(id(self._layer), None)
            else:
                claimant.covered[id(self._layer)] = row
        if effect == previous:
            return False
        undo_row(self._undo)
        self._effect = effect
        effect_changed(self._layer, effect)
        if effect != UNCHANGED:
            apply_row(self._rows[-1][1], self._undo)
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> Claims:
        """Copy the claims for a copy of the layer, with the plans of those networks that are copied too."""
        copied = Claims(copy.deepcopy(self._layer, memo))
        copied._effect, copied._undo = self._effect, copy.deepcopy(self._undo, memo)
        copied._rows = [copy.deepcopy(entry, memo) for entry in self._rows if id(entry[0].network) in memo]
        return copied


def claimants_of(layer: Layer) -> list[Any]:
    """Return the plans that have a row for a layer, the last one in force."""
    claims = CLAIMS.of(layer)
    return [] if claims is None else [claimant for claimant, _ in claims._rows]


def claims_on(layer: Layer) -> Claims:
    claims = CLAIMS.of(layer)
    if claims is None:
        claims = Claims(layer)
        CLAIMS.put(layer, claims)
    return claims
