"""Soak test: growth of memory, threads, file descriptors and traces over a million steps and many Models.

    python -m benchmarks.soak
    KERAS_BACKEND=jax python -m benchmarks.soak --print-only --share 0.01

Each case runs in its own process, after a warm-up. Memory is the resident set size.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import gc
import json
import os
import pathlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import keras
import numpy as np

import mixtrain
from benchmarks.call_pairs import BACKENDS
from benchmarks.surroundings import RunStart, versions
from benchmarks.table import PAGE, line, surroundings_line, update_section
from benchmarks.written import RESULTS, rounded, write_json
from mixtrain import DynamicLossScaleManager, Model, nn, ops
from mixtrain.dataset import NumpySlicesDataset

NAMES: Final = tuple(f"soak_{backend}" for backend in BACKENDS)
# Fragmentation keeps some freed memory resident; growth beyond this counts as a leak.
MAX_GROWTH_MIB: Final = 40
_POLL_SECONDS: Final = 0.2
_ROWS, _BATCH = 64, 4
_KERAS_ALONE: Final = "keras_alone"


class Observed:
    """Counters that a case updates while it runs.

    Attributes:
        traces: Number of calls of a network's Python code, which only tracing runs.
        scales: Smallest and largest loss scale of each epoch.
    """

    def __init__(self) -> None:
        self.traces = 0
        self.scales: list[float] = []

    def activation(self, x: Any) -> Any:
        """Apply ReLU and count the trace."""
        self.traces += 1
        return keras.ops.relu(x)


class _CellNetwork(nn.Cell):
    def __init__(self, observed: Observed) -> None:
        super().__init__()
        self._observed = observed
        self.dense = nn.Dense(8, 1)

    def construct(self, x: Any) -> Any:
        self._observed.traces += 1
        return self.dense(ops.relu(x))


class _Scales(mixtrain.Callback):
    """Record the loss scales of each epoch."""

    observes_only = True

    def __init__(self, observed: Observed) -> None:
        super().__init__()
        self._observed = observed

    def on_train_epoch_end(self, run_context: Any) -> None:
        scale = run_context.original_args().epoch_results.loss_scale
        self._observed.scales += [float(scale.min()), float(scale.max())]


def _arrays() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((_ROWS, 8)).astype(np.float32)
    return x, x.sum(1, keepdims=True)


def _data(steps: int) -> NumpySlicesDataset:
    data = NumpySlicesDataset(_arrays(), ["x", "y"], shuffle=False).batch(_BATCH).repeat(-(-steps * _BATCH // _ROWS))
    return data.take(steps)  # type: ignore[no-any-return]


def _cell_model(observed: Observed) -> Model:
    network = _CellNetwork(observed)
    optimizer = nn.SGD(network.trainable_params(), 1e-4)
    return Model(
        network, nn.MSELoss(), optimizer, amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2**10, 2, 200)
    )


def _network(observed: Observed) -> keras.Sequential:
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((8,)), layers.Dense(16, observed.activation), layers.BatchNormalization(), layers.Dense(1)]
    )


def _keras_model(observed: Observed) -> Model:
    scale = DynamicLossScaleManager(2**10, 2, 200)
    return Model(_network(observed), "mse", keras.optimizers.Adam(1e-4), amp_level="O2", loss_scale_manager=scale)


# ---- cases: each yields once, after its warm-up ---------------------------------------------------------------
def _epoch(observed: Observed, count: int, sink: bool) -> Iterator[None]:
    model = _cell_model(observed)
    # Warmed up by more steps than are kept as they came.
    model.train(2, _data(3000), [_Scales(observed)], verbose=0, dataset_sink_mode=sink)
    yield
    model.train(1, _data(count), [_Scales(observed)], verbose=0, dataset_sink_mode=sink)


def _train_calls(observed: Observed, count: int) -> Iterator[None]:
    model, data = _keras_model(observed), _data(16)

    def train(times: int) -> None:
        for number in range(times):
            model.train(1, data, [_Scales(observed)], verbose=0, dataset_sink_mode=bool(number % 2))

    # On JAX, steps run in groups only after a while.
    train(max(100, count // 3))
    yield
    train(count)


def _models(observed: Observed, count: int, make: Callable[[Observed], Model]) -> Iterator[None]:
    def repeat(times: int) -> None:
        for _ in range(times):
            model = make(observed)
            model.train(1, _data(16), [_Scales(observed)], verbose=0)
            model.predict(_arrays()[0])

    repeat(6)
    yield
    repeat(count)


def _keras_alone(observed: Observed, count: int) -> Iterator[None]:
    def fit(times: int) -> None:
        for _ in range(times):
            network = _network(observed)
            network.compile(keras.optimizers.Adam(1e-4), "mse")
            network.fit(*_arrays(), batch_size=_BATCH, verbose=0)
            network.predict(_arrays()[0], verbose=0)

    fit(6)
    yield
    fit(count)


def _predicts(observed: Observed, count: int) -> Iterator[None]:
    model, batch = _keras_model(observed), _arrays()[0][:_BATCH]

    def predict(times: int) -> None:
        for _ in range(times):
            model.predict(batch)

    predict(1000)
    yield
    predict(count)


def _folds(observed: Observed, count: int) -> Iterator[None]:
    def fold(times: int) -> None:
        x, y = _arrays()
        for number in range(times):
            keras.backend.clear_session()
            held_out = np.arange(_ROWS) % 4 == number % 4
            model = _keras_model(observed)
            model.fit(
                x[~held_out], y[~held_out], batch_size=_BATCH, epochs=2, callbacks=[_Scales(observed)], verbose=0,
                validation_data=(x[held_out], y[held_out]),
            )
            model.predict(x[held_out])

    fold(4)
    yield
    fold(count)


@dataclasses.dataclass(frozen=True)
class Case:
    """An operation that is repeated many times.

    Attributes:
        name: Name of the case.
        what: Description for the table.
        count: Number of repetitions.
        run: Generator that warms up, yields once, and repeats the operation `count` times.
        traced: Whether each repetition is traced, because it creates a network.
        baseline: Name of the case that does the same in Keras alone, whose growth is not mixtrain's.
    """

    name: str
    what: str
    count: int
    run: Callable[[Observed, int], Iterator[None]]
    traced: bool = False
    baseline: str | None = None


CASES: Final = {
    case.name: case
    for case in (
        Case("epoch_host", "steps of one epoch, host feed", 1_000_000, partial(_epoch, sink=False)),
        Case("epoch_sink", "steps of one epoch, sink feed", 1_000_000, partial(_epoch, sink=True)),
        Case("train_calls", "calls of `train`, host and sink feed in turn", 300, _train_calls),
        Case("models_of_cells", "Models of Cells made, trained and dropped", 60, partial(_models, make=_cell_model),
             traced=True),
        Case(_KERAS_ALONE, "Keras networks compiled, fit and dropped, without mixtrain", 60, _keras_alone, traced=True),
        Case(
            "models_of_keras", "Models of Keras networks made, trained and dropped", 60,
            partial(_models, make=_keras_model), traced=True, baseline=_KERAS_ALONE,
        ),
        Case("predicts", "calls of `predict`", 100_000, _predicts),
        Case("folds", "folds, `keras.backend.clear_session()` before each", 20, _folds, traced=True),
    )
}


# ---- measurement --------------------------------------------------------------------------------------------------
def _process_usage() -> dict[str, float]:
    """Return memory in MiB, threads and file descriptors of this process."""
    status = pathlib.Path("/proc/self/status").read_text()
    fields = dict(row.split(":", 1) for row in status.splitlines())
    return {
        "mib": int(fields["VmRSS"].split()[0]) / 1024,
        "threads": int(fields["Threads"]),
        "files": len(os.listdir("/proc/self/fd")),
    }


def _usage_after_gc() -> dict[str, float]:
    """Return the usage of this process after collecting garbage and returning free memory to the system."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    return _process_usage()


