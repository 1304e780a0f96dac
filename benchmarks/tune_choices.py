"""Check that `tune` picks the fastest level, against the times of a separate Model per level.

    python -m benchmarks.tune_choices
    KERAS_BACKEND=jax python -m benchmarks.tune_choices --print-only
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import keras
import numpy as np

from benchmarks.call_pairs import BACKENDS
from benchmarks.measure import interleaved, warm_up
from benchmarks.networks.of_kinds import CLASSES, KINDS, Kind
from benchmarks.surroundings import RunStart, versions
from benchmarks.table import line, publish, surroundings_line
from benchmarks.written import rounded
from mixtrain import DynamicLossScaleManager, Model, set_seed, tune
from mixtrain.dataset import NumpySlicesDataset

NAMES: Final = tuple(f"tune_{backend}" for backend in BACKENDS)
STEPS: Final = 20
TOLERANCE: Final = 0.1
# Times that differ by less count as equal: neither measurement is more precise.
_NEAR: Final = 1.03
# Levels that take this times the fastest are timed once.
_FAR: Final = 2.0


def _model(kind: Kind, **level: Any) -> Model:
    set_seed(0)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    manager = DynamicLossScaleManager(2.0**10)
    return Model(kind.network(), loss, keras.optimizers.SGD(0.01), loss_scale_manager=manager, **level)


def _dtypes(model: Model) -> str:
    """Return what the layers compute in: levels for which it is the same are one program."""
    return " ".join(row.compute_dtype.name for row in model.precision_report().rows)


def _data(kind: Kind) -> Any:
    random = np.random.default_rng(0)
    shape = (STEPS * kind.batch, *kind.shape)
    if kind.vocabulary:
        rows: np.ndarray = random.integers(0, kind.vocabulary, shape, np.int32)
    else:
        rows = random.standard_normal(shape).astype(np.float32)
    labels = random.integers(0, CLASSES, len(rows)).astype(np.int32)
    return NumpySlicesDataset((rows, labels), shuffle=False).batch(kind.batch)


def _epoch(model: Model, data: Any) -> Callable[[], float]:
    def run() -> float:
        started = time.perf_counter()
        model.train(1, data, verbose=0)
        return time.perf_counter() - started

    return run


def trial(kind: Kind, rounds: int) -> dict[str, Any]:
    """Return the level that `tune` picks and the times of the levels within its tolerance."""
    data = _data(kind)
    tuning = tune(_model(kind, amp_level="O2"), data, tolerance=TOLERANCE, verbose=False)
    runs, programs = {}, {}
    for level in tuning.levels:
        if level.error <= tuning.tolerance:
            model = _model(kind, amp_level=level.amp_level, cast_model_type=level.half)
            programs[level.line] = _dtypes(model)
            if programs[level.line] not in runs:
                runs[programs[level.line]] = _epoch(model, data)
    for run in runs.values():
        warm_up(run)
    once = {name: [run()] * 2 for name, run in runs.items()}
    # What is far behind once is not the fastest; some levels take seconds a step.
    near = {name: run for name, run in runs.items() if once[name][0] < _FAR * min(once.values())[0]}
    seconds = once | interleaved(near, rounds=rounds)
    # The lower quartile: other programs on the machine only add to a time.
    of_program = {name: statistics.quantiles(values, n=4)[0] / STEPS * 1e3 for name, values in seconds.items()}
    times = {name: of_program[program] for name, program in programs.items()}
    best = tuning.best.line
    fastest = min(times, key=lambda name: (times[name], name != best))
    ratio = times[best] / times[fastest]
    return {
        "what": kind.title, "picked": best, "fastest": fastest, "ratio": ratio,
        "right": ratio <= _NEAR, "ms_a_step": times,
    }


def measured(rounds: int) -> dict[str, Any]:
    """Return the record of all trials."""
    start, rows = RunStart(), []
    for kind in KINDS:
        row = trial(kind, rounds)
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
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args()
    record = measured(options.rounds)
    publish(record, as_text(record), print_only=options.print_only)


if __name__ == "__main__":
    main()
