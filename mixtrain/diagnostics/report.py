"""Runs as one HTML page without external files: facts, plan, curves, overflows, ranges, advice."""

from __future__ import annotations

import functools
import html
import importlib.resources
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from mixtrain import checks
from mixtrain.diagnostics.report_chart import Curve, Point, chart, stairs

# The required keys of the data of a report; `report_data` of a Model returns them.
PARTS: Final = ("network", "device", "run", "plan", "steps", "overflows", "ranges", "advice")
_COUNTED_FORMATS: Final = ("float16", "bfloat16")
_COUNTED_PARTS: Final = ("flushed", "subnormal", "overflow")
# Values of an epoch that the steps show.
_OF_STEPS: Final = ("loss_scale", "skipped_steps")
# The style sheet has a color for each of so many runs.
_COLORS: Final = 4
_MAX_OVERFLOWS: Final = 200
# The numbers of the steps before an overflow, and their heads.
_BEFORE: Final = {"loss": "loss", "grad_norm": "gradient norm", "loss_scale": "scale", "largest": "largest value"}
_UNTRAINED: Final = "This Model has not been trained yet: there is a plan, but no run to report on."
_BROKEN_OFF: Final = "The run ended before its first epoch did, so nothing is known of its steps."


def report_html(*runs: Mapping[str, Any], names: Sequence[str] = ()) -> str:
    """Return the HTML page of what ``model.report("run.json")`` writes; of several runs, side by side.

    `names`: A name for each run, to tell them apart.
    """
    missing = [part for part in PARTS if any(part not in run for run in runs)]
    if missing:
        raise checks.fail_value(
            "report", f"the data must have {checks.join_names(PARTS)}", f"none of {checks.join_names(missing)}",
            'model.report("run.json")',
        )
    heads = [f"{_text(run['network'])} at {_text(run['plan']['level'])}" for run in runs]
    if names:
        heads = [f"{_text(name)}: {head}" for name, head in zip(names, heads, strict=True)]
    sections: list[tuple[str, str, str]] = [("plan", "Precision plan", _beside(runs, heads, _plan))]
    trained = [(name, run) for name, run in zip(names or [""], runs, strict=True) if run["steps"]["loss"]]
    if trained:
        sections += [
            ("steps", "Loss, metrics and loss scale", _steps(trained)),
            ("overflows", "Overflows", _beside(runs, heads, _overflows)),
            ("ranges", "Ranges", _beside(runs, heads, _ranges)),
            ("advice", "Advice", _beside(runs, heads, _advice)),
        ]
    body = "\n".join(f'<section id="{name}"><h2>{head}</h2>\n{text}\n</section>' for name, head, text in sections)
    title = "mixtrain: " + " | ".join(heads)
    several = ' class="several"' if len(runs) > 1 else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_style()}</style></head>\n<body{several}><h1>{title}</h1>\n{_facts(runs, names)}\n{body}\n"
        "</body></html>\n"
    )


@functools.cache
def _style() -> str:
    return importlib.resources.files("mixtrain.diagnostics").joinpath("report.css").read_text(encoding="utf-8")


def _text(value: Any) -> str:
    return html.escape(str(value))


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else _text(value)


def _table(style: str, heads: Sequence[str], rows: Iterable[Sequence[str]], groups: str = "") -> str:
    """Return a table of cells in HTML, the first of each row its head; a cell may include its own ``<td>`` tag.

    `style`: The table's classes; one that is "stacked" has a block for each row where the page is narrow. `groups`: A
    row above the heads.
    """
    lines = [groups + "<tr>" + "".join(f"<th>{_text(name)}</th>" for name in heads) + "</tr></thead><tbody>"]
    for first, *rest in rows:
        cells = [cell if cell.startswith("<td") else f"<td>{cell}</td>" for cell in rest]
        labeled = (cell.replace("<td", f'<td data-label="{_text(name)}"', 1) for name, cell in zip(heads[1:], cells))
        lines.append(f"<tr><th>{first}</th>{''.join(labeled if 'stacked' in style else cells)}</tr>")
    return f'<div class="scroll"><table class="{style}"><thead>\n' + "\n".join(lines) + "\n</tbody></table></div>"


def _beside(runs: Sequence[Mapping[str, Any]], heads: Sequence[str], part: Callable[[Mapping[str, Any]], str]) -> str:
    """Return a part of each run, side by side where the page is wide enough; once, if it is the same for all."""
    texts = [part(run) for run in runs]
    if len(set(texts)) == 1:
        return ("<p>The same for each run.</p>\n" if len(runs) > 1 else "") + texts[0]
    columns = [f"<div><h3>{head}</h3>\n{text}</div>" for head, text in zip(heads, texts, strict=True)]
    return '<div class="runs">\n' + "\n".join(columns) + "\n</div>"


