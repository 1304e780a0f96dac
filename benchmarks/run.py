"""Run a set: measure it, print its tables, and write its record and its section of the page."""

from __future__ import annotations

import pathlib
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.children import Interpreters
from benchmarks.race import Race
from benchmarks.record import record_of
from benchmarks.sets import SETS
from benchmarks.table import PAGE, as_markdown, goals_as_markdown, update_section
from benchmarks.written import RESULTS, read_records, rounded, write_json


def run_set(
    name: str,
    races: Sequence[Race],
    interpreters: Interpreters,
    *,
    write: bool,
    folder: pathlib.Path = RESULTS,
    page: pathlib.Path = PAGE,
) -> dict[str, Any]:
    """Measure a set, print its tables, and write them.

    Args:
        name: Name of the set, its record and its markers.
        races: Its races.
        interpreters: Interpreters of the peers.
        write: Whether the record and the page are written.
        folder: Folder of the records.
        page: The page with the tables.

    Returns:
        The record.
    """
    started = time.perf_counter()

    def log(text: str) -> None:
        print(f"[{time.perf_counter() - started:4.0f} s] {name}: {text}", file=sys.stderr, flush=True)

    record = rounded(record_of(name, races, interpreters, log))
    print(f"\n## {name}\n\n{as_markdown(record)}", flush=True)
    if write:
        write_json(record, folder)
        update_section(name, as_markdown(record), page)
        update_section("goals", goals_as_markdown(read_records(list(SETS), folder)), page)
    return record
