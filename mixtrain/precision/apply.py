"""Carrying a plan out: the only change made to a network, and its undoing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mixtrain.precision.claims import claims_on
from mixtrain.precision.keras_functions import make_again, remember
from mixtrain.precision.plan import PlanRow, PrecisionPlan

_ATTRIBUTE: Final = "_mixtrain_applied"


class AppliedPlan:
    """A plan in force on a network; `undo` takes it back.

    A layer that networks share computes by the plan that was put in force last. Where two plans agree on a layer both
    are in force; where they do not, the earlier one comes back when the later one is undone.

    Attributes:
        network: The network.
        plan: The plan.
    """

    def __init__(self, network: Any, plan: PrecisionPlan) -> None:
        self.network = network
        self.plan = plan
        self.covered: dict[int, PlanRow] = {}
        self._undone = False

    @property
    def in_force(self) -> bool:
        """Whether every layer computes as the plan says: it was not undone, and no later plan changed a layer."""
        return not self._undone and not self.covered

    def enforce(self) -> None:
        """Put the plan in force again where a later plan of another network changed layers."""
        with _changing() as changed:
            changed |= self._claim(list(self.covered.values()))

    def undo(self) -> None:
        """Put every layer back as it was; a second call does nothing."""
        with _changing() as changed:
            changed |= self._drop()
        if applied_plan(self.network) is self:
            object.__delattr__(self.network, _ATTRIBUTE)

    def _claim(self, rows: Sequence[PlanRow]) -> set[int]:
        """Put rows in force; return the ids of the layers that changed."""
        try:
            return {id(row.target) for row in rows if claims_on(row.target).put(self, row)}
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> set[int]:
        if self._undone:
            return set()
        self._undone = True
        return {id(row.target) for row in self.plan.rows if claims_on(row.target).drop(self)}


# Plans are put in force and taken back one after the other, also where a Model ends while another plan is put in force.
_LOCK: Final = threading.Lock()
_left: Final[list[AppliedPlan]] = []


@contextlib.contextmanager
def _changing() -> Iterator[set[int]]:
    """Change layers; the ids of those that changed are put into the set that this gives."""
    changed: set[int] = set()
    with _LOCK:
        yield changed
    if changed:
        make_again(changed)
    _undo_left()


def undo_soon(applied: AppliedPlan) -> None:
    """Undo a plan now, or after the change that is going on: for finalizers, which run at any time."""
    _left.append(applied)
    _undo_left()


def _undo_left() -> None:
    while _left and not _LOCK.locked():
        _left.pop().undo()


def apply_plan(network: Any, plan: PrecisionPlan) -> AppliedPlan:
    """Make a network compute as a plan says, after undoing the plan that was in force on it.

    Args:
        network: The network that `plan` was made for.
        plan: From `plan_precision`.

    Returns:
        The applied plan, whose `undo` takes it back.

    Raises:
        ValueError: The plan was made for another network.

    Example:
        >>> import keras, mixtrain
        >>> network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
        >>> applied = apply_plan(network, mixtrain.amp.plan_precision(network, "O2"))
        >>> network.layers[0].compute_dtype
        'float16'
        >>> applied.undo()
        >>> network.layers[0].compute_dtype
        'float32'
    """
    if not plan.rows or plan.rows[0].target is not network:
        raise ValueError(
            "apply_plan: the plan must be one of this network; got a plan of another. "
            "Write apply_plan(network, plan_precision(network, ...))."
        )
    before, applied = applied_plan(network), AppliedPlan(network, plan)
    remember(network, (row.target for row in plan.rows))
    with _changing() as changed:
        changed |= applied._claim(plan.rows)
        # Last: a layer for which both have the same row does not change.
        if before is not None:
            changed |= before._drop()
    object.__setattr__(network, _ATTRIBUTE, applied)
    return applied


def applied_plan(network: Any) -> AppliedPlan | None:
    """Return the plan in force on a network, or None."""
    return vars(network).get(_ATTRIBUTE)


@contextlib.contextmanager
def under_plan(network: Any, plan: PrecisionPlan) -> Iterator[None]:
    """Let a network compute as a plan says until the end; then all is as it was, and nothing is recompiled.

    Args:
        network: The network that `plan` was made for.
        plan: From `plan_precision`.
    """
    applied = AppliedPlan(network, plan)
    with _LOCK:
        applied._claim(plan.rows)
    try:
        yield
    finally:
        with _LOCK:
            applied._drop()
        _undo_left()
