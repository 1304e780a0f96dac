"""Format a record as a section of docs/benchmarks_gpu.md; missing values are shown as "not measured"."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.gpu_cases import CASES
from benchmarks.gpu_facts import limit_rows
from benchmarks.table import goals_table, line, short

PAGE: Final = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks_gpu.md"
NO: Final = "not measured"


def as_markdown(record: Mapping[str, Any]) -> str:
    """Format a record as Markdown.

    Args:
        record: A record of `benchmarks.gpu_record`, or its blank one.
    """
    parts = [_where(record), "### Numbers", _checks(record["checks"]), "### Loss scales", _traces(record["traces"])]
    parts += ["### Ceilings", _ceilings(record["ceilings"])]
    for times, peaks in zip(record["races"], record["memory"], strict=True):
        parts += [f"### {times['race']}", _race(times, peaks)]
    rows = [
        row
        for name, race in zip(CASES, record["races"], strict=True)
        if name in record["costs"]
        for row in limit_rows(race, record["costs"][name], record["ceilings"])
    ]
    parts += ["### What limits a step", _limits(rows)]
    goals = [goal for race in (*record["races"], *record["memory"]) for goal in race["goals"]]
    parts += ["### Goals", goals_table(goals), _verdict(goals)]
    return "\n\n".join(part for part in parts if part)


def _where(record: Mapping[str, Any]) -> str:
    device = record["device"]
    if device is None:
        return "No run is recorded yet: every line below says so."
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    memory = f", {device['memory_bytes'] / 2**30:.0f} GiB for JAX" if device["memory_bytes"] else ""
    info = record["surroundings"]
    reduced = (
        "**A reduced run on a CPU**: smaller networks and batches, to check that everything works. Its times say "
        "nothing about a GPU. "
        if device["platform"] == "cpu" else ""
    )
    name = info["cpu"] if device["platform"] == "cpu" else device["kind"]
    return (
        f"{reduced}Measured on {name}{memory}, {info['cores']} cores, Python {info['python']}: {versions}. "
        f"Load average {info['load']} at the start; {record['seconds']:.0f} s in total, {record['jobs']} contenders "
        "prepared at a time."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join([line(head), "|---" * len(head) + "|", *map(line, rows)])


def _checks(checks: Sequence[Mapping[str, Any]] | None) -> str:
    if not checks:
        return f"Golden traces and float64 references: {NO}."
    met = sum(check["met"] for check in checks)
    rows = [
        (row["what"], _number(row["measured"]), _number(row["limit"]), "holds" if row["met"] else "**WRONG**")
        for row in checks
    ]
    return f"{met} of {len(checks)} hold.\n\n{_table(('what', 'error measured', 'limit', ''), rows)}"


def _traces(traces: Sequence[Mapping[str, Any]] | None) -> str:
    if not traces:
        return f"Fixed and Dynamic managers with planted overflows: {NO}."
    yes = {True: "yes", False: "**NO**", None: "this is a CPU"}
    rows = [
        (row["what"], str(row["steps"]), f"{row['overflows']} ({yes[row['as_planted']]})", str(row["moves"]),
         yes[row["as_the_rule"]], yes[row["as_on_cpu"]])
        for row in traces
    ]
    head = ("manager, feed", "steps", "overflows (as planted)", "moves of the scale", "as the rule", "as on the CPU")
    return _table(head, rows)


def _ceilings(ceilings: Mapping[str, Mapping[str, Any]] | None) -> str:
    if not ceilings:
        return f"Products of large matrices in each format, copies: {NO}."
    rows = [(name, f"{short(row['value'])} {row['unit']}", row["of"]) for name, row in ceilings.items()]
    return _table(("what", "at most", "measured on"), rows)


def _race(times: Mapping[str, Any], peaks: Mapping[str, Any]) -> str:
    """Format all contenders of a race as one table, including those that were not measured."""
    memory = {row["name"]: row["median"] for row in peaks["contenders"]}
    rows = [
        (row["name"], short(row["median"]), f"{row['spread']:.0%}", f"{row['samples_per_second']:,.0f}",
         f"{memory[row['name']]:.2f}" if row["name"] in memory else NO)
        for row in times["contenders"]
    ]
    rows += [(name, NO, "", "", NO) for name in times["missing"]]
    head = ("contender", "ms per step (median)", "spread (quartiles / median)", "samples per second", "peak device GiB")
    missing = _missing(times["missing"], everyone=not times["contenders"])
    rounds = f"{times['rounds']} rounds.\n\n" if times["rounds"] else ""
    return rounds + _table(head, rows) + (f"\n\nNot measured: {missing}." if missing else "")


def _missing(missing: Mapping[str, str], *, everyone: bool) -> str:
    """Group the missing contenders by reason."""
    reasons = dict.fromkeys(filter(None, missing.values()))
    if everyone and len(reasons) == 1:
        return next(iter(reasons))
    names = {reason: [f"`{name}`" for name, why in missing.items() if why == reason] for reason in reasons}
    return "; ".join(f"{', '.join(names[reason])}: {reason}" for reason in reasons)


def _limits(limits: Sequence[Mapping[str, Any]]) -> str:
    if not limits:
        return f"Arithmetic or bytes, for each network and precision: {NO}."
    rows = [
        (row["network"], row["precision"], short(row["gflop"]), short(row["gbyte"]), short(row["flop_per_byte"]),
         short(row["arithmetic_ms"]), short(row["bytes_ms"]), row["limit"],
         NO if row["measured_ms"] is None else short(row["measured_ms"]),
         "" if row["share"] is None else f"{row['share']:.0%}")
        for row in limits
    ]
    head = ("network", "precision", "GFLOP per step (counted)", "GB per step (counted)", "FLOP per byte",
            "ms by arithmetic", "ms by bytes", "limited by", "ms measured", "of the ceiling")
    return _table(head, rows)


def _verdict(goals: Sequence[Mapping[str, Any]]) -> str:
    measured = [goal for goal in goals if goal["met"] is not None]
    total = sum(goal["limit"] is not None for goal in goals)
    met = sum(goal["met"] for goal in measured)
    return f"{met} of {total} goals were met; {total - len(measured)} were not measured." if total else ""


def _number(value: float) -> str:
    return f"{value:.2g}" if value is not None else "not a number"
