"""Measure step time and peak device memory: one process per contender, as many side by side as fit."""

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

# A contender is not started with less time left.
MIN_SECONDS = 20.0


class Budget:
    """Time limit of a run.

    Args:
        seconds: The limit.
        since: Start time, from `time.monotonic`; by default now.
    """

    def __init__(self, seconds: float, since: float | None = None) -> None:
        self.seconds = seconds
        self._end = (time.monotonic() if since is None else since) + seconds

    @property
    def left(self) -> float:
        """The remaining seconds, at least 0."""
        return max(0.0, self._end - time.monotonic())

    @property
    def spent(self) -> str:
        """Reason for what is left out once the time is spent."""
        return f"did not fit into the {self.seconds:.0f} s of the run"


@dataclasses.dataclass(frozen=True)
class Machine:
    """Interpreters, device memory and limits of a run.

    Attributes:
        interpreters: Interpreters of the peers.
        memory_gib: Memory of the device; None for a CPU.
        jobs: Number of contenders that are prepared at once.
        contenders: Number of contenders per race, from the first; None for all.
        budget: Time limit of the run.
    """

    interpreters: Interpreters
    memory_gib: float | None
    jobs: int
    budget: Budget
    contenders: int | None = None


def heats(
    contenders: Sequence[Contender], need: Callable[[Contender], float], memory_gib: float | None
) -> list[tuple[Contender, ...]]:
    """Split contenders, in order, into groups that fit side by side into the device's memory.

    Args:
        contenders: The contenders.
        need: Memory limit of a contender in GiB.
        memory_gib: Memory of the device; None for a CPU, where all fit.
    """
    groups: list[list[Contender]] = [[]]
    # A tenth of the memory stays free.
    free = limit = math.inf if memory_gib is None else 0.9 * memory_gib
    for contender in contenders:
        if groups[-1] and need(contender) > free:
            groups.append([])
            free = limit
        groups[-1].append(contender)
        free -= need(contender)
    return [tuple(group) for group in groups]


