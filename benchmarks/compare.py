"""What a change did to the time of a step: our contenders of two checkouts, each in a process of its own, in turn.

    git worktree add ../before HEAD~1
    python -m benchmarks.compare ../before --set mlp jax

Ratios of records were made on one machine each; here both trees share it, minute by minute.
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
from benchmarks.table import line, short, surroundings_line, update_section
from benchmarks.written import rounded, write_json

NAME: Final = "compare"
_HEAD: Final = ("race", "contender", "before, ms", "now, ms", "ratio", "quartiles", "")


def measured(races: Sequence[Race], before: pathlib.Path, rounds: int) -> dict[str, Any]:
    """Return the record of our contenders, and print the ratio of each as it is found.

    Args:
        races: Whose contenders.
        before: The other checkout.
        rounds: How often each tree is timed.
    """
    start, known = RunStart(), versions()
    rows = []
    for race, contender in ours(races):
        findings = timed_in_turn(race, contender, before, rounds)
        known |= findings.versions
        rows.append({"race": race.name, **row(contender, findings.series)})
        print(f"{race.name}, {contender.name}: {rows[-1]['seen']:.3f}", flush=True)
    return rounded({  # type: ignore[no-any-return]
        **start.metadata(NAME, dict(sorted(known.items()))),
        "revision_before": revision(before), "rounds": rounds, "rows": rows,
    })


def ours(races: Sequence[Race]) -> Iterator[tuple[Race, Contender]]:
    """Yield our contenders of the races in which steps are timed."""
    for race in races:
        if race.measure in ("step time", "batch time"):
            yield from ((race, one) for one in race.contenders if one.kind.startswith("mixtrain"))


def timed_in_turn(race: Race, contender: Contender, before: pathlib.Path, rounds: int) -> Findings:
    """Return the milliseconds a step of a contender, "before" and "now"."""
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
        found = interleaved({name: child.round for name, child in children.items()}, rounds=rounds)
    for name, seconds in found.items():
        findings.series[name] = Series(name, "ms", tuple(1000 * value / steps for value in seconds))
    return findings


def row(contender: Contender, found: Mapping[str, Series]) -> dict[str, Any]:
    """Return the row of a contender: both times, in milliseconds, and their ratio."""
    ratio = evaluate(Goal(contender.name, "now", "before"), found)
    medians = {name: series.quartiles[1] for name, series in found.items()}
    return {"what": contender.name, **medians, **{key: ratio[key] for key in ("seen", "low", "high")}}


def revision(checkout: pathlib.Path) -> str:
    """Return which revision a checkout is of, in short."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def as_text(record: Mapping[str, Any]) -> str:
    """Return a record as text with its table: slower or faster where the quartiles of a ratio leave out 1."""
    lines = [line(_HEAD), "|---" * len(_HEAD) + "|"]
    for found in record["rows"]:
        verdict = "slower" if found["low"] > 1 else "faster" if found["high"] < 1 else ""
        times = [short(found[name]) for name in ("before", "now")]
        ratio = [f"{found['seen']:.3f}", f"{found['low']:.3f} to {found['high']:.3f}"]
        lines.append(line([found["race"], found["what"], *times, *ratio, verdict]))
    trees = f"Before is {record['revision_before']}; {record['rounds']} rounds."
    return "\n\n".join([surroundings_line(record), trees, "\n".join(lines)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="the other checkout")
    parser.add_argument("--set", nargs="+", choices=SETS, default=["mlp"], help="whose contenders")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args(arguments)
    if not (options.before / "benchmarks" / "child.py").exists():  # Its processes would find the installed tree.
        parser.error(f"{options.before} must be a checkout of mixtrain; it has no benchmarks. Write: git worktree add")
    races = [race for name in options.set for race in SETS[name].races]
    record = measured(races, options.before.resolve(), options.rounds)
    print(as_text(record))
    if not options.print_only:
        write_json(record)
        update_section(NAME, as_text(record))


if __name__ == "__main__":
    main()