@contextlib.contextmanager
def _peak_usage() -> Iterator[dict[str, float]]:
    """Yield the peak usage of the process while the block runs, without the polling thread."""
    peak, ended = _process_usage(), threading.Event()

    def poll() -> None:
        while not ended.wait(_POLL_SECONDS):
            usage = _process_usage()
            usage["threads"] -= 1
            peak.update({name: max(value, peak[name]) for name, value in usage.items()})

    thread = threading.Thread(target=poll, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()


def measured(case: Case, count: int) -> dict[str, Any]:
    """Run a case in this process and return its row of the record."""
    mixtrain.set_seed(0)
    observed = Observed()
    run = case.run(observed, count)
    next(run)
    before, traces, started = _usage_after_gc(), observed.traces, time.perf_counter()
    with _peak_usage() as peak:
        for _ in run:
            raise AssertionError("a case yields once")
    seconds = time.perf_counter() - started
    scales = [min(observed.scales), max(observed.scales)] if observed.scales else None
    return {
        "name": case.name, "what": case.what, "count": count, "seconds": seconds, "traces": observed.traces - traces,
        "before": before, "after": _usage_after_gc(), "most": peak, "scales": scales,
    }


def flat(case: Case, row: Mapping[str, Any], baseline: Mapping[str, Any] | None = None) -> bool:
    """Whether a case did not grow beyond its start, or beyond Keras alone, and was not retraced needlessly."""
    before, after = row["before"], row["after"]
    allowed = float(MAX_GROWTH_MIB)
    if baseline is not None:
        allowed = max(allowed, baseline["after"]["mib"] - baseline["before"]["mib"])
    # Every repetition must trace its network equally often.
    traces_ok = row["traces"] % row["count"] == 0 if case.traced else row["traces"] == 0
    handles_ok = after["threads"] <= before["threads"] and after["files"] <= before["files"]
    scales_ok = row["scales"] is None or 1 <= row["scales"][0] <= row["scales"][1] < float("inf")
    return traces_ok and handles_ok and scales_ok and after["mib"] - before["mib"] <= allowed


def as_text(record: Mapping[str, Any]) -> str:
    """Format a record as Markdown."""
    head = ["", "MiB before, at most, after", "threads", "file descriptors", "traces", "loss scale", "seconds", ""]
    lines = [line(head), "|---" * len(head) + "|"]
    for row in record["rows"]:
        usages = [row[when] for when in ("before", "most", "after")]
        scales = row["scales"]
        lines.append(line([
            f"{row['count']:,} {row['what']}",
            ", ".join(f"{usage['mib']:,.0f}" for usage in usages),
            *(", ".join(f"{usage[name]:.0f}" for usage in usages) for name in ("threads", "files")),
            f"{row['traces']:,}",
            "" if scales is None else f"{scales[0]:,.0f} to {scales[1]:,.0f}",
            f"{row['seconds']:,.0f}",
            "for comparison" if row["name"] == _KERAS_ALONE else "flat" if row["flat"] else "not flat",
        ]))
    return "\n\n".join([surroundings_line(record), "\n".join(lines)])


def _baseline_row(row: Mapping[str, Any], named: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the row of the case in Keras alone that a case is compared with."""
    name = CASES[row["name"]].baseline
    return None if name is None else named.get(name)


def record_of(rows: Sequence[Mapping[str, Any]], start: RunStart) -> dict[str, Any]:
    """Return the record of some rows, at the end of the run."""
    named = {row["name"]: row for row in rows}
    return rounded({  # type: ignore[no-any-return]
        **start.metadata(f"soak_{keras.backend.backend()}", versions()),
        "rows": [{**row, "flat": flat(CASES[row["name"]], row, _baseline_row(row, named))} for row in rows],
    })


def _run_in_process(name: str, share: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.soak", "--in-this-process", name, "--share", str(share)]
    root = str(pathlib.Path(__file__).parent.parent)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": root}
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    return json.loads(output.splitlines()[-1])  # type: ignore[no-any-return]


def _recorded() -> dict[str, Any]:
    """Return the rows of the last record by name; cases that are not run again keep theirs."""
    path = RESULTS / f"soak_{keras.backend.backend()}.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {row["name"]: row for row in rows if row["name"] in CASES}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases and write the record and the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "--case", nargs="+", choices=list(CASES), default=list(CASES), help="these alone; the record keeps the others"
    )
    parser.add_argument("--share", type=float, default=1.0, help="how much of each count")
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    parser.add_argument("--in-this-process", choices=list(CASES), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.in_this_process:
        case = CASES[options.in_this_process]
        print(json.dumps(measured(case, max(1, round(case.count * options.share)))), flush=True)
        return
    start = RunStart()
    rows_by_name = {} if options.print_only else _recorded()
    for name in options.case:
        rows_by_name[name] = _run_in_process(name, options.share)
        print(json.dumps(rounded(rows_by_name[name])), flush=True)
    rows = [rows_by_name[name] for name in CASES if name in rows_by_name]
    record = record_of(rows, start)
    text = as_text(record)
    print(text)
    if not options.print_only:
        write_json(record, RESULTS)
        update_section(record["set"], text, PAGE)


if __name__ == "__main__":
    main()
