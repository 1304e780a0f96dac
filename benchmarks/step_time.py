"""Measure step time: contenders in this process and in children, warmed up and timed in turn."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable

from benchmarks.child import timed, versions
from benchmarks.children import ChildFailed, Interpreters, start_child
from benchmarks.contender import build
from benchmarks.findings import ENDED, Findings, python_for
from benchmarks.measure import Log, Series, interleaved, warm_up
from benchmarks.race import Race


def step_times(race: Race, interpreters: Interpreters, log: Log) -> Findings:
    """Return the milliseconds per step of a race's contenders.

    Args:
        race: The race.
        interpreters: Interpreters of the peers.
        log: Receives progress messages.
    """
    findings = Findings()
    runs: dict[str, Callable[[], float]] = {}
    with contextlib.ExitStack() as stack:
        children = {}
        for contender in race.contenders:
            python = python_for(contender, interpreters, findings)
            if contender.runner.package is not None and python is not None:
                child = start_child(contender, race.workload, race.steps_of(contender), python)
                children[contender.name] = stack.enter_context(child)
        for contender in race.contenders:
            log(f"{contender.name}: made ready")
            if contender.runner.package is None:
                train = build(contender, race.workload, race.steps_of(contender))()
                runs[contender.name] = functools.partial(timed, train)
                warm_up(runs[contender.name])
            elif contender.name in children:
                child = children[contender.name]
                try:
                    child.prepare()
                    warm_up(child.round)
                except ChildFailed as error:
                    log(str(error))
                    findings.missing[contender.name] = ENDED
                    continue
                findings.versions |= child.versions
                runs[contender.name] = child.round
        findings.versions |= versions()
        seconds = interleaved(runs, rounds=race.rounds, patience=race.patience, log=log)
    unit = "ms per batch" if race.measure == "batch time" else "ms per step"
    for contender in race.contenders:
        if contender.name in seconds:
            steps = race.steps_of(contender)
            values = tuple(1000 * value / steps for value in seconds[contender.name])
            findings.series[contender.name] = Series(contender.name, unit, values, race.workload.batch)
    return findings
