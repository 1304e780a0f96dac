"""Step time and peak device memory on one device: each contender in a process of its own, as many at once as fit."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import functools
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.children import Child, ChildFailed, Interpreters, start_child
from benchmarks.contender import Contender
from benchmarks.findings import ENDED, Findings, python_for
from benchmarks.measure import Say, Series, interleaved, warm_up
from benchmarks.race import Race

# Seconds without which nobody is begun with.
LEAST = 20.0


class Budget:
    """The time that a run may take.

    Args:
        seconds: How long.
        since: From when, by `time.monotonic`; by default from now.
    """

    def __init__(self, seconds: float, since: float | None = None) -> None:
        self.seconds = seconds
        self._end = (time.monotonic() if since is None else since) + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, at least 0."""
        return max(0.0, self._end - time.monotonic())

    @property
    def spent(self) -> str:
        """Why something was left out."""
        return f"did not fit into the {self.seconds:.0f} s of the run"


@dataclasses.dataclass(frozen=True)
class Machine:
    """Where contenders run.

    Attributes:
        interpreters: Which Python runs which peer.
        memory_gib: Memory of the device; None for a CPU.
        jobs: How many contenders are made ready at once.
        budget: How long all may take.
    """

    interpreters: Interpreters
    memory_gib: float | None
    jobs: int
    budget: Budget


def heats(race: Race, need: Callable[[Contender], float], memory_gib: float | None) -> list[tuple[Contender, ...]]:
    """Return a race's contenders in groups that fit beside each other into a device's memory, in order.

    Args:
        race: The race.
        need: About how many GiB a contender takes.
        memory_gib: The device's; None for a CPU, where all fit.
    """
    groups: list[list[Contender]] = [[]]
    free = limit = float("inf") if memory_gib is None else 0.9 * memory_gib
    for contender in race.contenders:
        if groups[-1] and need(contender) > free:
            groups.append([])
            free = limit
        groups[-1].append(contender)
        free -= need(contender)
    return [tuple(group) for group in groups]


def device_race(
    race: Race, groups: Sequence[Sequence[Contender]], machine: Machine, say: Say
) -> tuple[Findings, Findings]:
    """Return the milliseconds a step of a race's contenders, and the most memory of the device that each held, in GiB.

    Args:
        race: The race.
        groups: Who stand beside each other.
        machine: Where they run.
        say: Told how far it is.
    """
    times, peaks = Findings(), Findings()
    for group in groups:
        with contextlib.ExitStack() as stack:
            children = _made_ready(race, group, machine, times, stack, say)
            runs = {name: functools.partial(_seconds, name, child, machine, times, say)
                    for name, child in children.items()}
            alive = _warm(runs, machine, times)
            if not alive:
                continue
            found = interleaved(alive, rounds=race.rounds, patience=min(race.patience, machine.budget.left), say=say)
            for contender in group:
                if contender.name in found and contender.name not in times.missing:
                    values = tuple(1000 * value / race.steps_of(contender) for value in found[contender.name])
                    times.series[contender.name] = Series(contender.name, "ms a step", values, race.workload.batch)
                    peak = children[contender.name].ask("forget").get("device_peak_bytes")
                    if peak:
                        peaks.series[contender.name] = Series(contender.name, "GiB", (peak / 2**30,))
    _cut_to_the_shortest(times)
    peaks.versions = times.versions
    peaks.missing = {
        one.name: times.missing.get(one.name, "its framework does not count the memory of this device")
        for one in race.contenders
        if one.name not in peaks.series
    }
    return times, peaks


def _warm(
    runs: Mapping[str, Callable[[], float]], machine: Machine, findings: Findings
) -> dict[str, Callable[[], float]]:
    """Warm contenders up; return those whose two rounds fit into the time that is left, the first ones first."""
    alive: dict[str, Callable[[], float]] = {}
    wanted = 0.0
    for name, run in runs.items():
        warm_up(run, patience=min(10.0, machine.budget.left))
        wanted += 2 * run()
        if name not in findings.missing and wanted <= machine.budget.left:
            alive[name] = run
        else:
            findings.missing.setdefault(name, machine.budget.spent)
    return alive


def _seconds(name: str, child: Child, machine: Machine, findings: Findings, say: Say) -> float:
    """Return the seconds of a child's round; where it has ended, note that, and return NaN from then on."""
    if name in findings.missing:
        return math.nan
    with _noting(name, machine, findings, say):
        return child.round()
    return math.nan


def _made_ready(
    race: Race, group: Sequence[Contender], machine: Machine, findings: Findings, stack: contextlib.ExitStack, say: Say
) -> dict[str, Child]:
    """Return the children that have trained for one round, several made at once, for that compiles."""

    def ready(contender: Contender, python: str) -> Child | None:
        if machine.budget.left < LEAST:
            findings.missing[contender.name] = machine.budget.spent
            return None
        child = stack.enter_context(start_child(contender, race.workload, race.steps_of(contender), python))
        with _noting(contender.name, machine, findings, say), stopped_in_time(child, machine.budget):
            began = time.monotonic()
            child.prepare()
            child.round()
            findings.versions |= child.versions
            say(f"{contender.name}: ready after {time.monotonic() - began:.0f} s")
            return child
        return None

    with concurrent.futures.ThreadPoolExecutor(machine.jobs) as pool:
        asked = {}
        for contender in group:
            python = python_for(contender, machine.interpreters, findings)
            if python is not None:
                asked[contender.name] = pool.submit(ready, contender, python)
        made = {name: future.result() for name, future in asked.items()}
    return {name: child for name, child in made.items() if child is not None}


@contextlib.contextmanager
def stopped_in_time(child: Child, budget: Budget) -> Iterator[None]:
    """End a child that is still busy when the budget is spent."""
    timer = threading.Timer(budget.left, child.stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def _noting(name: str, machine: Machine, findings: Findings, say: Say) -> Iterator[None]:
    """Note a contender whose process ends as missing, and why."""
    try:
        yield
    except ChildFailed as error:
        say(str(error))
        findings.missing[name] = ENDED if machine.budget.left else machine.budget.spent


def _cut_to_the_shortest(findings: Findings) -> None:
    """Leave as many rounds of each contender as the one has that has fewest, for goals go by rounds."""
    rounds = min((len(series.values) for series in findings.series.values()), default=0)
    for name, series in findings.series.items():
        findings.series[name] = dataclasses.replace(series, values=series.values[:rounds])
