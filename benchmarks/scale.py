"""Measure how the overhead over a hand-written step grows with layers, parameters and batch size.

    python -m benchmarks.scale
    python -m benchmarks.scale --backend jax --quick

`Model` and the same step in plain TensorFlow or JAX train an MLP that grows along one axis at a time, each in its own
process. Measured are the seconds to the first step, the milliseconds per step, and the peak of memory above that before
training. A size whose first step takes longer than `--seconds` is halved, and the table says so.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np

from benchmarks.children import ChildFailed, start_child
from benchmarks.contender import Contender
from benchmarks.gpu_measure import Budget, stopped_in_time
from benchmarks.measure import Series, interleaved
from benchmarks.surroundings import RunStart
from benchmarks.table import PAGE, line, short, surroundings_line, update_section
from benchmarks.workloads import MLP, Workload
from benchmarks.written import RESULTS, rounded, write_json

Backend = Literal["tensorflow", "jax"]
Axis = Literal["layers", "parameters", "batch"]

# By backend: the step written by hand, and ours.
CONTENDERS: Final[dict[Backend, tuple[Contender, Contender]]] = {
    "tensorflow": (Contender("hand-written", "plain"), Contender("mixtrain", "mixtrain", scaling="none")),
    "jax": (Contender("hand-written", "plain jax"), Contender("mixtrain", "mixtrain jax", scaling="none")),
}
NAMES: Final = tuple(f"scale_{backend}" for backend in CONTENDERS)
SIZES: Final[dict[Axis, tuple[int, ...]]] = {
    "layers": (1, 10, 100, 1000),
    "parameters": (10**3, 10**4, 10**5, 10**6, 10**7, 10**8),
    "batch": (1, 16, 128, 1024, 8192),
}
MEASURES: Final = {"first": "s to the first step", "step": "ms per step", "memory": "MiB"}
# An exponent of 1 is linear; the rest is for noise.
MAX_EXPONENT: Final = 1.1
# Of the hand-written step's value: less counts as no excess.
NOISE: Final = 0.05


def enlarged(axis: Axis, size: int) -> Workload:
    """Return the MLP scaled along one axis to about `size`: layers, parameters or batch size."""
    if axis == "batch":
        return dataclasses.replace(MLP, batch=size)
    if axis == "layers":
        return dataclasses.replace(MLP, depth=size - 1)
    # Two hidden layers of width w have w * w + (shape + classes + 2) * w + classes parameters.
    linear = MLP.shape[0] + MLP.classes + 2
    return dataclasses.replace(MLP, width=round((math.sqrt(linear**2 + 4 * (size - MLP.classes)) - linear) / 2))


def parameters(workload: Workload) -> int:
    """Return the number of parameters of an MLP."""
    sizes = [workload.shape[0], *[workload.width] * workload.depth, workload.classes]
    return sum(a * b + b for a, b in zip(sizes, sizes[1:], strict=False))


def steps_of(workload: Workload) -> int:
    """Return the steps per round that take about 0.3 seconds, by a rough upper estimate."""
    seconds = 6e-10 * parameters(workload) * workload.batch / 10 + 1e-4 * (workload.depth + 1)
    return max(1, min(64, int(0.3 / seconds)))


def exponent(sizes: Sequence[float], ours: Sequence[float], hand: Sequence[float]) -> float | None:
    """Fit the exponent with which the excess over the hand-written step grows, by least squares.

    Args:
        sizes: The sizes.
        ours: Measurements of mixtrain.
        hand: Measurements of the hand-written step.

    Returns:
        The exponent, or None where fewer than two sizes have an excess.
    """
    excess = [(n, a - b) for n, a, b in zip(sizes, ours, hand, strict=True) if a - b > NOISE * b]
    if len(excess) < 2:
        return None
    x, y = np.log(np.array(excess, float)).T
    return float(np.polyfit(x, y, 1)[0])


def costs(
    contenders: Sequence[Contender], workload: Workload, *, steps: int, rounds: int, seconds: float
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return the training costs by contender, and the versions.

    Args:
        contenders: The contenders.
        workload: The workload.
        steps: Steps per round.
        rounds: Number of rounds.
        seconds: Time limit up to the first step of a contender.

    Raises:
        ChildFailed: A process ended, or was killed at the time limit.
    """
    with contextlib.ExitStack() as stack:
        children = {
            contender.name: stack.enter_context(start_child(contender, workload, steps, sys.executable))
            for contender in contenders
        }
        versions: dict[str, str] = {}
        for child in children.values():  # Waits until all have built network and data.
            versions |= child.versions
        before, first = {}, {}
        for name, child in children.items():
            with stopped_in_time(child, Budget(seconds)):
                before[name] = child.ask("forget")["peak_bytes"]
                first[name] = child.prepare() + child.round()
                child.round()
        values = interleaved({name: child.round for name, child in children.items()}, rounds=rounds, patience=20.0)
        result = {}
        for name, child in children.items():
            step = Series(name, "s", tuple(values[name])).quartiles[1] / steps
            answer = child.ask("round")
            result[name] = {
                "first": max(first[name] - (steps - 1) * step, step),
                "step": 1000 * step,
                "memory": (answer["peak_bytes"] - before[name]) / 2**20,
            }
        return result, versions


