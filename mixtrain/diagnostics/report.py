"""A run as one HTML page without external files: plan, loss and loss scale, overflows, ranges, advice."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from mixtrain import checks

# The required keys of the data of a report; `report_data` of a Model returns them.
PARTS: Final = ("network", "device", "plan", "steps", "overflows", "ranges", "advice")
_COLORS: Final = {
    "float32": "#dbeafe", "float64": "#bfdbfe", "float16": "#fde68a", "bfloat16": "#bbf7d0",
    "float8_e4m3fn": "#fbcfe8", "float8_e5m2": "#fbcfe8",
}
# Size and left margin of a chart in pixels, and the maximum number of points.
_WIDTH, _HEIGHT, _LEFT, _POINTS = 860, 180, 70, 1000
_COUNTED_FORMATS: Final = ("float16", "bfloat16")
_COUNTED_PARTS: Final = ("flushed", "subnormal", "overflow")
_STYLE: Final = """
body { font: 14px/1.45 system-ui, sans-serif; color: #1f2937; max-width: 980px; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em; border-bottom: 1px solid #d1d5db }
table { border-collapse: collapse; font-size: 12.5px } th, td { padding: 2px 9px; text-align: left }
th { border-bottom: 1px solid #9ca3af } td.number { text-align: right; font-variant-numeric: tabular-nums }
code { background: #f3f4f6; padding: 1px 4px } svg text { font: 11px system-ui, sans-serif; fill: #4b5563 }
.key { padding: 1px 8px; margin-right: 6px }
"""


def report_html(data: Mapping[str, Any]) -> str:
    """Return the HTML page of what ``model.report("run.json")`` writes."""
    missing = [part for part in PARTS if part not in data]
    if missing:
        raise checks.fail_value(
            "report", f"the data must have {checks.join_names(PARTS)}", f"none of {checks.join_names(missing)}",
            'model.report("run.json")',
        )
    title = f"mixtrain: {_text(data['network'])} at {_text(data['plan']['level'])}"
    sections = (
        ("plan", "Precision plan", _plan(data["plan"])),
        ("steps", "Loss and loss scale", _steps(data["steps"])),
        ("overflows", "Overflows", _overflows(data["overflows"])),
        ("ranges", "Ranges", _ranges(data["ranges"])),
        ("advice", "Advice", _advice(data["advice"])),
    )
    body = "\n".join(f'<section id="{name}"><h2>{head}</h2>\n{text}\n</section>' for name, head, text in sections)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>{title}</h1>\n<p>{_text(data['device'])}</p>\n{body}\n"
        "</body></html>\n"
    )


def _text(value: Any) -> str:
    return html.escape(str(value))


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else _text(value)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of cells in HTML; a cell may include its own ``<td>`` tag."""
    lines = ["<tr>" + "".join(f"<th>{_text(name)}</th>" for name in head) + "</tr>"]
    for row in rows:
        lines.append("<tr>" + "".join(cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in row) + "</tr>")
    return "<table>\n" + "\n".join(lines) + "\n</table>"


def _plan(plan: Mapping[str, Any]) -> str:
    def dtype(name: Any) -> str:
        return f'<td style="background:{_COLORS.get(str(name), "#fff")}">{_text(name or "-")}</td>'

    rows = [
        (_text(row["path"] or "(network)"), _text(row["layer"]), dtype(row["compute_dtype"]),
         dtype(row["parameter_dtype"]), dtype(row["output_dtype"]), _text(row["rule"]))
        for row in plan["rows"]
    ]
    head = ("layer", "class", "computes in", "parameters", "output", "rule")
    return f"<p>{_text(plan['reason'])}</p>\n{_table(head, rows)}"


def _steps(steps: Mapping[str, Sequence[Any]]) -> str:
    count = len(steps["loss"])
    if not count:
        return "<p>No steps were trained.</p>"
    skipped = [index for index, overflow in enumerate(steps["overflow"]) if overflow]
    losses = [None if overflow else loss for loss, overflow in zip(steps["loss"], steps["overflow"], strict=True)]
    return (
        f"<p>{count} steps, {len(skipped)} of them skipped (red marks).</p>\n"
        + _chart("loss", losses, skipped, logarithmic=False) + "\n"
        + _chart("loss scale", list(steps["loss_scale"]), skipped, logarithmic=True)
    )


def _chart(name: str, values: Sequence[float | None], marks: Sequence[int], *, logarithmic: bool) -> str:
    """Return a line chart over steps as SVG, with a mark on the axis for each skipped step."""
    count = len(values)
    finite = [(index, math.log2(value) if logarithmic and value > 0 else value) for index, value in enumerate(values)
              if value is not None and math.isfinite(value)]
    stride = max(1, math.ceil(len(finite) / _POINTS))
    finite = finite[::stride]
    low, high = (min(value for _, value in finite), max(value for _, value in finite)) if finite else (0.0, 1.0)
    span = (high - low) or 1.0

    def x(index: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - 10) * (index + 0.5) / count, 1)

    def y(value: float) -> float:
        return round(_HEIGHT - 26 - (_HEIGHT - 46) * (value - low) / span, 1)

    labels = "".join(
        f'<text x="{_LEFT - 6}" y="{y(value) + 4}" text-anchor="end">{2.0**value if logarithmic else value:.4g}</text>'
        for value in (low, high)
    )
    points = " ".join(f"{x(index)},{y(value)}" for index, value in finite)
    ticks = "".join(
        f'<line class="overflow" x1="{x(index)}" x2="{x(index)}" y1="{_HEIGHT - 24}" y2="{_HEIGHT - 16}" '
        'stroke="#dc2626" stroke-width="2"/>' for index in marks[:_POINTS]
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" role="img" aria-label="{name}">'
        f'<text x="{_LEFT}" y="12">{name}</text>{labels}'
        f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{_HEIGHT - 20}" y2="{_HEIGHT - 20}" stroke="#9ca3af"/>'
        f'<polyline points="{points}" fill="none" stroke="#2563eb" stroke-width="1.5"/>{ticks}'
        f'<text x="{_LEFT}" y="{_HEIGHT - 4}">step 1</text>'
        f'<text x="{_WIDTH - 10}" y="{_HEIGHT - 4}" text-anchor="end">step {count}</text></svg>'
    )


def _overflows(overflows: Sequence[Mapping[str, Any]]) -> str:
    if not overflows:
        return "<p>None is recorded. Model(..., explain_overflow=True) records what overflowed in skipped steps.</p>"
    rows = [
        (_number(row["step"]), *(f"{row[name]:.10g}" for name in ("loss_scale", "next_loss_scale")),
         _text(row["finding"]))
        for row in overflows
    ]
    return _table(("step", "scale", "next scale", "verdict"), rows)


def _ranges(ranges: Sequence[Mapping[str, Any]]) -> str:
    if not ranges:
        return "<p>None were sampled. callbacks=[mixtrain.RangeMonitor(every=50)] counts them.</p>"
    rows = []
    for row in ranges:
        cells = [_text(row["kind"]), _text(row["path"] or "(network)"), _number(row["largest"])]
        for name in _COUNTED_FORMATS:
            counts = row["formats"][name]
            for part in _COUNTED_PARTS:
                share = counts[part] / max(row["values"], 1)
                color = f"background:rgba(220,38,38,{min(share * 2, 0.6):.2f})" if part != "subnormal" else ""
                cells.append(f'<td class="number" style="{color}">{share:.1%}</td>')
        headroom = row["formats"]["float16"]["headroom"]
        rows.append((*cells, "" if headroom is None else f"{headroom:.1f}"))
    columns = [f"{name} {part}" for name in _COUNTED_FORMATS for part in _COUNTED_PARTS]
    return _table(("kind", "layer", "largest", *columns, "float16 headroom (bits)"), rows)


def _advice(advice: Sequence[str]) -> str:
    if not advice:
        return "<p>Nothing stands out.</p>"
    return "<ul>\n" + "\n".join(f"<li>{_text(line)}</li>" for line in advice) + "\n</ul>"
