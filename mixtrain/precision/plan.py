"""`PrecisionPlan` and its rows, one for each layer; a plan prints as a table."""

from __future__ import annotations

import dataclasses
from typing import Final

from mixtrain import backend, checks
from mixtrain.dtype import DType, float16, float32
from mixtrain.network.walk import variables_of
from mixtrain.precision.cast import CastRule
from mixtrain.precision.float8_state import AmaxHistories
from mixtrain.precision.levels import LEVELS
from mixtrain.text_table import aligned
from mixtrain.typing import Layer

LISTS: Final = ("white_list", "black_list")
# Rules that a user sets layer by layer: a call of `to_float`, and a Keras layer's own `dtype`.
TO_FLOAT: Final = "to_float"
DTYPE_POLICY: Final = "dtype policy"
_HEAD: Final = ("layer", "class", "computes in", "parameters", "output", "rule", "why")
# A column after "parameters", where some are sharded.
_SHARDED: Final = "sharded over"


@dataclasses.dataclass(frozen=True)
class PlannedRule:
    """The rule of a plan's row, by which the plan casts the layer; stored on it while the plan is in force.

    `by_user`: Whether a user set it (`to_float`, a layer's own dtype, an entry of a list), so that it covers all inside
    the layer.
    """

    name: str
    by_user: bool


@dataclasses.dataclass(frozen=True)
class PlanRow:
    """The dtypes of one layer, and the rule that decided them.

    Attributes:
        path: Path of the layer in the network; "" for the network itself.
        layer: Name of the layer's class.
        rule: The rule that won.
        why: Why it won.
        compute_dtype: The dtype that the layer computes in.
        parameter_dtype: The dtype in which its parameters are stored; None if it has none.
        output_dtype: The dtype of its floating-point outputs.
        cast: What is cast when the layer is called; None if the layer is left as it is.
        target: The layer itself.
        fused: Whether a Keras batch normalization runs in the backend's fused kernel.
        float8: The rule by which the layer's products are computed in float8, and their results returned in
            `compute_dtype`; None for none.
        histories: The magnitudes of earlier steps by which they are scaled; None for those of each step.
    """

    path: str
    layer: str
    rule: str
    why: str
    compute_dtype: DType
    parameter_dtype: DType | None
    output_dtype: DType
    cast: CastRule | None = dataclasses.field(repr=False)
    target: Layer = dataclasses.field(repr=False, compare=False)
    fused: bool = False
    float8: DType | None = None
    histories: AmaxHistories | None = dataclasses.field(default=None, repr=False, compare=False)

    @property
    def computes_in(self) -> str:
        """What the layer computes in, in words."""
        return self.compute_dtype.name if self.float8 is None else f"{self.float8.name} (e4m3, gradients e5m2)"

    @property
    def sharded_over(self) -> str:
        """The axes of the mesh of devices over which the layer's parameters are sharded; "" for none."""
        axes = (axis for variable in variables_of(self.target) for axis in backend.sharding_axes(variable))
        return ", ".join(dict.fromkeys(axes))

    @property
    def by_user(self) -> bool:
        """Whether a user set the rule for this layer."""
        return self.rule in (TO_FLOAT, DTYPE_POLICY) or (self.rule in LISTS and self.why.startswith("matches"))


@dataclasses.dataclass(frozen=True)
class PrecisionPlan:
    """The precision plan of a network; ``print(plan)`` shows it as a table.

    Attributes:
        level: The resolved level, "O0" to "O3"; with a list "white_list" or "black_list".
        half: The half dtype in use.
        reason: Why this level was chosen.
        rows: A row for each layer, parents first.
        notes: Sentences below the table, as about weights that are stored in half.
    """

    level: str
    half: DType
    reason: str
    rows: tuple[PlanRow, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return _as_table(self)

    @property
    def scales_loss(self) -> bool:
        """Whether the level scales the loss by default in this half dtype."""
        level = LEVELS.get(self.level)
        return level is not None and level.scales_loss and self.half == float16

    def compute_dtypes(self) -> frozenset[DType]:
        """Return the dtypes that layers compute in."""
        return frozenset(row.compute_dtype for row in self.rows)

    def row(self, path: str) -> PlanRow:
        """Return the row of one layer. Raises: KeyError if no layer has this path."""
        for row in self.rows:
            if row.path == path:
                return row
        paths = checks.join_names(row.path for row in self.rows)
        raise KeyError(f"plan: no layer has the path {checks.short_repr(path)}; there are {paths}.")


def _as_table(plan: PrecisionPlan) -> str:
    """Format a plan as aligned columns, between a title with the level and a count of layers by dtype."""
    over = [row.sharded_over for row in plan.rows]
    rows = [
        (
            row.path or "(network)", row.layer, row.computes_in,
            row.parameter_dtype.name if row.parameter_dtype else "-", *([axes or "-"] if any(over) else []),
            row.output_dtype.name, row.rule, row.why,
        )
        for row, axes in zip(plan.rows, over, strict=True)
    ]
    lines = aligned([(*_HEAD[:4], *([_SHARDED] if any(over) else []), *_HEAD[4:]), *rows])
    separator = "-" * max(len(line) for line in lines)
    count = {dtype: sum(row.compute_dtype == dtype for row in plan.rows) for dtype in sorted(plan.compute_dtypes())}
    total = ", ".join(f"{number} in {dtype.name}" for dtype, number in count.items())
    float8 = sum(row.float8 is not None for row in plan.rows)
    total += f"; products of {float8} in float8" if float8 else ""
    half = f", half is {plan.half.name}" if plan.half in count else ""
    title = f"precision plan: {plan.level}{half} ({plan.reason})"
    setting = backend.tf32_products() if float32 in count else ""
    note = [f"float32 products run in TF32 on this device: {setting} changes that"] if setting else []
    summary = f"{len(rows)} layers: {total}"
    return "\n".join([title, separator, lines[0], separator, *lines[1:], separator, summary, *plan.notes, *note])
