"""The facts of a plan: a row for each layer, and the plan, which prints as a table."""

from __future__ import annotations

import dataclasses
from typing import Any

from mixtrain.dtype import DType
from mixtrain.precision.cast import CastRule
from mixtrain.precision.report import as_table


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
        fused: Whether a batch normalisation of Keras's runs in the engine's fused kernel.
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
        return as_table(self)

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
        raise KeyError(f"plan: no layer has the path {path!r}; there are {', '.join(r.path for r in self.rows)}.")