class DeviceRace:
    """A race that is run heat by heat.

    Args:
        race: The race.
        need: Memory limit of a contender in GiB.
        machine: Interpreters, device memory and limits.
        log: Receives progress messages.

    Attributes:
        heats: Groups of contenders that are measured together.
    """

    def __init__(self, race: Race, need: Callable[[Contender], float], machine: Machine, log: Log) -> None:
        self.heats = heats(race.contenders[: machine.contenders], need, machine.memory_gib)
        self._race = race
        self._need = need
        self._machine = machine
        self._progress = log
        self._times, self._peaks = Findings(), Findings()

    def run(self, group: Sequence[Contender], wait_until_idle: Callable[[], object]) -> None:
        """Measure a group of contenders, as far as the time allows.

        Args:
            group: The contenders.
            wait_until_idle: Called before they are timed; returns when nothing else runs on the device.
        """
        race, times, budget = self._race, self._times, self._machine.budget
        with contextlib.ExitStack() as stack:
            children = self._prepare(group, stack)
            # A process takes about a second to end, so all are killed before the first `close` waits.
            for child in children.values():
                stack.callback(child.stop)
            wait_until_idle()
            runs = self._warm_up(children)
            if not runs:
                return
            seconds = interleaved(runs, rounds=race.rounds, patience=min(race.patience, budget.left), log=self._log)
            for contender in group:
                if contender.name in seconds and contender.name not in times.missing:
                    values = tuple(1000 * value / race.steps_of(contender) for value in seconds[contender.name])
                    series = Series(contender.name, "ms per step", values, race.workload.batch)
                    self._log(f"{contender.name}: {series.quartiles[1]:.3g} ms per step")
                    times.series[contender.name] = series
                    peak = children[contender.name].ask("forget").get("device_peak_bytes")
                    if peak:
                        self._peaks.series[contender.name] = Series(contender.name, "GiB", (peak / 2**30,))

    def findings(self, missing: str) -> tuple[Findings, Findings]:
        """Return the milliseconds per step and the peaks of device memory, in GiB.

        Args:
            missing: Reason for contenders that were in no heat.
        """
        times, peaks = self._times, self._peaks
        _truncate_rounds(times)
        for contender in self._race.contenders:
            if contender.name not in times.series:
                times.missing.setdefault(contender.name, missing)
        peaks.versions = times.versions
        peaks.missing = {
            contender.name: times.missing.get(
                contender.name, "its framework does not count the memory of this device"
            )
            for contender in self._race.contenders
            if contender.name not in peaks.series
        }
        return times, peaks

    def _log(self, text: str) -> None:
        self._progress(f"{self._race.name}: {text}")

    def _warm_up(self, children: Mapping[str, Child]) -> dict[str, Callable[[], float]]:
        """Warm up contenders; return, in order, those that can run two rounds each in the remaining time."""
        missing, budget = self._times.missing, self._machine.budget
        runs: dict[str, Callable[[], float]] = {}
        required = 0.0
        for name, child in children.items():
            if required > budget.left:
                missing[name] = budget.spent
                continue
            run = functools.partial(self._seconds, name, child)
            warm_up(run, patience=min(10.0, budget.left))
            required += 2 * run()
            if name not in missing and required <= budget.left:
                runs[name] = run
            else:
                missing.setdefault(name, budget.spent)
        return runs

    def _seconds(self, name: str, child: Child) -> float:
        """Return the seconds of a child's round; NaN once its process has ended."""
        if name in self._times.missing:
            return math.nan
        with self._record_failure(name):
            return child.round()
        return math.nan

    def _prepare(self, group: Sequence[Contender], stack: contextlib.ExitStack) -> dict[str, Child]:
        """Start children and train each for one round, several at once since that compiles."""
        with concurrent.futures.ThreadPoolExecutor(self._machine.jobs) as pool:
            futures = {}
            for contender in group:
                python = python_for(contender, self._machine.interpreters, self._times)
                if python is not None:
                    futures[contender.name] = pool.submit(self._start, contender, python, stack)
            children = {name: future.result() for name, future in futures.items()}
        return {name: child for name, child in children.items() if child is not None}

    def _start(self, contender: Contender, python: str, stack: contextlib.ExitStack) -> Child | None:
        race, budget = self._race, self._machine.budget
        if budget.left < MIN_SECONDS:
            self._times.missing[contender.name] = budget.spent
            return None
        steps, environment = race.steps_of(contender), self._memory_fraction(contender)
        child = stack.enter_context(start_child(contender, race.workload, steps, python, environment=environment))
        with self._record_failure(contender.name), stopped_in_time(child, budget):
            started = time.monotonic()
            child.prepare()
            child.round()
            self._times.versions |= child.versions
            self._log(f"{contender.name}: ready after {time.monotonic() - started:.0f} s")
            return child
        return None

    def _memory_fraction(self, contender: Contender) -> dict[str, str]:
        """Return the environment that limits the memory of a JAX process.

        Its allocator doubles what it holds each time it grows.
        """
        if self._machine.memory_gib is None:
            return {}
        share = DEVICE_SHARE * min(1.0, self._need(contender) / self._machine.memory_gib)
        return {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{share:.4f}"}

    @contextlib.contextmanager
    def _record_failure(self, name: str) -> Iterator[None]:
        """Add a contender whose process ends to the missing ones."""
        try:
            yield
        except ChildFailed as error:
            self._log(str(error))
            budget = self._machine.budget
            self._times.missing[name] = ENDED if budget.left else budget.spent


@contextlib.contextmanager
def stopped_in_time(child: Child, budget: Budget) -> Iterator[None]:
    """Kill a child that is still busy when the budget is spent."""
    timer = threading.Timer(budget.left, child.stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _truncate_rounds(findings: Findings) -> None:
    """Truncate all series to the shortest one: goals compare values of the same round."""
    rounds = min((len(series.values) for series in findings.series.values()), default=0)
    for name, series in findings.series.items():
        findings.series[name] = dataclasses.replace(series, values=series.values[:rounds])
