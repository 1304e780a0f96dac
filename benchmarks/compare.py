"""Compare the step times of two checkouts: mixtrain's contenders of both, in separate processes and in turn.

    git worktree add ../before HEAD~1
    python -m benchmarks.compare ../before --set mlp jax

Records may come from different machines; here both checkouts are timed on one machine at the same time.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from benchmarks.children import ROOT, start_child
from benchmarks.contender import Contender
from benchmarks.findings import Findings
from benchmarks.goals import Goal, evaluate
from benchmarks.measure import Series, interleaved, warm_up
from benchmarks.race import Race
from benchmarks.sets import SETS
from benchmarks.surroundings import RunStart, versions
from benchmarks.table import line, publish, short, surroundings_line
from benchmarks.written import rounded

NAME: Final = "compare"
_HEAD: Final = ("race", "contender", "before, ms", "now, ms", "ratio", "quartiles", "")


def measured(races: Sequence[Race], before: pathlib.Path, rounds: int) -> dict[str, Any]:
    """Measure mixtrain's contenders of some races, print each ratio, and return the record.

    Args:
        races: The races.
        before: The other checkout.
        rounds: Rounds per checkout.
    """
    start, all_versions = RunStart(), versions()
    rows = []
    for race, contender in ours(races):
        findings = timed_in_turn(race, contender, before, rounds)
        all_versions |= findings.versions
        rows.append({"race": race.name, **row(contender, findings.series)})
        print(f"{race.name}, {contender.name}: {rows[-1]['measured']:.3f}", flush=True)
    return rounded({  # type: ignore[no-any-return]
        **start.metadata(NAME, dict(sorted(all_versions.items()))),
        "revision_before": revision(before), "rounds": rounds, "rows": rows,
    })


def ours(races: Sequence[Race]) -> Iterator[tuple[Race, Contender]]:
    """Yield mixtrain's contenders of the races that time steps or batches."""
    for race in races:
        if race.measure in ("step time", "batch time"):
            yield from ((race, item) for item in race.contenders if item.kind.startswith("mixtrain"))


def timed_in_turn(race: Race, contender: Contender, before: pathlib.Path, rounds: int) -> Findings:
    """Return the milliseconds per step of a contender, "before" and "now"."""
    steps, findings = race.steps_of(contender), Findings()
    with contextlib.ExitStack() as stack:
        children = {
            name: stack.enter_context(start_child(contender, race.workload, steps, sys.executable, root=root))
            for name, root in (("before", before), ("now", ROOT))
        }
        for child in children.values():
            child.prepare()
            warm_up(child.round)
            findings.versions |= child.versions
        values = interleaved({name: child.round for name, child in children.items()}, rounds=rounds)
    for name, seconds in values.items():
        findings.series[name] = Series(name, "ms", tuple(1000 * value / steps for value in seconds))
    return findings


def row(contender: Contender, series: Mapping[str, Series]) -> dict[str, Any]:
    """Return the row of a contender: both times and their ratio."""
    ratio = evaluate(Goal(contender.name, "now", "before"), series)
    medians = {name: item.quartiles[1] for name, item in series.items()}
    return {"what": contender.name, **medians, **{key: ratio[key] for key in ("measured", "low", "high")}}


def revision(checkout: pathlib.Path) -> str:
    """Return the abbreviated revision of a checkout."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def as_text(record: Mapping[str, Any]) -> str:
    """Format a record as Markdown; "slower" or "faster" where the quartiles of a ratio exclude 1."""
    lines = [line(_HEAD), "|---" * len(_HEAD) + "|"]
    for item in record["rows"]:
        verdict = "slower" if item["low"] > 1 else "faster" if item["high"] < 1 else ""
        times = [short(item[name]) for name in ("before", "now")]
        ratio = [f"{item['measured']:.3f}", f"{item['low']:.3f} to {item['high']:.3f}"]
        lines.append(line([item["race"], item["what"], *times, *ratio, verdict]))
    trees = f"Before is {record['revision_before']}; {record['rounds']} rounds."
    return "\n\n".join([surroundings_line(record), trees, "\n".join(lines)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="the other checkout")
    parser.add_argument("--set", nargs="+", choices=SETS, default=["mlp"], help="whose contenders")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args(arguments)
    if not (options.before / "benchmarks" / "child.py").exists():  # Else children import the installed one.
        parser.error(f"{options.before} must be a checkout of mixtrain; it has no benchmarks. Write: git worktree add")
    races = [race for name in options.set for race in SETS[name].races]
    record = measured(races, options.before.resolve(), options.rounds)
    publish(record, as_text(record), print_only=options.print_only)


if __name__ == "__main__":
    main()
