"""The facts of a plan: a row for each layer, and the plan, which prints as a table."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Final

from mixtrain import backend, checks
from mixtrain.dtype import DType, float32
from mixtrain.precision.cast import CastRule
from mixtrain.text_table import aligned

_PLANNED: Final = "_mixtrain_planned_rule"
_LISTS: Final = ("white_list", "black_list")
# The rules of a user's, layer by layer: a call of `to_float`, and a Keras layer's own `dtype`.
TO_FLOAT: Final = "to_float"
DTYPE_POLICY: Final = "dtype policy"
_HEAD: Final = ("layer", "class", "computes in", "parameters", "output", "rule", "why")


@dataclasses.dataclass(frozen=True)
class PlannedRule:
    """What a layer remembers of its row while a plan is in force.

    Attributes:
        name: The rule that won.
        by_user: Whether it is a user's (`to_float`, a layer's own dtype, a list's entry), which covers all that is
            computed inside.
    """

    name: str
    by_user: bool


@dataclasses.dataclass(frozen=True)
class PlanRow:
    """What one layer does.

    Attributes:
        path: Its place in the network; "" for the network itself.
        layer: The class's name.
        rule: The rule that won.
        why: Why it won.
        compute_dtype: The format it computes in.
        parameter_dtype: The format its parameters are stored in, or None where it has none.
        output_dtype: The format of its float outputs.
        cast: What is cast when it is called; None where the layer is left as it is.
        target: The layer itself.
        fused: Whether a batch normalization of Keras's runs in the backend's fused kernel.
    """

    path: str
    layer: str
    rule: str
    why: str
    compute_dtype: DType
    parameter_dtype: DType | None
    output_dtype: DType
    cast: CastRule | None = dataclasses.field(repr=False)
    target: Any = dataclasses.field(repr=False, compare=False)
    fused: bool = False

    @property
    def by_user(self) -> bool:
        """Whether the rule is a user's, given for this layer."""
        return self.rule in (TO_FLOAT, DTYPE_POLICY) or (self.rule in _LISTS and self.why.startswith("matches"))


@dataclasses.dataclass(frozen=True)
class PrecisionPlan:
    """A network's plan; ``print(plan)`` shows it as a table.

    Attributes:
        level: The level that was resolved ("O0" to "O3"), or "custom" for lists.
        half: The half format in use.
        reason: Why this level, where the device chose it.
        rows: A row for each layer, parents first.
    """

    level: str
    half: DType
    reason: str
    rows: tuple[PlanRow, ...]

    def __str__(self) -> str:
        return _as_table(self)

    def compute_dtypes(self) -> frozenset[DType]:
        """Return the formats that layers compute in."""
        return frozenset(row.compute_dtype for row in self.rows)

    def row(self, path: str) -> PlanRow:
        """Return the row of one layer.

        Raises:
            KeyError: No layer has this path.
        """
        for row in self.rows:
            if row.path == path:
                return row
        paths = checks.listed(row.path for row in self.rows)
        raise KeyError(f"plan: no layer has the path {checks.shown(path)}; there are {paths}.")


def _as_table(plan: PrecisionPlan) -> str:
    """Return the plan as lines of aligned columns, the level first and a count of formats last."""
    rows = [
        (
            row.path or "(network)",
            row.layer,
            row.compute_dtype.name,
            row.parameter_dtype.name if row.parameter_dtype else "-",
            row.output_dtype.name,
            row.rule,
            row.why,
        )
        for row in plan.rows
    ]
    lines = aligned([_HEAD, *rows])
    rule = "-" * max(len(line) for line in lines)
    count = {dtype: sum(row.compute_dtype == dtype for row in plan.rows) for dtype in sorted(plan.compute_dtypes())}
    total = ", ".join(f"{number} in {dtype.name}" for dtype, number in count.items())
    half = f", half is {plan.half.name}" if plan.half in count else ""
    title = f"precision plan: {plan.level}{half} ({plan.reason})"
    changed_by = backend.tf32_products() if float32 in count else ""
    note = [f"float32 products run in TF32 on this device: {changed_by} changes that"] if changed_by else []
    return "\n".join([title, rule, lines[0], rule, *lines[1:], rule, f"{len(rows)} layers: {total}", *note])


def planned_rule(layer: Any) -> PlannedRule | None:
    """Return the rule of the plan in force that casts a layer, or None."""
    return getattr(layer, _PLANNED, None)


def note_rule(row: PlanRow) -> Callable[[], None]:
    """Let a layer remember its row's rule; return what takes it back."""
    object.__setattr__(row.target, _PLANNED, PlannedRule(row.rule, row.by_user))
    return functools.partial(object.__delattr__, row.target, _PLANNED)