# ---- facts ------------------------------------------------------------------------------------------------------
def _facts(runs: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    """Return what is known of each run as a table with a column for each."""
    columns = [_facts_of(run) for run in runs]
    facts = dict.fromkeys(name for column in columns for name in column)
    rows = [(_text(name), *(_text(column.get(name, "-")) for column in columns)) for name in facts]
    notes = [_UNTRAINED if run["run"].get("started") is None else _BROKEN_OFF for run in runs
             if not run["steps"]["loss"]]
    return "\n".join([
        *(f'<p class="note">{note}</p>' for note in dict.fromkeys(notes)),
        _table("facts stacked" if len(runs) > 1 else "facts", ("", *(names or [""] * len(runs))), rows),
    ])


def _facts_of(run: Mapping[str, Any]) -> dict[str, str]:
    facts, steps = run["run"], run["steps"]
    result = {name: facts.get(name) for name in ("started", "optimizer", "loss scaling")}
    count, skipped = len(steps["loss"]), sum(map(bool, steps["overflow"]))
    if facts.get("seconds") is not None:
        result["duration"] = _duration(facts["seconds"]) + ("" if facts.get("finished", True) else ", ended early")
    if count:
        epochs = len(facts.get("epochs", ()))
        words = "1 epoch" if epochs == 1 else f"{epochs:,} epochs"
        result["steps"] = f"{count:,} in {words}, {skipped:,} skipped ({skipped / count:.1%})"
    values = facts["epochs"][-1]["values"] if facts.get("epochs") else {}
    result |= {f"last {name}": _number(value) for name, value in values.items() if name not in _OF_STEPS}
    if any(scale != 1 for scale in steps["loss_scale"]):
        first, last = (f"{steps['loss_scale'][index]:.10g}" for index in (0, -1))
        result["loss scale"] = first if first == last else f"{first} at first, {last} at last"
    result |= {"device": str(run["device"]).removeprefix("on "), "versions": facts.get("versions")}
    return {name: str(value) for name, value in result.items() if value is not None}


def _duration(seconds: float) -> str:
    hours, minutes = divmod(round(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {round(seconds) % 60} s" if minutes else (
        f"{seconds:.1f} s"
    )


# ---- plan -------------------------------------------------------------------------------------------------------
def _plan(run: Mapping[str, Any]) -> str:
    plan = run["plan"]

    def dtype(name: Any) -> str:
        return f'<td class="{_text(name or "none")}">{_text(name or "-")}</td>'

    rows = [
        (_text(row["path"] or "(network)"), _text(row["layer"]), dtype(row["compute_dtype"]),
         dtype(row["parameter_dtype"]), dtype(row["output_dtype"]), _text(row["rule"]),
         f'<td class="why">{_text(row.get("why", ""))}</td>')
        for row in plan["rows"]
    ]
    names = [row["compute_dtype"] for row in plan["rows"]]
    count = ", ".join(f"{names.count(name)} in {name}" for name in dict.fromkeys(names))
    head = ("layer", "class", "computes in", "parameters", "output", "rule", "why")
    return (f"<p>{_text(plan['reason'])}</p>\n<details open><summary>{len(names)} layers: {_text(count)}</summary>"
            f"{_table('plan stacked', head, rows)}</details>")


# ---- curves -----------------------------------------------------------------------------------------------------
def _steps(named: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return the charts of runs with their names, one for each name of a value."""
    runs = [run for _, run in named]
    first = min(int(run["steps"].get("first", 1)) for run in runs)
    last = max(int(run["steps"].get("first", 1)) + len(run["steps"]["loss"]) - 1 for run in runs)
    # Epochs of runs with other steps would be lines that no reader can tell apart.
    marks = {tuple((int(row["epoch"]), int(row["step"])) for row in run["run"].get("epochs", ())) for run in runs}
    epochs = marks.pop() if len(marks) == 1 else ()
    curves: dict[str, list[Curve]] = {"loss": []}
    scales = []
    for number, (name, run) in enumerate(named):
        style, prefix = f"run{number % _COLORS}", f"{name}: " if name else ""
        steps, start = run["steps"], int(run["steps"].get("first", 1))
        scale = [(start + index, float(value)) for index, value in enumerate(steps["loss_scale"])]
        skips = [point for point, overflow in zip(scale, steps["overflow"], strict=True) if overflow]
        losses = [
            (start + index, value) for index, (value, overflow) in enumerate(zip(steps["loss"], steps["overflow"]))
            if not overflow and value is not None and math.isfinite(value)
        ]
        curves["loss"].append(Curve(f"{prefix}loss of a step", style, losses, skips))
        for key, points in _epoch_curves(run["run"].get("epochs", ())).items():
            label = f"{prefix}{key}" if key.startswith("val_") else f"{prefix}{key} of an epoch"
            dashed = " dashed" if key.startswith("val_") else ""
            curves.setdefault(key.removeprefix("val_"), []).append(Curve(label, style + dashed, points, dots=True))
        if any(value != 1 for _, value in scale):
            scales.append(Curve(f"{name or 'loss scale'}", style, stairs(scale), skips))
    count, skipped = len(runs[0]["steps"]["loss"]), len(curves["loss"][0].skips)
    sentence = f"{count} steps, {skipped} of them skipped (red marks)." if len(runs) == 1 else (
        "Skipped steps have a red mark."
    )
    parts = [f"<p>{sentence}</p>", *(chart(name, group, first, last, epochs) for name, group in curves.items())]
    if scales:
        parts.append(chart("loss scale", scales, first, last, epochs, powers=True))
    return "\n".join(parts)


def _epoch_curves(epochs: Sequence[Mapping[str, Any]]) -> dict[str, list[Point]]:
    """Return the values of epochs by name; the mean loss of an epoch is left out, as the chart has the steps'."""
    result: dict[str, list[Point]] = {}
    for row in epochs:
        for name, value in row["values"].items():
            if value is not None and math.isfinite(value) and name not in (*_OF_STEPS, "loss"):
                result.setdefault(name, []).append((int(row["step"]), float(value)))
    return result


# ---- tables -----------------------------------------------------------------------------------------------------
def _overflows(run: Mapping[str, Any]) -> str:
    overflows = run["overflows"]
    if not overflows and not any(run["steps"]["overflow"]):
        return "<p>No step was skipped.</p>"
    if not overflows:
        return "<p>None is recorded. Model(..., explain_overflow=True) records what overflowed in skipped steps.</p>"
    rows = [
        (_number(row["step"]), *(f'<td class="number">{row[name]:.10g}</td>' for name in
                                 ("loss_scale", "next_loss_scale")), f'<td class="text">{_text(row["finding"])}</td>')
        for row in overflows[:_MAX_OVERFLOWS]
    ]
    rest = len(overflows) - len(rows)
    more = f"\n<p>and {rest:,} more, which the data of model.report(\"run.json\") have.</p>" if rest else ""
    parts = [_table("overflows stacked", ("step", "scale", "next scale", "verdict"), rows) + more]
    explained = next((row for row in reversed(overflows) if row.get("before")), None)
    if explained is not None:
        before = [
            [_number(step["step"]), *(f'<td class="number">{_number(step[name])}</td>' for name in _BEFORE)]
            for step in explained["before"]
        ]
        table = _table("overflows", ("step", *_BEFORE.values()), before)
        parts.append(f"<p>Before step {explained['step']}:</p>\n{table}")
    return "\n".join(parts)


def _ranges(run: Mapping[str, Any]) -> str:
    if not run["ranges"]:
        return "<p>None were sampled. callbacks=[mixtrain.RangeMonitor(every=50)] counts them.</p>"
    rows = []
    for row in run["ranges"]:
        largest = f'<td class="number">{_number(row["largest"])}</td>'
        cells = [_text(row["path"] or "(network)"), _text(row["kind"]), largest]
        for name in _COUNTED_FORMATS:
            counts = row["formats"][name]
            for part in _COUNTED_PARTS:
                share = counts[part] / max(row["values"], 1)
                marked = share >= 0.0005 and part != "subnormal"
                color = f' style="background:rgba(220,38,38,{min(0.1 + share * 2, 0.6):.2f})"' if marked else ""
                cells.append(f'<td class="number"{color}>{share:.1%}</td>')
            headroom = counts["headroom"]
            cells.append(f'<td class="number">{"" if headroom is None else f"{headroom:.1f}"}</td>')
        rows.append(cells)
    columns = [*_COUNTED_PARTS, "headroom"] * len(_COUNTED_FORMATS)
    groups = "".join(f'<th colspan="{len(_COUNTED_PARTS) + 1}">in {name}</th>' for name in _COUNTED_FORMATS)
    return (
        "<p>Shares of the values that a format would flush to zero, keep with fewer bits, or lose to infinity; "
        "headroom is the number of doublings that the largest value can take.</p>\n"
        + _table("ranges", ("layer", "kind", "largest", *columns), rows, f'<tr><th colspan="3"></th>{groups}</tr>')
    )


def _advice(run: Mapping[str, Any]) -> str:
    if not run["advice"]:
        return "<p>Nothing stands out.</p>"
    return "<ul>\n" + "\n".join(f"<li>{_text(line)}</li>" for line in run["advice"]) + "\n</ul>"
