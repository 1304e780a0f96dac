"""Time pairs of equivalent calls in turn, to measure the overhead around a small computation."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import keras
import numpy as np

from benchmarks.goals import Goal, evaluate
from benchmarks.measure import Series, interleaved
from benchmarks.surroundings import RunStart, versions
from benchmarks.table import PAGE, line, short, surroundings_line, update_section
from benchmarks.written import RESULTS, rounded, write_json

BACKENDS: Final = ("tensorflow", "jax")

Call = Callable[[], Any]


@dataclasses.dataclass(frozen=True)
class CallPairs:
    """Pairs of equivalent calls.

    Attributes:
        name: Name of the records, without the backend.
        head: Head of the table's first column.
        on: Description of the operands, for the text.
        ours: Name of the first call of each pair.
        peer: Name of the second.
        limit: Limit on the ratio of their times.
        calls: Returns the pairs by name.
    """

    name: str
    head: str
    on: str
    ours: str
    peer: str
    limit: float
    calls: Callable[[], dict[str, tuple[Call, Call]]]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the records."""
        return tuple(f"{self.name}_{backend}" for backend in BACKENDS)

    def measured(self, *, rounds: int = 41, count: int = 200) -> dict[str, Any]:
        """Time both calls of each pair in turn and return the record, with the median ratio over rounds."""
        start = RunStart()
        rows = []
        for name, (ours, peer) in self.calls().items():
            runs = {self.ours: _timed(ours, count), self.peer: _timed(peer, count)}
            for run in runs.values():
                run()
            gc.collect()
            gc.disable()
            try:
                values = interleaved(runs, rounds=rounds)
            finally:
                gc.enable()
            series = {key: Series(key, "microseconds", tuple(value)) for key, value in values.items()}
            medians = {key: item.quartiles[1] for key, item in series.items()}
            rows.append({"median": medians, **evaluate(Goal(name, self.ours, self.peer, self.limit), series)})
        backend = keras.backend.backend()
        return rounded({  # type: ignore[no-any-return]
            **start.metadata(f"{self.name}_{backend}", versions()),
            "rounds": rounds,
            "calls_per_round": count,
            "rows": rows,
        })

    def as_text(self, record: Mapping[str, Any]) -> str:
        """Format a record as Markdown."""
        head = [self.head, f"{self.peer}, microseconds", f"{self.ours}, microseconds", "ratio", "quartiles", "goal", ""]
        lines = [line(head), "|---" * len(head) + "|"]
        for row in record["rows"]:
            median = row["median"]
            lines.append(line([
                row["what"], short(median[self.peer]), short(median[self.ours]), f"{row['measured']:.2f}",
                f"{row['low']:.2f} to {row['high']:.2f}", f"<= {row['limit']:.2f}", "met" if row["met"] else "not met",
            ]))
        rounds = f"{record['rounds']} rounds of {record['calls_per_round']} calls, {self.on}."
        return "\n\n".join([surroundings_line(record), rounds, "\n".join(lines)])

    def main(self, what: str, arguments: Sequence[str] | None = None) -> None:
        """Measure, and write the record and the page.

        Args:
            what: Description for the command's help.
            arguments: The command line; None for the process's.
        """
        parser = argparse.ArgumentParser(description=what)
        parser.add_argument("--rounds", type=int, default=41, help="how often each call is timed")
        parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
        options = parser.parse_args(arguments)
        record = self.measured(rounds=options.rounds)
        text = self.as_text(record)
        print(text)
        if not options.print_only:
            write_json(record, RESULTS)
            update_section(record["set"], text, PAGE)


def _timed(call: Call, count: int) -> Callable[[], float]:
    """Return a function that makes `count` calls and returns the microseconds per call."""

    def run() -> float:
        started = time.perf_counter()
        for _ in range(count):
            result = call()
        np.asarray(result)  # Waits for JAX, which dispatches asynchronously.
        return 1e6 * (time.perf_counter() - started) / count

    return run
