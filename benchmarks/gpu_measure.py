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
from benchmarks.contender import DEVICE_SHARE, Contender
from benchmarks.findings import ENDED, Findings, python_for
from benchmarks.measure import Log, Series, interleaved, warm_up
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
        contenders: How many of each race run, of the first; None for all.
        budget: How long all may take.
    """

    interpreters: Interpreters
    memory_gib: float | None
    jobs: int
    budget: Budget
    contenders: int | None = None


def heats(
    contenders: Sequence[Contender], need: Callable[[Contender], float], memory_gib: float | None
) -> list[tuple[Contender, ...]]:
    """Return contenders in groups that fit beside each other into a device's memory, in order.

    Args:
        contenders: They.
        need: How many GiB a contender may take.
        memory_gib: The device's; None for a CPU, where all fit.
    """
    groups: list[list[Contender]] = [[]]
    free = limit = float("inf") if memory_gib is None else 0.9 * memory_gib
    for contender in contenders:
        if groups[-1] and need(contender) > free:
            groups.append([])
            free = limit
        groups[-1].append(contender)
        free -= need(contender)
    return [tuple(group) for group in groups]


class DeviceRace:
    """A race of which one heat after the other is run.

    Args:
        race: The race.
        need: How many GiB of the device's memory a contender may take.
        machine: Where it is run.
        log: Receives progress messages.

    Attributes:
        heats: Who stand beside each other.
    """

    def __init__(self, race: Race, need: Callable[[Contender], float], machine: Machine, log: Log) -> None:
        self.heats = heats(race.contenders[: machine.contenders], need, machine.memory_gib)
        self._race = race
        self._need = need
        self._machine = machine
        self._progress = log
        self._times, self._peaks = Findings(), Findings()

    def run(self, group: Sequence[Contender], ready: Callable[[], object]) -> None:
        """Measure contenders that stand beside each other, as far as the time goes.

        Args:
            group: They.
            ready: Called before they are timed: returns when nothing else runs on the device.
        """
        race, times, budget = self._race, self._times, self._machine.budget
        with contextlib.ExitStack() as stack:
            children = self._made_ready(group, stack)
            # Each takes about a second to end: all are told to before the first is waited for.
            for child in children.values():
                stack.callback(child.stop)
            ready()
            alive = self._warm(children)
            if not alive:
                return
            found = interleaved(alive, rounds=race.rounds, patience=min(race.patience, budget.left), log=self._log)
            for contender in group:
                if contender.name in found and contender.name not in times.missing:
                    values = tuple(1000 * value / race.steps_of(contender) for value in found[contender.name])
                    series = Series(contender.name, "ms a step", values, race.workload.batch)
                    self._log(f"{contender.name}: {series.quartiles[1]:.3g} ms a step")
                    times.series[contender.name] = series
                    peak = children[contender.name].ask("forget").get("device_peak_bytes")
                    if peak:
                        self._peaks.series[contender.name] = Series(contender.name, "GiB", (peak / 2**30,))

    def findings(self, missing: str) -> tuple[Findings, Findings]:
        """Return the milliseconds a step of the contenders, and the most memory of the device that each held, in GiB.

        Args:
            missing: Why those were not measured that were in no heat.
        """
        times, peaks = self._times, self._peaks
        _cut_to_the_shortest(times)
        for contender in self._race.contenders:
            if contender.name not in times.series:
                times.missing.setdefault(contender.name, missing)
        peaks.versions = times.versions
        peaks.missing = {
            one.name: times.missing.get(one.name, "its framework does not count the memory of this device")
            for one in self._race.contenders
            if one.name not in peaks.series
        }
        return times, peaks

    def _log(self, text: str) -> None:
        self._progress(f"{self._race.name}: {text}")

    def _warm(self, children: Mapping[str, Child]) -> dict[str, Callable[[], float]]:
        """Warm contenders up; return those whose two rounds fit into the time that is left, the first ones first."""
        missing, budget = self._times.missing, self._machine.budget
        alive: dict[str, Callable[[], float]] = {}
        wanted = 0.0
        for name, child in children.items():
            if wanted > budget.left:
                missing[name] = budget.spent
                continue
            run = functools.partial(self._seconds, name, child)
            warm_up(run, patience=min(10.0, budget.left))
            wanted += 2 * run()
            if name not in missing and wanted <= budget.left:
                alive[name] = run
            else:
                missing.setdefault(name, budget.spent)
        return alive

    def _seconds(self, name: str, child: Child) -> float:
        """Return the seconds of a child's round; where it has ended, note that, and return NaN from then on."""
        if name in self._times.missing:
            return math.nan
        with self._noting(name):
            return child.round()
        return math.nan

    def _made_ready(self, group: Sequence[Contender], stack: contextlib.ExitStack) -> dict[str, Child]:
        """Return the children that have trained for one round, several made at once, for that compiles."""
        with concurrent.futures.ThreadPoolExecutor(self._machine.jobs) as pool:
            asked = {}
            for contender in group:
                python = python_for(contender, self._machine.interpreters, self._times)
                if python is not None:
                    asked[contender.name] = pool.submit(self._ready, contender, python, stack)
            made = {name: future.result() for name, future in asked.items()}
        return {name: child for name, child in made.items() if child is not None}

    def _ready(self, contender: Contender, python: str, stack: contextlib.ExitStack) -> Child | None:
        race, budget = self._race, self._machine.budget
        if budget.left < LEAST:
            self._times.missing[contender.name] = budget.spent
            return None
        steps, told = race.steps_of(contender), self._share(contender)
        child = stack.enter_context(start_child(contender, race.workload, steps, python, environment=told))
        with self._noting(contender.name), stopped_in_time(child, budget):
            began = time.monotonic()
            child.prepare()
            child.round()
            self._times.versions |= child.versions
            self._log(f"{contender.name}: ready after {time.monotonic() - began:.0f} s")
            return child
        return None

    def _share(self, contender: Contender) -> dict[str, str]:
        """Return what holds a process on JAX to its memory: it would take twice what it holds each time it needs more.
        """
        if self._machine.memory_gib is None:
            return {}
        share = DEVICE_SHARE * min(1.0, self._need(contender) / self._machine.memory_gib)
        return {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{share:.4f}"}

    @contextlib.contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        """Note a contender whose process ends as missing, and why."""
        try:
            yield
        except ChildFailed as error:
            self._log(str(error))
            budget = self._machine.budget
            self._times.missing[name] = ENDED if budget.left else budget.spent


@contextlib.contextmanager
def stopped_in_time(child: Child, budget: Budget) -> Iterator[None]:
    """End a child that is still busy when the budget is spent."""
    timer = threading.Timer(budget.left, child.stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _cut_to_the_shortest(findings: Findings) -> None:
    """Leave as many rounds of each contender as the one has that has fewest, for goals go by rounds."""
    rounds = min((len(series.values) for series in findings.series.values()), default=0)
    for name, series in findings.series.items():
        findings.series[name] = dataclasses.replace(series, values=series.values[:rounds])
