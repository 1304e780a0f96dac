"""The record of a run on one device: numbers, traces, ceilings and races, in this order, as far as the time goes."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import os
import pathlib
import platform
import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from benchmarks.children import ChildFailed
from benchmarks.findings import Findings
from benchmarks.gpu_cases import CASES, Case
from benchmarks.gpu_child import Asker
from benchmarks.gpu_facts import trace_rows
from benchmarks.gpu_measure import DeviceRace, Machine
from benchmarks.measure import Log
from benchmarks.race import Race
from benchmarks.written import race_record

ON_CPU: Final = {"JAX_PLATFORMS": "cpu"}
# What is counted of a step, and where: bytes on a compiled one, whose kernels need not be the fastest.
COUNTS: Final = {"flops": ON_CPU, "bytes": {"XLA_FLAGS": "--xla_gpu_autotune_level=0"}}
GOLDEN: Final = ("O0", "O0, sink", "O0_fixed1024_keep", "O2", "O2, sink", "O3", "O2_fixed1024_keep")
POLICIES: Final = ("float32", "mixed_float16", "mixed_bfloat16")
TRACE_STEPS: Final = 2000
NOT_ASKED: Final = "not asked for in this run"


def blank(on_cpu: bool = False) -> dict[str, Any]:
    """Return the record of no run: every line of the page is there, and says "not measured"."""
    races = {case: case.race(on_cpu=on_cpu) for case in CASES.values()}
    nothing = {race.name: Findings(missing={one.name: "" for one in race.contenders}) for race in races.values()}
    return {
        "set": "gpu_on_cpu" if on_cpu else "gpu", "device": None, "checks": None, "traces": None, "ceilings": None,
        "costs": {},
        "races": [race_record(race, nothing[race.name]) for race in races.values()],
        "memory": [_memory(case, race, Findings()) for case, race in races.items()],
    }


def record_of(
    only: Collection[str], machine: Machine, asker: Asker, first: Mapping[str, Any], log: Log
) -> dict[str, Any]:
    """Measure and return what was seen.

    Args:
        only: Names of `benchmarks.gpu_cases.CASES`, "checks" and "traces": what is asked for.
        machine: Where contenders run.
        asker: Who asks fresh processes.
        first: What the first of them said: the device and its ceilings.
        log: Receives progress messages.
    """
    began, load = time.monotonic(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    on_cpu = machine.memory_gib is None
    races = {name: case.race(on_cpu=on_cpu) for name, case in CASES.items()}
    # What is asked is answered while contenders get ready.
    with Answers(_questions(only, {} if on_cpu else races, asker, on_cpu=on_cpu), machine.jobs, log) as answers:
        found = _raced(races, only, machine, log, answers)
    versions = dict(first["versions"])
    for answer in answers.found.values():
        versions |= answer.pop("versions")
    for times, _ in found.values():
        versions |= times.versions
    checks, traces = answers.found.get("checks"), answers.found.get("traces")
    return blank(on_cpu) | {
        "device": {name: first[name] for name in ("platform", "kind", "memory_bytes")},
        "surroundings": _surroundings(load),
        "ceilings": first["ceilings"],
        "checks": checks and checks["checks"],
        "traces": traces and trace_rows(traces, answers.found.get("traces on the CPU")),
        "costs": {
            name: {count: answers.found[f"{count} of {name}"] for count in COUNTS}
            for name in races
            if all(f"{count} of {name}" in answers.found for count in COUNTS)
        },
        "jobs": machine.jobs,
        "races": [race_record(races[name], times) for name, (times, _) in found.items()],
        "memory": [_memory(CASES[name], races[name], peaks) for name, (_, peaks) in found.items()],
        "versions": dict(sorted(versions.items())),
        "seconds": time.monotonic() - began,
    }


def with_earlier(record: Mapping[str, Any], only: Collection[str], earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a record with the parts that were not asked for as an earlier run of this device and versions saw them.

    Args:
        record: What this run saw.
        only: What it was asked for.
        earlier: The record before it; None where there is none.
    """
    if earlier is None or earlier["device"] != record["device"]:
        return dict(record)
    if any(earlier["versions"].get(name, seen) != seen for name, seen in record["versions"].items()):
        return dict(record)
    merged = {**record, "versions": dict(sorted({**earlier["versions"], **record["versions"]}.items()))}
    merged |= {part: earlier[part] for part in ("checks", "traces") if part not in only}
    for measure in ("races", "memory"):
        merged[measure] = [
            now if name in only else before
            for name, now, before in zip(CASES, record[measure], earlier[measure], strict=True)
        ]
    merged["costs"] = {**earlier["costs"], **record["costs"]}
    merged["seconds"] = earlier["seconds"] + record["seconds"]
    return merged


