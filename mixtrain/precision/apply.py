"""Applying a plan to a network, the only mutation of it, and undoing it."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import keras

from mixtrain.network.marks import APPLIED, LEASE
from mixtrain.network.walk import tree_of
from mixtrain.precision.claims import claimants_of, claims_on
from mixtrain.precision.half_storage import HalfStorage, keep_in_float32
from mixtrain.precision.keras_functions import rebuild_functions, record_network
from mixtrain.precision.plan import PlanRow, PrecisionPlan
from mixtrain.typing import Layer, Network

_numbers = itertools.count(1)


class AppliedPlan:
    """A plan that was applied to a network; `undo` reverts it.

    A layer that networks share computes by the plan that was applied last. If two plans agree on a layer, both are in
    force; otherwise the earlier plan takes effect again when the later one is undone.

    Args:
        network: The network.
        plan: The plan.
        lasting: Whether it stays in force under Models without a level; False for a Model's, which ends with it.
        planning: Makes the plan again, for a network that has changed since; None to leave it as it is.
        storage: How it stores parameters.

    Attributes:
        network, plan: As passed.
        number: Counts the plans in the order in which they were applied.
        undone: Whether the plan was undone, or replaced by another one of the network.
    """

    def __init__(
        self, network: Network, plan: PrecisionPlan, *, lasting: bool = True,
        planning: Callable[[], PrecisionPlan] | None = None, storage: HalfStorage = HalfStorage(),
    ) -> None:
        self.network = network
        self.plan = plan
        self.lasting = lasting
        self.planning = planning
        self.storage = storage
        self.stored: list[keras.Variable] = []
        self.number = next(_numbers)
        self.covered: dict[int, PlanRow] = {}
        self.undone = False
        # The lasting plan of the same network, which is in force again when this one is undone.
        self._below: AppliedPlan | None = None

    @property
    def in_force(self) -> bool:
        """Whether every layer computes as planned: the plan was not undone, and no later plan changed a layer."""
        return not self.undone and not self.covered

    def enforce(self) -> None:
        """Apply the plan again to the layers that a later plan of another network changed."""
        with _changing() as changed:
            changed |= self._claim(list(self.covered.values()))

    def undo(self) -> None:
        """Restore every layer; a second call does nothing."""
        with _changing() as changed:
            changed |= self._drop()
        above = applied_plan(self.network)
        if above is self and self._below is not None:
            APPLIED.put(self.network, self._below)
        elif above is self:
            APPLIED.remove(self.network)
        elif above is not None and above._below is self:
            above._below = None

    def _claim(self, rows: Sequence[PlanRow]) -> set[int]:
        """Apply rows; return the ids of the layers that changed."""
        try:
            return {id(row.target) for row in rows if claims_on(row.target).put(self, row)}
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> set[int]:
        """Remove the plan from its layers; return the ids of the layers that changed."""
        if self.undone:
            return set()
        self.undone = True
        if self.stored:
            keep_in_float32(self.network, self.stored)
        return {id(row.target) for row in self.plan.rows if claims_on(row.target).drop(self)}


# Plans are applied and undone one at a time. The garbage collector may finalize a Model, and so undo its plan, while
# another plan is being applied.
_LOCK: Final = threading.Lock()
_pending_undos: Final[list[AppliedPlan]] = []


@contextlib.contextmanager
def _changing() -> Iterator[set[int]]:
    """Hold the lock while layers change; yields a set for the ids of the layers that do."""
    changed: set[int] = set()
    with _LOCK:
        yield changed
    if changed:
        rebuild_functions(changed)
    _run_pending_undos()


def undo_soon(applied: AppliedPlan) -> None:
    """Undo a plan now, or after the change in progress. For finalizers, which run at any time."""
    _pending_undos.append(applied)
    # The collector runs them amid a user's custom gradient, which must read no variable, or a scope of Keras that casts
    # what is read or keeps what is written: these are a thread's own. The thread may need a lock of the code around.
    thread = threading.Thread(target=_run_pending_undos, daemon=True)
    thread.start()
    thread.join(timeout=5.0)


def _run_pending_undos() -> None:
    while _pending_undos and not _LOCK.locked():
        _pending_undos.pop().undo()


def apply_plan(network: Network, plan: PrecisionPlan) -> AppliedPlan:
    """Apply a plan to its network, in place of a plan that is in force on it.

    Args:
        network: The network that `plan` was made for.
        plan: From `plan_precision`.

    Raises: ValueError if the plan was made for another network.

    Example: ``applied = apply_plan(network, plan_precision(network, "O2"))``, then ``applied.undo()``.
    """
    if not plan.rows or plan.rows[0].target is not network:
        raise ValueError(
            "apply_plan: the plan must be one of this network; got a plan of another. "
            "Write apply_plan(network, plan_precision(network, ...))."
        )
    return put_in_force(AppliedPlan(network, plan))


def put_in_force(applied: AppliedPlan) -> AppliedPlan:
    """Put a plan in force on its network, in place of the one before; a lasting plan stays below one that is not."""
    network, rows = applied.network, applied.plan.rows
    previous = applied_plan(network)
    record_network(network, (row.target for row in rows))
    replaced = [] if previous is None else [previous]
    if previous is not None and previous._below is not None:
        replaced.append(previous._below)
    if replaced and replaced[-1].lasting and not applied.lasting:
        applied._below = replaced.pop()
    with _changing() as changed:
        changed |= applied._claim(rows)
        # The previous plan goes last, so that a layer with the same row in both plans does not change.
        for plan in replaced:
            changed |= plan._drop()
        applied.stored = applied.storage.store(network, applied.plan)
    APPLIED.put(network, applied)
    return applied


def applied_plan(network: Network) -> AppliedPlan | None:
    """Return the plan in force on a network, or None."""
    return APPLIED.of(network)


class Lease:
    """Keeps the plan of a Model applied while it is alive: held by the Model, and by the cells that it has returned."""

    # A network outlives its Models, and then computes as it did before. But a script may keep nothing but the
    # train cell of a Model: without the lease, that cell would change its precision when the Model is collected.
    def __init__(self, network: Network) -> None:
        self.network = network

    def with_cell(self, cell: Layer, network: Network) -> Layer:
        """Attach the lease to a cell that wraps the network; return the cell."""
        if cell is not network:
            LEASE.put(cell, self)
        return cell


def kept_plans(network: Network) -> list[AppliedPlan]:
    """Return the plans that a Model without a level keeps in force on layers of its network, the last applied last.

    These are the lasting ones, and that of another Model whose train network is in the network.
    """
    plans: dict[int, AppliedPlan] = {}
    for node in tree_of(network).walk():
        plans |= {id(plan): plan for plan in claimants_of(node.layer) if plan.lasting}
        lease = LEASE.of(node.layer)
        leased = None if lease is None else applied_plan(lease.network)
        if leased is not None:
            plans[id(leased)] = leased
    return sorted(plans.values(), key=lambda plan: plan.number)


@contextlib.contextmanager
def under_plan(network: Network, plan: PrecisionPlan) -> Iterator[None]:
    """Apply a plan for the duration of a context. Nothing that was compiled before is recompiled afterwards."""
    applied = AppliedPlan(network, plan, lasting=False)
    with _LOCK:
        applied._claim(plan.rows)
    try:
        yield
    finally:
        with _LOCK:
            applied._drop()
        _run_pending_undos()
