"""What mixtrain notes on the layers, networks and variables of users: all of its attributes on them, in one table.

Each mark is an attribute of its own, not a field of one object: a shallow copy of a layer must not share later changes,
and the garbage collector may undo a plan, and so remove marks, at any time.
"""

from __future__ import annotations

from typing import Any, Final

# Marks with this prefix may lead to other networks that share a layer: `referenced_layers` does not follow them.
PREFIX: Final = "_mixtrain_"


class Mark:
    """An attribute of users' objects, by its name, stored past the attribute tracking of Cells and Keras layers."""

    def __init__(self, name: str) -> None:
        self.name = name

    def of(self, target: Any) -> Any | None:
        """Return the mark on an object; None without one."""
        return vars(target).get(self.name)

    def put(self, target: Any, value: Any) -> None:
        """Set the mark on an object."""
        object.__setattr__(target, self.name, value)

    def remove(self, target: Any) -> None:
        """Remove the mark from an object, if there is one."""
        vars(target).pop(self.name, None)


# On layers: a `Version`, the `Request` of `to_float`, and that of float8 products, the `Claims` of plans, the
# `PlannedRule` of the one in force, and the dtype policy that it replaces.
VERSION: Final = Mark("_mixtrain_version")
REQUEST: Final = Mark("_mixtrain_request")
FLOAT8_REQUEST: Final = Mark("_mixtrain_float8_request")
CLAIMS: Final = Mark("_mixtrain_claims")
PLANNED_RULE: Final = Mark("_mixtrain_planned_rule")
OWN_POLICY: Final = Mark("_mixtrain_own_policy")
# On layers: the `AmaxHistories` of its float8 products, by the plan in force.
HISTORIES: Final = Mark("_mixtrain_amax_histories")
# On networks: the `AppliedPlan` in force, the `PrecisionPlan` of `amp.initialize`, and what undoes `keras.prepare`.
APPLIED: Final = Mark("_mixtrain_applied")
DECIDED: Final = Mark("_mixtrain_decided")
RESTORE_TRAIN_STEP: Final = Mark("_mixtrain_restore_train_step")
# On cells that a Model returned: the `Lease` that keeps its plan applied while they live.
LEASE: Final = Mark("_plan_lease")
# On variables in half precision: the storage of their float32 copy; the variable with the rest that rounding left; and
# how a plan that stores them in half has them updated.
MASTER: Final = Mark("_mixtrain_master")
REST: Final = Mark("_mixtrain_rest")
STORED_BY_PLAN: Final = Mark("_mixtrain_stored_by_plan")
# On variables: the function that their gradient is passed through.
GRADIENT_HOOK: Final = Mark("_mixtrain_gradient_hook")
