"""What operators on Tensors cost in PyNative mode, beside the same `keras.ops` calls on the backend's tensors.

    python -m benchmarks.tensor_operators
    KERAS_BACKEND=jax python -m benchmarks.tensor_operators --print-only

The tensors are small, so that what is timed is the call and not the arithmetic.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import keras
import numpy as np

import mixtrain
from benchmarks.goals import Goal, judged
from benchmarks.measure import Series, interleaved
from benchmarks.surroundings import load_average, surroundings
from benchmarks.table import PAGE, line, short, surroundings_line, update_section
from benchmarks.written import RESULTS, rounded, write_json

BACKENDS: Final = ("tensorflow", "jax")
NAMES: Final = tuple(f"tensor_operators_{backend}" for backend in BACKENDS)
LIMIT: Final = 1.5
OURS, PEER = "mixtrain.Tensor", "keras.ops"
_PACKAGES: Final = {"tensorflow": ("tensorflow",), "jax": ("jax", "jaxlib")}

_Call = Callable[[], Any]


def calls() -> dict[str, tuple[_Call, _Call]]:
    """Return, by operator, the call on Tensors and the same call on backend tensors."""
    values = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(np.float32)
    a, b = keras.ops.convert_to_tensor(values[0]), keras.ops.convert_to_tensor(values[1])
    x, y = mixtrain.Tensor(values[0]), mixtrain.Tensor(values[1])
    return {
        "x + y": (lambda: x + y, lambda: keras.ops.add(a, b)),
        "x * y": (lambda: x * y, lambda: keras.ops.multiply(a, b)),
        "x @ y": (lambda: x @ y, lambda: keras.ops.matmul(a, b)),
        "ops.relu(x)": (lambda: mixtrain.ops.relu(x), lambda: keras.ops.relu(a)),
        "x.mean()": (lambda: x.mean(), lambda: keras.ops.mean(a)),
        "x.reshape(2, 8)": (lambda: x.reshape(2, 8), lambda: keras.ops.reshape(a, (2, 8))),
    }


def _timed(call: _Call, count: int) -> Callable[[], float]:
    """Return what makes `count` calls and returns the microseconds of one."""

    def run() -> float:
        started = time.perf_counter()
        for _ in range(count):
            result = call()
        np.asarray(result)  # JAX computes while Python goes on.
        return 1e6 * (time.perf_counter() - started) / count

    return run


def measured(*, rounds: int = 41, count: int = 200) -> dict[str, Any]:
    """Return the record: rounds of both calls in turn, and the median of the rounds' ratios."""
    started, load = time.perf_counter(), load_average()
    before = mixtrain.get_context("mode")
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    rows = []
    try:
        for name, (ours, peer) in calls().items():
            runs = {OURS: _timed(ours, count), PEER: _timed(peer, count)}
            for run in runs.values():
                run()
            gc.collect()
            gc.disable()
            try:
                found = interleaved(runs, rounds=rounds)
            finally:
                gc.enable()
            series = {key: Series(key, "microseconds", tuple(values)) for key, values in found.items()}
            medians = {key: one.quartiles[1] for key, one in series.items()}
            rows.append({"median": medians, **judged(Goal(name, OURS, PEER, LIMIT), series)})
    finally:
        mixtrain.set_context(mode=before)
    backend = keras.backend.backend()
    packages = ("keras", "mixtrain", "numpy", *_PACKAGES[backend])
    return rounded({  # type: ignore[no-any-return]
        "set": f"tensor_operators_{backend}",
        "surroundings": surroundings(),
        "versions": {name: importlib.metadata.version(name) if name != "mixtrain" else mixtrain.__version__
                     for name in packages},
        "load_average": {"before": load, "after": load_average()},
        "seconds": time.perf_counter() - started,
        "rounds": rounds,
        "calls_a_round": count,
        "operators": rows,
    })


def as_text(record: Mapping[str, Any]) -> str:
    """Return a record as text with its table."""
    head = ["operator", f"{PEER}, microseconds", f"{OURS}, microseconds", "ratio", "quartiles", "goal", ""]
    lines = [line(head), "|---" * len(head) + "|"]
    for row in record["operators"]:
        median = row["median"]
        lines.append(line([
            f"`{row['what']}`", short(median[PEER]), short(median[OURS]), f"{row['seen']:.2f}",
            f"{row['low']:.2f} to {row['high']:.2f}", f"<= {row['limit']:.2f}", "met" if row["met"] else "not met",
        ]))
    rounds = f"{record['rounds']} rounds of {record['calls_a_round']} calls, tensors of shape (4, 4), float32."
    return "\n\n".join([surroundings_line(record), rounds, "\n".join(lines)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write what was seen."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=41, help="how often each call is timed")
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args(arguments)
    record = measured(rounds=options.rounds)
    text = as_text(record)
    print(text)
    if not options.print_only:
        write_json(record, RESULTS)
        update_section(record["set"], text, PAGE)


if __name__ == "__main__":
    main()