def _raced(
    races: Mapping[str, Race], only: Collection[str], machine: Machine, log: Log, answers: Answers
) -> dict[str, tuple[Findings, Findings]]:
    """Return step times and peaks of each race, or why there are none: the first heats of all, then the second."""
    begun = {name: DeviceRace(race, CASES[name].need, machine, log) for name, race in races.items()}
    waiting = {name: race.heats for name, race in begun.items() if name in only}
    for turn in range(max(map(len, waiting.values()), default=0)):
        for name, heats in waiting.items():
            if turn < len(heats):
                begun[name].run(heats[turn], answers.wait)
    return {name: race.findings(NOT_ASKED) for name, race in begun.items()}


def _memory(case: Case, race: Race, peaks: Findings) -> dict[str, Any]:
    record = race_record(case.memory_race(race), peaks)
    return record | {"missing": {}}  # Who is missing stands beside the step times.


class Answers:
    """The answers of fresh processes that are asked at the same time; a context manager that waits for them.

    Args:
        questions: By name, what asks one.
        jobs: How many are asked at once.
        log: Receives a message for each answer.

    Attributes:
        found: Those that came, by name.
    """

    def __init__(self, questions: Mapping[str, Callable[[], dict[str, Any]]], jobs: int, log: Log) -> None:
        self.found: dict[str, dict[str, Any]] = {}
        self._log = log
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self._asked = [self._pool.submit(self._ask, name, question) for name, question in questions.items()]

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *error: object) -> None:
        self.wait()

    def wait(self) -> None:
        """Return when all have come, or have failed."""
        for future in self._asked:
            future.result()
        self._pool.shutdown()

    def _ask(self, name: str, question: Callable[[], dict[str, Any]]) -> None:
        try:
            self.found[name] = question()
            self._log(f"{name}: answered")
        except ChildFailed as error:
            self._log(str(error))


def _questions(
    only: Collection[str], races: Mapping[str, Race], asker: Asker, *, on_cpu: bool
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return what is asked: numbers, traces, costs of the steps of some races."""
    questions: dict[str, Callable[[], dict[str, Any]]] = {}
    if "checks" in only:
        questions["checks"] = lambda: asker.ask("checks", traces=GOLDEN[:2] if on_cpu else GOLDEN)
    if "traces" in only:
        questions["traces"] = lambda: asker.ask("traces", steps=TRACE_STEPS)
        if not on_cpu:
            questions["traces on the CPU"] = lambda: asker.ask("traces", ON_CPU, steps=TRACE_STEPS)
    for name, race in races.items():
        for count, environment in COUNTS.items() if "costs" in only and name in only else ():
            told = {"workload": dataclasses.asdict(race.workload), "policies": POLICIES, "count": count}
            questions[f"{count} of {name}"] = functools.partial(asker.ask, "cost", environment, **told)
    return questions


def _surroundings(load: float) -> dict[str, Any]:
    path = pathlib.Path("/proc/cpuinfo")
    found = re.search(r"^model name\s*:\s*(.*)$", path.read_text() if path.exists() else "", flags=re.MULTILINE)
    return {
        "cpu": found[1] if found else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": round(load, 2),
    }
