"""The tables of docs/benchmarks.md, one between a pair of markers for each benchmark."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping
from typing import Any

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "benchmarks.md"


def as_markdown(record: Mapping[str, Any]) -> str:
    """Return a benchmark's record as text with two tables."""
    around, steps = record["surroundings"], record["steps_a_round"]
    if isinstance(steps, Mapping):
        steps = ", ".join(f"{count} ({name})" for name, count in steps.items())
    lines = [
        f"Seen on {around['cpu']}, {around['cores']} cores ({around['device']}), Keras {around['keras']} on "
        f"{around['backend']}, NumPy {around['numpy']}, Python {around['python']}; {record['rounds']} rounds of "
        f"{steps} steps.",
        "",
        "| contender | ms a step (median) | spread (quartiles / median) |",
        "|---|---|---|",
    ]
    for name, timing in record["milliseconds_a_step"].items():
        lines.append(f"| {name} | {timing['median']:.2f} | {timing['spread']:.0%} |")
    lines += ["", "| ratio, lower is better | seen | goal |", "|---|---|---|"]
    for row in record["ratios"]:
        lines.append(f"| {row['what']} | {row['ratio']:.2f} | <= {row['goal']:.2f} |")
    return "\n".join(lines)


def update_table(name: str, record: Mapping[str, Any]) -> str:
    """Write a benchmark's tables into the page between its markers; return them."""
    text = as_markdown(record)
    page = PAGE.read_text()
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), flags=re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"benchmarks: docs/benchmarks.md must hold the markers {begin} and {end}; it holds none.")
    written = pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page)
    draft = PAGE.with_suffix(".md.new")
    draft.write_text(written)
    draft.replace(PAGE)
    return text
