"""A plan as a table that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mixtrain.precision.plan import PrecisionPlan

_HEAD = ("layer", "class", "computes in", "parameters", "output", "rule", "why")


def as_table(plan: PrecisionPlan) -> str:
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
    widths = [max(len(cells[column]) for cells in (_HEAD, *rows)) for column in range(len(_HEAD))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip()
             for cells in (_HEAD, *rows)]
    rule = "-" * max(len(line) for line in lines)
    count = {dtype: sum(row.compute_dtype == dtype for row in plan.rows) for dtype in sorted(plan.compute_dtypes())}
    total = ", ".join(f"{number} in {dtype.name}" for dtype, number in count.items())
    half = f", half is {plan.half.name}" if plan.half in count else ""
    title = f"precision plan: {plan.level}{half} ({plan.reason})"
    return "\n".join([title, rule, lines[0], rule, *lines[1:], rule, f"{len(rows)} layers: {total}"])
