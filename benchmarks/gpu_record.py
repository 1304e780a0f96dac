"""Run checks, traces, ceilings and races on one device, as far as the time allows, and collect the record."""

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
# Cost of a step -> environment of its process. Bytes need a compiled step, but not the fastest kernels.
COUNTS: Final = {"flops": ON_CPU, "bytes": {"XLA_FLAGS": "--xla_gpu_autotune_level=0"}}
GOLDEN: Final = ("O0", "O0, sink", "O0_fixed1024_keep", "O2", "O2, sink", "O3", "O2_fixed1024_keep")
POLICIES: Final = ("float32", "mixed_float16", "mixed_bfloat16")
TRACE_STEPS: Final = 2000
NOT_SELECTED: Final = "not selected for this run"


def blank(on_cpu: bool = False) -> dict[str, Any]:
    """Return the record of no run: the page has every line and shows "not measured"."""
    races = {case: case.race(on_cpu=on_cpu) for case in CASES.values()}
    nothing = {race.name: Findings(missing={item.name: "" for item in race.contenders}) for race in races.values()}
    return {
        "set": "gpu_on_cpu" if on_cpu else "gpu", "device": None, "checks": None, "traces": None, "ceilings": None,
        "costs": {},
        "races": [race_record(race, nothing[race.name]) for race in races.values()],
        "memory": [_memory(case, race, Findings()) for case, race in races.items()],
    }


def record_of(
    only: Collection[str], machine: Machine, asker: Asker, first: Mapping[str, Any], log: Log
) -> dict[str, Any]:
    """Run the selected parts and return their record.

    Args:
        only: The selected parts: "checks", "traces", "costs" and keys of `benchmarks.gpu_cases.CASES`.
        machine: Interpreters, device memory and limits.
        asker: Asks fresh processes.
        first: Answer of the first process: the device and its ceilings.
        log: Receives progress messages.
    """
    started, load = time.monotonic(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    on_cpu = machine.memory_gib is None
    races = {name: case.race(on_cpu=on_cpu) for name, case in CASES.items()}
    # The questions are answered while contenders are prepared.
    with Answers(_questions(only, {} if on_cpu else races, asker, on_cpu=on_cpu), machine.jobs, log) as answers:
        findings = _run_races(races, only, machine, log, answers)
    versions = dict(first["versions"])
    for answer in answers.results.values():
        versions |= answer.pop("versions")
    for times, _ in findings.values():
        versions |= times.versions
    checks, traces = answers.results.get("checks"), answers.results.get("traces")
    return blank(on_cpu) | {
        "device": {name: first[name] for name in ("platform", "kind", "memory_bytes")},
        "surroundings": _surroundings(load),
        "ceilings": first["ceilings"],
        "checks": checks and checks["checks"],
        "traces": traces and trace_rows(traces, answers.results.get("traces on the CPU")),
        "costs": {
            name: {count: answers.results[f"{count} of {name}"] for count in COUNTS}
            for name in races
            if all(f"{count} of {name}" in answers.results for count in COUNTS)
        },
        "jobs": machine.jobs,
        "races": [race_record(races[name], times) for name, (times, _) in findings.items()],
        "memory": [_memory(CASES[name], races[name], peaks) for name, (_, peaks) in findings.items()],
        "versions": dict(sorted(versions.items())),
        "seconds": time.monotonic() - started,
    }


def with_earlier(record: Mapping[str, Any], only: Collection[str], earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """Fill the parts that were not selected from an earlier run on the same device and versions.

    Args:
        record: The record of this run.
        only: The parts selected for it.
        earlier: The previous record; None if there is none.
    """
    if earlier is None or earlier["device"] != record["device"]:
        return dict(record)
    if any(earlier["versions"].get(name, version) != version for name, version in record["versions"].items()):
        return dict(record)
    merged = {**record, "versions": dict(sorted({**earlier["versions"], **record["versions"]}.items()))}
    merged |= {part: earlier[part] for part in ("checks", "traces") if part not in only}
    for measure in ("races", "memory"):
        merged[measure] = [
            current if name in only else previous
            for name, current, previous in zip(CASES, record[measure], earlier[measure], strict=True)
        ]
    merged["costs"] = {**earlier["costs"], **record["costs"]}
    merged["seconds"] = earlier["seconds"] + record["seconds"]
    return merged


def _run_races(
    races: Mapping[str, Race], only: Collection[str], machine: Machine, log: Log, answers: Answers
) -> dict[str, tuple[Findings, Findings]]:
    """Return step times and peaks of each race; the first heats of all races run before the second ones."""
    device_races = {name: DeviceRace(race, CASES[name].need, machine, log) for name, race in races.items()}
    waiting = {name: race.heats for name, race in device_races.items() if name in only}
    for turn in range(max(map(len, waiting.values()), default=0)):
        for name, heats in waiting.items():
            if turn < len(heats):
                device_races[name].run(heats[turn], answers.wait)
    return {name: race.findings(NOT_SELECTED) for name, race in device_races.items()}


def _memory(case: Case, race: Race, peaks: Findings) -> dict[str, Any]:
    record = race_record(case.memory_race(race), peaks)
    return record | {"missing": {}}  # The race of step times lists the missing contenders.


class Answers:
    """Answers of fresh processes that run concurrently; a context manager that waits for them.

    Args:
        questions: Functions by name that ask a question.
        jobs: Number of concurrent questions.
        log: Receives a message for each answer.

    Attributes:
        results: Answers by name.
    """

    def __init__(self, questions: Mapping[str, Callable[[], dict[str, Any]]], jobs: int, log: Log) -> None:
        self.results: dict[str, dict[str, Any]] = {}
        self._log = log
        self._pool = concurrent.futures.ThreadPoolExecutor(jobs)
        self._futures = [self._pool.submit(self._ask, name, question) for name, question in questions.items()]

    def __enter__(self) -> Answers:
        return self

    def __exit__(self, *error: object) -> None:
        self.wait()

    def wait(self) -> None:
        """Wait until all questions are answered or have failed."""
        for future in self._futures:
            future.result()
        self._pool.shutdown()

    def _ask(self, name: str, question: Callable[[], dict[str, Any]]) -> None:
        try:
            self.results[name] = question()
            self._log(f"{name}: answered")
        except ChildFailed as error:
            self._log(str(error))


def _questions(
    only: Collection[str], races: Mapping[str, Race], asker: Asker, *, on_cpu: bool
) -> dict[str, Callable[[], dict[str, Any]]]:
    """Return the questions of the selected parts: checks, traces and step costs of races."""
    questions: dict[str, Callable[[], dict[str, Any]]] = {}
    if "checks" in only:
        questions["checks"] = lambda: asker.ask("checks", traces=GOLDEN[:2] if on_cpu else GOLDEN)
    if "traces" in only:
        questions["traces"] = lambda: asker.ask("traces", steps=TRACE_STEPS)
        if not on_cpu:
            questions["traces on the CPU"] = lambda: asker.ask("traces", ON_CPU, steps=TRACE_STEPS)
    for name, race in races.items():
        for count, environment in COUNTS.items() if "costs" in only and name in only else ():
            request = {"workload": dataclasses.asdict(race.workload), "policies": POLICIES, "count": count}
            questions[f"{count} of {name}"] = functools.partial(asker.ask, "cost", environment, **request)
    return questions


def _surroundings(load: float) -> dict[str, Any]:
    path = pathlib.Path("/proc/cpuinfo")
    match = re.search(r"^model name\s*:\s*(.*)$", path.read_text() if path.exists() else "", flags=re.MULTILINE)
    return {
        "cpu": match[1] if match else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": round(load, 2),
    }
