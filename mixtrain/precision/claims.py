"""The claims of plans on one layer: the last plan's row is in force; when that plan goes, the one's before is again."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import Any, Final, Protocol

from mixtrain.precision.plan import PlanRow
from mixtrain.precision.row_effect import AS_IT_IS, Undo, effect_of, put_row, take_back
from mixtrain.trace_version import effect_changed

_ATTRIBUTE: Final = "_mixtrain_claims"


class Claimant(Protocol):
    """A plan that claims layers of its network.

    Attributes:
        network: The network.
        covered: Its rows that are not in force because a later plan has another one, by the id of the layer.
    """

    network: Any
    covered: dict[int, PlanRow]


class Claims:
    """The plans that have a row for one layer, the one in force last.

    Args:
        layer: The Cell, Keras layer or operation.
    """

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self._rows: list[tuple[Claimant, PlanRow]] = []
        self._effect: Hashable = AS_IT_IS
        self._done: list[Undo] = []

    def put(self, claimant: Claimant, row: PlanRow) -> bool:
        """Put a plan's row in force, before those of other plans; return whether the layer changed."""
        self._rows = [*(entry for entry in self._rows if entry[0] is not claimant), (claimant, row)]
        return self._settle()

    def drop(self, claimant: Claimant) -> bool:
        """Forget a plan's row; return whether the layer changed."""
        self._rows = [entry for entry in self._rows if entry[0] is not claimant]
        claimant.covered.pop(id(self._layer), None)
        changed = self._settle()
        if not self._rows:
            object.__delattr__(self._layer, _ATTRIBUTE)
        return changed

    def _settle(self) -> bool:
        """Put in force what the last plan says, where it is something else."""
        before, effect = self._effect, effect_of(self._rows[-1][1]) if self._rows else AS_IT_IS
        for claimant, row in self._rows:
            if effect_of(row) == effect:
                claimant.covered.pop(id(self._layer), None)
            else:
                claimant.covered[id(self._layer)] = row
        if effect == before:
            return False
        take_back(self._done)
        self._effect = effect
        effect_changed(self._layer, effect)
        if effect != AS_IT_IS:
            put_row(self._rows[-1][1], self._done)
        return True

    def __deepcopy__(self, memo: dict[int, Any]) -> Claims:
        """Copy them for a copy of the layer: with the plans of networks that are copied too."""
        copied = Claims(copy.deepcopy(self._layer, memo))
        copied._effect, copied._done = self._effect, copy.deepcopy(self._done, memo)
        copied._rows = [copy.deepcopy(entry, memo) for entry in self._rows if id(entry[0].network) in memo]
        return copied


def claims_on(layer: Any) -> Claims:
    """Return the claims on a layer."""
    claims = vars(layer).get(_ATTRIBUTE)
    if claims is None:
        claims = Claims(layer)
        object.__setattr__(layer, _ATTRIBUTE, claims)
    return claims
