"""Time to first step and peak memory: each value from a process of its own, contenders in turn."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from benchmarks.children import Child, ChildFailed, Interpreters, start_child
from benchmarks.contender import Contender
from benchmarks.findings import ENDED, Findings, python_for
from benchmarks.measure import Say, Series, interleaved
from benchmarks.race import Race


@dataclasses.dataclass(frozen=True)
class FreshMeasure:
    """Something that is measured once in a process.

    Attributes:
        unit: Its unit.
        take: Measures it on a child whose network and data are built.
    """

    unit: str
    take: Callable[[Child], float]


def first_step_seconds(child: Child) -> float:
    """Return the seconds from `Model(...)` or `compile` to the end of the first step."""
    return child.prepare() + child.round()


def peak_mebibytes(child: Child) -> float:
    """Return the peak of memory in training above that before it: imports, network and data."""
    before = child.ask("forget")["peak_bytes"]
    child.prepare()
    return float(child.ask("round")["peak_bytes"] - before) / 2**20


FIRST_STEP = FreshMeasure("s", first_step_seconds)
PEAK_MEMORY = FreshMeasure("MiB", peak_mebibytes)


def fresh_values(measure: FreshMeasure, race: Race, interpreters: Interpreters, say: Say) -> Findings:
    """Return what fresh processes give, one for each contender and round.

    Args:
        measure: What is measured.
        race: The race.
        interpreters: Which Python runs which peer.
        say: Told how far it is.
    """
    findings = Findings()
    runs: dict[str, Callable[[], float]] = {}

    def value(contender: Contender, python: str) -> float:
        with start_child(contender, race.workload, race.steps_of(contender), python) as child:
            findings.versions |= child.versions
            return measure.take(child)

    for contender in race.contenders:
        python = python_for(contender, interpreters, findings)
        if python is None:
            continue
        run = functools.partial(value, contender, python)
        if contender.runner.package is not None:
            try:
                run()  # Whether it can at all; a peer may lack something.
            except ChildFailed as error:
                say(str(error))
                findings.missing[contender.name] = ENDED
                continue
        runs[contender.name] = run
    found = interleaved(runs, rounds=race.rounds, patience=race.patience, say=say)
    for name, values in found.items():
        findings.series[name] = Series(name, measure.unit, tuple(values))
    return findings