def point(backend: Backend, axis: Axis, size: int, *, rounds: int, seconds: float) -> dict[str, Any]:
    """Return the row of a size; halve the size up to three times where it takes too long."""
    for reduced in (size, size // 2, size // 4, size // 8):
        workload = enlarged(axis, reduced)
        steps = steps_of(workload)
        _log(f"{backend}: {reduced:,} {axis}, {steps} steps per round")
        try:
            values, versions = costs(CONTENDERS[backend], workload, steps=steps, rounds=rounds, seconds=seconds)
        except ChildFailed as error:
            _log(str(error))
            continue
        actual = parameters(workload) if axis == "parameters" else reduced
        return {"axis": axis, "asked": size, "size": actual, "steps": steps, "versions": versions, **values}
    return {"axis": axis, "asked": size, "size": None}


def measured(backend: Backend, sizes: Mapping[Axis, Sequence[int]], *, rounds: int, seconds: float) -> dict[str, Any]:
    """Return the record of a backend: a row per size and the growth of each excess."""
    start = RunStart()
    rows = [
        point(backend, axis, size, rounds=rounds, seconds=seconds) for axis, values in sizes.items() for size in values
    ]
    versions = {name: version for row in rows for name, version in row.pop("versions", {}).items()}
    return rounded({  # type: ignore[no-any-return]
        **start.metadata(f"scale_{backend}", dict(sorted(versions.items()))),
        "rounds": rounds, "seconds_to_first_step": seconds, "rows": rows, "growth": growth(rows),
    })


def growth(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the exponent of the excess for each axis and measure."""
    result = []
    for axis in SIZES:
        measured_rows = [row for row in rows if row["axis"] == axis and row["size"] is not None]
        for measure in MEASURES:
            ours, hand = ([row[name][measure] for row in measured_rows] for name in ("mixtrain", "hand-written"))
            power = exponent([row["size"] for row in measured_rows], ours, hand)
            met = power is None or power <= MAX_EXPONENT
            result.append({"axis": axis, "measure": measure, "exponent": power, "limit": MAX_EXPONENT, "met": met})
    return result


def as_text(record: Mapping[str, Any]) -> str:
    """Format a record as Markdown."""
    names = ("hand-written", "mixtrain")
    head = ["MLP", *(f"{unit}, {name}" for unit in MEASURES.values() for name in names)]
    lines = [line(head), "|---" * len(head) + "|"]
    for row in record["rows"]:
        title = f"{row['asked']:,} {row['axis']}"
        if row["size"] is None:
            lines.append(line([f"{title}: longer than {record['seconds_to_first_step']:.0f} s, and an eighth too",
                               *[""] * (len(head) - 1)]))
            continue
        reduced = row["axis"] != "parameters" and row["size"] != row["asked"] or row["size"] < 0.9 * row["asked"]
        title += f", reduced to {row['size']:,}" if reduced else ""
        lines.append(line([title, *(short(row[name][measure]) for measure in MEASURES for name in names)]))
    verdicts = ["| excess over the hand-written step | grows with the power | goal | |", "|---|---|---|---|"]
    for row in record["growth"]:
        what = f"{MEASURES[row['measure']]}, with {row['axis']}"
        power = "no excess" if row["exponent"] is None else f"{row['exponent']:.2f}"
        verdicts.append(line([what, power, f"<= {row['limit']:.2f}", "met" if row["met"] else "not met"]))
    linear = all(row["met"] for row in record["growth"])
    verdict = f"{'No' if linear else 'A'} term of ours grows faster than linearly."
    return "\n\n".join([
        surroundings_line(record), f"{record['rounds']} rounds.", "\n".join(lines), "\n".join(verdicts), verdict,
    ])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the records and the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--rounds", type=int, default=9, help="how often each step is timed")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long a first step may take")
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, to see that all runs; no writing")
    parser.add_argument("--print-only", action="store_true", help="leave the records and the page as they are")
    options = parser.parse_args(arguments)
    sizes = {axis: values[:2] if axis == "layers" else values[:1] for axis, values in SIZES.items()}
    for backend in options.backend:
        record = measured(
            backend, sizes if options.quick else SIZES, rounds=3 if options.quick else options.rounds,
            seconds=options.seconds,
        )
        text = as_text(record)
        print(f"\n## {record['set']}\n\n{text}", flush=True)
        if not (options.quick or options.print_only):
            write_json(record, RESULTS)
            update_section(record["set"], text, PAGE)


def _log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
