"""Check that `tune` picks the fastest level, against the times of a separate Model per level.

    python -m benchmarks.tune_choices
    KERAS_BACKEND=jax python -m benchmarks.tune_choices --print-only
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import keras
import numpy as np

from benchmarks.call_pairs import BACKENDS
from benchmarks.measure import interleaved, warm_up
from benchmarks.networks.in_cells import NETWORKS
from benchmarks.surroundings import RunStart, versions
from benchmarks.table import PAGE, line, surroundings_line, update_section
from benchmarks.workloads import CIFAR, LENET, MLP, Workload
from benchmarks.written import rounded, write_json
from mixtrain import Model, nn, set_seed, tune
from mixtrain.dataset import NumpySlicesDataset

NAMES: Final = tuple(f"tune_{backend}" for backend in BACKENDS)
STEPS: Final = 20
TOLERANCE: Final = 0.1
# Times that differ by less count as equal: neither measurement is more precise.
_NEAR: Final = 1.05


def trials() -> list[Workload]:
    """Return dense and convolutional workloads of several sizes and batch sizes."""
    dense = [(64, 32), (256, 64), (512, 128), (1024, 32), (1024, 256)]
    workloads = [dataclasses.replace(MLP, title=f"MLP {w} wide, batch {b}", width=w, batch=b) for w, b in dense]
    workloads += [dataclasses.replace(LENET, title=f"LeNet-5, batch {b}", batch=b) for b in (8, 32, 64, 128)]
    return [*workloads, dataclasses.replace(CIFAR, title="CIFAR CNN, batch 8", batch=8)]


def _model(workload: Workload, **level: Any) -> Model:
    set_seed(0)
    network = NETWORKS[workload.network](nn, workload)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return Model(network, loss, nn.SGD(network.trainable_params(), 0.01), **level)


def _data(workload: Workload) -> Any:
    random = np.random.default_rng(0)
    shape = (*workload.shape[-1:], *workload.shape[:-1])  # Channels first.
    rows = random.standard_normal((STEPS * workload.batch, *shape)).astype(np.float32)
    labels = random.integers(0, workload.classes, len(rows)).astype(np.int32)
    return NumpySlicesDataset((rows, labels), shuffle=False).batch(workload.batch)


def _epoch(model: Model, data: Any) -> Callable[[], float]:
    def run() -> float:
        started = time.perf_counter()
        model.train(1, data, verbose=0)
        return time.perf_counter() - started

    return run


def trial(workload: Workload, rounds: int) -> dict[str, Any]:
    """Return the level that `tune` picks and the times of the levels within its tolerance."""
    data = _data(workload)
    tuning = tune(_model(workload, amp_level="O2"), data, tolerance=TOLERANCE, verbose=False)
    runs = {}
    for level in tuning.levels:
        if level.error <= tuning.tolerance:
            runs[level.line] = _epoch(_model(workload, amp_level=level.amp_level, cast_model_type=level.half), data)
    for run in runs.values():
        warm_up(run)
    seconds = interleaved(runs, rounds=rounds)
    times = {name: statistics.median(values) / STEPS * 1e3 for name, values in seconds.items()}
    fastest = min(times, key=lambda name: times[name])
    ratio = times[tuning.best.line] / times[fastest]
    return {
        "what": workload.title, "picked": tuning.best.line, "fastest": fastest, "ratio": ratio,
        "right": ratio <= _NEAR, "ms_a_step": times,
    }


def measured(rounds: int) -> dict[str, Any]:
    """Return the record of all trials."""
    start, rows = RunStart(), []
    for workload in trials():
        row = trial(workload, rounds)
        rows.append(row)
        print(f"{row['what']}: {row['picked']} takes {row['ratio']:.3f} of the fastest, {row['fastest']}", flush=True)
    return rounded({  # type: ignore[no-any-return]
        **start.metadata(f"tune_{keras.backend.backend()}", versions()),
        "rounds": rounds, "steps": STEPS, "rows": rows,
    })


def as_text(record: Mapping[str, Any]) -> str:
    """Format a record as Markdown."""
    head = ["network", "picked", "fastest", "ratio", ""]
    lines = [line(head), "|---" * len(head) + "|"]
    for row in record["rows"]:
        picked, fastest = (f"`{row[name]}`" for name in ("picked", "fastest"))
        verdict = "right" if row["right"] else "not right"
        lines.append(line([row["what"], picked, fastest, f"{row['ratio']:.3f}", verdict]))
    right = sum(row["right"] for row in record["rows"])
    total = f"{right} of {len(lines) - 2} are right; {record['rounds']} rounds of epochs of {record['steps']} steps."
    return "\n\n".join([surroundings_line(record), total, "\n".join(lines)])


def main() -> None:
    """Measure, and write the record and the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args()
    record = measured(options.rounds)
    text = as_text(record)
    print(text)
    if not options.print_only:
        write_json(record)
        update_section(record["set"], text, PAGE)


if __name__ == "__main__":
    main()
