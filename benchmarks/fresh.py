"""Measure time to first step and peak memory: one fresh process per value, contenders in turn."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

from benchmarks.children import Child, ChildFailed, Interpreters, start_child
from benchmarks.contender import Contender
from benchmarks.findings import ENDED, Findings, python_for
from benchmarks.measure import Log, Series, interleaved
from benchmarks.race import Race


@dataclasses.dataclass(frozen=True)
class FreshMeasure:
    """A value that is measured once per process.

    Attributes:
        unit: Its unit.
        measure: Measures it on a child whose network and data are built.
    """

    unit: str
    measure: Callable[[Child], float]


def first_step_seconds(child: Child) -> float:
    """Return the seconds from `Model(...)` or `compile` to the end of the first step."""
    return child.prepare() + child.round()


def peak_mebibytes(child: Child) -> float:
    """Return the peak of memory in training above that of imports, network and data."""
    before = child.ask("forget")["peak_bytes"]
    child.prepare()
    return float(child.ask("round")["peak_bytes"] - before) / 2**20


FIRST_STEP = FreshMeasure("s", first_step_seconds)
PEAK_MEMORY = FreshMeasure("MiB", peak_mebibytes)


def fresh_values(measure: FreshMeasure, race: Race, interpreters: Interpreters, log: Log) -> Findings:
    """Measure a value in fresh processes, one per contender and round.

    Args:
        measure: The value.
        race: The race.
        interpreters: Interpreters of the peers.
        log: Receives progress messages.
    """
    findings = Findings()
    runs: dict[str, Callable[[], float]] = {}

    def value(contender: Contender, python: str) -> float:
        with start_child(contender, race.workload, race.steps_of(contender), python) as child:
            findings.versions |= child.versions
            return measure.measure(child)

    for contender in race.contenders:
        python = python_for(contender, interpreters, findings)
        if python is None:
            continue
        run = functools.partial(value, contender, python)
        if contender.runner.package is not None:
            try:
                run()  # Not recorded: skip a peer that cannot run here.
            except ChildFailed as error:
                log(str(error))
                findings.missing[contender.name] = ENDED
                continue
        runs[contender.name] = run
    values_by_name = interleaved(runs, rounds=race.rounds, patience=race.patience, log=log)
    for name, values in values_by_name.items():
        findings.series[name] = Series(name, measure.unit, tuple(values))
    return findings
