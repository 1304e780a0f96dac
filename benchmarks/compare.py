"""What a change did to the time of a step: our contenders of two checkouts, each in a process of its own, in turn.

    git worktree add ../before HEAD~1
    python -m benchmarks.compare ../before --set mlp jax

Ratios of records were made on one machine each; here both trees share it, minute by minute.
"""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.children import ROOT, start_child
from benchmarks.contender import Contender
from benchmarks.goals import Goal, judged
from benchmarks.measure import Series, interleaved, warm_up
from benchmarks.race import Race
from benchmarks.sets import SETS
from benchmarks.table import line, short

_HEAD = ("race", "contender", "before, ms", "now, ms", "ratio", "quartiles", "")


def compared(races: Sequence[Race], before: pathlib.Path, rounds: int) -> Iterator[list[str]]:
    """Yield a row of a table for each of our contenders.

    Args:
        races: Whose contenders; those that measure memory or a first step are left out.
        before: The other checkout.
        rounds: How often each tree is timed.
    """
    for race in races:
        for contender in race.contenders:
            if race.measure in ("step time", "batch time") and contender.kind.startswith("mixtrain"):
                yield row(race.name, contender, timed_in_turn(race, contender, before, rounds))


def timed_in_turn(race: Race, contender: Contender, before: pathlib.Path, rounds: int) -> dict[str, Series]:
    """Return the milliseconds a step of a contender, "before" and "now"."""
    steps = race.steps_of(contender)
    with contextlib.ExitStack() as stack:
        children = {
            name: stack.enter_context(start_child(contender, race.workload, steps, sys.executable, root=root))
            for name, root in (("before", before), ("now", ROOT))
        }
        for child in children.values():
            child.prepare()
            warm_up(child.round)
        found = interleaved({name: child.round for name, child in children.items()}, rounds=rounds)
    return {name: Series(name, "ms", tuple(1000 * value / steps for value in found[name])) for name in found}


def row(race: str, contender: Contender, found: Mapping[str, Series]) -> list[str]:
    """Return the row of a contender: slower or faster where the quartiles of the ratio leave out 1."""
    ratio: dict[str, Any] = judged(Goal(contender.name, "now", "before"), found)
    verdict = "slower" if ratio["low"] > 1 else "faster" if ratio["high"] < 1 else ""
    times = [short(found[name].quartiles[1]) for name in ("before", "now")]
    return [race, contender.name, *times, f"{ratio['seen']:.3f}", f"{ratio['low']:.3f} to {ratio['high']:.3f}", verdict]


def main() -> None:
    """Print what a change did to the contenders of some sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path, help="the other checkout")
    parser.add_argument("--set", nargs="+", choices=SETS, default=["mlp"], help="whose contenders")
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    print(f"{line(_HEAD)}\n{'|---' * len(_HEAD)}|")
    races = [race for name in options.set for race in SETS[name].races]
    for found in compared(races, options.before.resolve(), options.rounds):
        print(line(found), flush=True)


if __name__ == "__main__":
    main()
