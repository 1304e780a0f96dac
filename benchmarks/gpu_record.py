"""The record of a run on one device: numbers, traces, ceilings and races, in this order, as far as the time goes."""

from __future__ import annotations

import concurrent.futures
import dataclasses
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
from benchmarks.gpu_facts import limit_rows, trace_rows
from benchmarks.gpu_measure import LEAST, Machine, device_race, heats
from benchmarks.measure import Say
from benchmarks.race import Race
from benchmarks.written import race_record

ON_CPU: Final = {"JAX_PLATFORMS": "cpu"}
# What a step costs is counted on a compiled one, whose kernels need not be the fastest.
UNTUNED: Final = {"XLA_FLAGS": "--xla_gpu_autotune_level=0"}
GOLDEN: Final = ("O0", "O0, sink", "O0_fixed1024_keep", "O2", "O2, sink", "O3", "O2_fixed1024_keep")
POLICIES: Final = ("float32", "mixed_float16", "mixed_bfloat16")
TRACE_STEPS: Final = 2000
NOT_ASKED: Final = "not asked for in this run"


def blank(on_cpu: bool = False) -> dict[str, Any]:
    """Return the record of no run: every line of the page is there, and says "not measured"."""
    races = {case: case.race(None if on_cpu else 0.0) for case in CASES.values()}
    nothing = {race.name: Findings(missing={one.name: "" for one in race.contenders}) for race in races.values()}
    return {
        "set": "gpu_on_cpu" if on_cpu else "gpu", "device": None, "checks": None, "traces": None, "ceilings": None,
        "limits": [],
        "races": [race_record(race, nothing[race.name]) for race in races.values()],
        "memory": [_memory(case, race, Findings()) for case, race in races.items()],
    }


def record_of(
    only: Collection[str], machine: Machine, asker: Asker, first: Mapping[str, Any], say: Say
) -> dict[str, Any]:
    """Measure and return what was seen.

    Args:
        only: Names of `benchmarks.gpu_cases.CASES`, "checks" and "traces": what is asked for.
        machine: Where contenders run.
        asker: Who asks fresh processes.
        first: What the first of them said: the device and its ceilings.
        say: Told how far it is.
    """
    began, load = time.monotonic(), os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    on_cpu = machine.memory_gib is None
    races = {name: case.race(machine.memory_gib) for name, case in CASES.items()}
    answers = _answers(only, races, machine, asker, say)
    record = blank(on_cpu) | {
        "device": {name: first[name] for name in ("platform", "kind", "memory_bytes")},
        "surroundings": _surroundings(load),
        "ceilings": first["ceilings"],
        "checks": answers.get("checks", {}).get("checks"),
        "traces": trace_rows(answers["traces"], answers.get("traces on the CPU")) if "traces" in answers else None,
        "jobs": machine.jobs,
    }
    versions = dict(first["versions"])
    for answer in answers.values():
        versions |= answer["versions"]
    record["races"], record["memory"] = [], []
    for name, race in races.items():
        times, peaks = _raced(CASES[name], race, machine, say, asked=name in only)
        versions |= times.versions
        row = race_record(race, times)
        record["races"].append(row)
        record["memory"].append(_memory(CASES[name], race, peaks))
        if name in answers and not on_cpu:
            record["limits"] += limit_rows(race, row, answers[name], first["ceilings"])
    return record | {"versions": dict(sorted(versions.items())), "seconds": time.monotonic() - began}


def _raced(case: Case, race: Race, machine: Machine, say: Say, *, asked: bool) -> tuple[Findings, Findings]:
    """Return step times and peaks of a case, or why there are none."""
    if not asked or machine.budget.left < LEAST:
        why = machine.budget.spent if asked else NOT_ASKED
        say(f"{race.name}: {why}")
        return Findings(missing={one.name: why for one in race.contenders}), Findings()
    groups = heats(race, lambda one: case.need(one, race.workload), machine.memory_gib)
    return device_race(race, groups, machine, lambda text: say(f"{race.name}: {text}"))


def _memory(case: Case, race: Race, peaks: Findings) -> dict[str, Any]:
    record = race_record(case.memory_race(race), peaks)
    return record | {"missing": {}}  # Who is missing stands beside the step times.


def _answers(
    only: Collection[str], races: Mapping[str, Race], machine: Machine, asker: Asker, say: Say
) -> dict[str, dict[str, Any]]:
    """Return the answers of fresh processes that are asked at the same time: numbers, traces, costs of steps."""
    on_cpu = machine.memory_gib is None
    questions: dict[str, Callable[[], dict[str, Any]]] = {}
    if "checks" in only:
        questions["checks"] = lambda: asker.ask("checks", traces=GOLDEN[:2] if on_cpu else GOLDEN)
    if "traces" in only:
        questions["traces"] = lambda: asker.ask("traces", steps=TRACE_STEPS)
        if not on_cpu:
            questions["traces on the CPU"] = lambda: asker.ask("traces", ON_CPU, steps=TRACE_STEPS)
    for name, race in {} if on_cpu else races.items():
        if name in only:
            questions[name] = _cost_of(race, asker)
    found = {}
    with concurrent.futures.ThreadPoolExecutor(machine.jobs) as pool:
        asked = {name: pool.submit(question) for name, question in questions.items()}
        for name, future in asked.items():
            try:
                found[name] = future.result()
                say(f"{name}: answered")
            except ChildFailed as error:
                say(str(error))
    return found


def _cost_of(race: Race, asker: Asker) -> Callable[[], dict[str, Any]]:
    workload = dataclasses.asdict(race.workload)
    return lambda: asker.ask("cost", UNTUNED, workload=workload, policies=POLICIES)


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
