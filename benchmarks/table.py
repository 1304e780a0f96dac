"""The tables of docs/benchmarks.md, one section between a pair of markers for each set, and one for all goals."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.written import write_json

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks.md"
NOT_RUN = "No run is recorded yet."


def as_markdown(record: Mapping[str, Any]) -> str:
    """Format the record of a set as Markdown."""
    sections = [surroundings_line(record), *(_race(race) for race in record["races"])]
    goals = [goal for race in record["races"] for goal in race["goals"]]
    if goals:
        sections.append(goals_table(goals))
    missing = [f"{name}: {why}" for race in record["races"] for name, why in race["missing"].items()]
    if missing:
        sections.append("Not measured: " + "; ".join(missing))
    return "\n\n".join(sections)


def goals_as_markdown(records: Sequence[Mapping[str, Any]]) -> str:
    """Format the goals of all records that have a limit as one table."""
    goals = [goal for record in records for race in record["races"] for goal in race["goals"]]
    goals = [goal for goal in goals if goal["limit"] is not None]
    if not goals:
        return NOT_RUN
    met = sum(goal["met"] is True for goal in goals)
    return f"{goals_table(goals)}\n\n{met} of {len(goals)} goals were met."


def update_section(name: str, text: str, page: pathlib.Path | None = None) -> None:
    """Replace the text between two markers of the page.

    Args:
        name: The section's name, as in its markers.
        text: The new text.
        page: The page; by default docs/benchmarks.md.

    Raises:
        ValueError: The page has no such markers.
    """
    page = page or PAGE
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), flags=re.DOTALL)
    content = page.read_text()
    if not pattern.search(content):
        raise ValueError(f"benchmarks: {page.name} must hold the markers {begin} and {end}; it holds none. Write them.")
    draft = page.with_suffix(".md.new")
    draft.write_text(pattern.sub(lambda _: f"{begin}\n{text}\n{end}", content))
    draft.replace(page)


def publish(record: Mapping[str, Any], text: str, *, print_only: bool, page: pathlib.Path | None = None) -> None:
    """Print the text of a record, and unless `print_only` write the record and the section of its set in the page."""
    print(text)
    if not print_only:
        write_json(record)
        update_section(record["set"], text, page)


def surroundings_line(record: Mapping[str, Any]) -> str:
    """Format the environment and versions of a record as one line."""
    info, load = record["surroundings"], record["load_average"]
    versions = ", ".join(f"{name} {version}" for name, version in record["versions"].items())
    flags = " ".join(info["cpu_flags"]) or "none of those looked for"
    return (
        f"Measured on {info['cpu']}, {info['cores']} cores ({info['device']}; {flags}), Python {info['python']}: "
        f"{versions}. Load average {_number(load['before'])} before and {_number(load['after'])} after, "
        f"{record['seconds']:.0f} s in total."
    )


def _race(race: Mapping[str, Any]) -> str:
    units = {row["unit"] for row in race["contenders"]}
    unit = units.pop() if units else "value"
    speed = any(row["samples_per_second"] for row in race["contenders"])
    head = ["contender", f"{unit} (median)", "spread (quartiles / median)", *(["samples per second"] if speed else [])]
    lines = [f"{race['race']}: {race['measure']}, {race['rounds']} rounds.", "", line(head), "|---" * len(head) + "|"]
    for row in race["contenders"]:
        cells = [row["name"], short(row["median"]), f"{row['spread']:.0%}"]
        lines.append(line([*cells, *([f"{row['samples_per_second']:,.0f}"] if speed else [])]))
    return "\n".join(lines)


def goals_table(goals: Sequence[Mapping[str, Any]]) -> str:
    """Format goals and their measured ratios as one table."""
    lines = ["| ratio, lower is better | measured | quartiles | goal | |", "|---|---|---|---|---|"]
    for goal in goals:
        limit = "" if goal["limit"] is None else f"<= {goal['limit']:.2f}"
        verdict = {True: "met", False: "not met", None: ""}[goal["met"]]
        if goal["measured"] is None:
            lines.append(line([goal["what"], "not measured", "", limit, verdict]))
        else:
            cells = [f"{goal['measured']:.3f}", f"{goal['low']:.3f} to {goal['high']:.3f}"]
            lines.append(line([goal["what"], *cells, limit, verdict]))
    return "\n".join(lines)


def line(cells: Sequence[str]) -> str:
    """Format a row of a table."""
    return "| " + " | ".join(cells) + " |"


def short(value: float) -> str:
    """Format a number with three significant digits, or without decimals from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
