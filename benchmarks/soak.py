"""Long runs: what memory, threads, file descriptors and traces come to over a million steps, and over many Models.

    python -m benchmarks.soak
    KERAS_BACKEND=jax python -m benchmarks.soak --print-only --share 0.01

Each case runs in a process of its own, after a warm-up. Memory is the resident set.
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
from typing import Any, Final

import keras
import numpy as np

import mixtrain
from benchmarks.call_pairs import BACKENDS
from benchmarks.surroundings import load_average, surroundings, versions
from benchmarks.table import PAGE, line, surroundings_line, update_section
from benchmarks.written import RESULTS, rounded, write_json
from mixtrain import DynamicLossScaleManager, Model, nn, ops
from mixtrain.dataset import NumpySlicesDataset

NAMES: Final = tuple(f"soak_{backend}" for backend in BACKENDS)
# Of memory in pieces not all can be given back; more than this would be a leak.
MIB_MORE: Final = 40
_SECONDS_BETWEEN_LOOKS: Final = 0.2
_ROWS, _BATCH = 64, 4
_ALONE: Final = "keras_alone"


class Seen:
    """What a case shows of itself.

    Attributes:
        traces: How often a network's Python code ran: it runs where something is traced.
        scales: The loss scales of all steps, smallest and largest.
    """

    def __init__(self) -> None:
        self.traces = 0
        self.scales: list[float] = []

    def activation(self, x: Any) -> Any:
        """Return ReLU of a tensor, and count."""
        self.traces += 1
        return keras.ops.relu(x)


class _Cells(nn.Cell):
    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self._seen = seen
        self.dense = nn.Dense(8, 1)

    def construct(self, x: Any) -> Any:
        self._seen.traces += 1
        return self.dense(ops.relu(x))


class _Scales(mixtrain.Callback):
    """Notes the loss scales of each epoch."""

    observes_only = True

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self._seen = seen

    def on_train_epoch_end(self, run_context: Any) -> None:
        scale = run_context.original_args().epoch_results.loss_scale
        self._seen.scales += [float(scale.min()), float(scale.max())]


def _arrays() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((_ROWS, 8)).astype(np.float32)
    return x, x.sum(1, keepdims=True)


def _data(steps: int) -> NumpySlicesDataset:
    data = NumpySlicesDataset(_arrays(), ["x", "y"], shuffle=False).batch(_BATCH).repeat(-(-steps * _BATCH // _ROWS))
    return data.take(steps)  # type: ignore[no-any-return]


def _of_cells(seen: Seen) -> Model:
    network = _Cells(seen)
    optimizer = nn.SGD(network.trainable_params(), 1e-4)
    return Model(
        network, nn.MSELoss(), optimizer, amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2**10, 2, 200)
    )


def _network(seen: Seen) -> keras.Sequential:
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((8,)), layers.Dense(16, seen.activation), layers.BatchNormalization(), layers.Dense(1)]
    )


def _of_keras(seen: Seen) -> Model:
    scale = DynamicLossScaleManager(2**10, 2, 200)
    return Model(_network(seen), "mse", keras.optimizers.Adam(1e-4), amp_level="O2", loss_scale_manager=scale)


# ---- cases: each stops once, where its warm-up has ended ------------------------------------------------------------
def _epoch(seen: Seen, count: int, sink: bool) -> Iterator[None]:
    model = _of_cells(seen)
    # Warmed up by more steps than are kept as they came.
    model.train(2, _data(3000), [_Scales(seen)], verbose=0, dataset_sink_mode=sink)
    yield
    model.train(1, _data(count), [_Scales(seen)], verbose=0, dataset_sink_mode=sink)


def _epoch_host(seen: Seen, count: int) -> Iterator[None]:
    return _epoch(seen, count, sink=False)


def _epoch_sink(seen: Seen, count: int) -> Iterator[None]:
    return _epoch(seen, count, sink=True)


def _train_calls(seen: Seen, count: int) -> Iterator[None]:
    model, data = _of_keras(seen), _data(16)

    def train(times: int) -> None:
        for number in range(times):
            model.train(1, data, [_Scales(seen)], verbose=0, dataset_sink_mode=bool(number % 2))

    # Until steps run in groups, which JAX does after a while.
    train(max(100, count // 3))
    yield
    train(count)


def _models(seen: Seen, count: int, make: Callable[[Seen], Model]) -> Iterator[None]:
    def repeat(times: int) -> None:
        for _ in range(times):
            model = make(seen)
            model.train(1, _data(16), [_Scales(seen)], verbose=0)
            model.predict(_arrays()[0])

    repeat(6)
    yield
    repeat(count)


def _models_of_cells(seen: Seen, count: int) -> Iterator[None]:
    return _models(seen, count, _of_cells)


def _models_of_keras(seen: Seen, count: int) -> Iterator[None]:
    return _models(seen, count, _of_keras)


def _keras_alone(seen: Seen, count: int) -> Iterator[None]:
    def fit(times: int) -> None:
        for _ in range(times):
            network = _network(seen)
            network.compile(keras.optimizers.Adam(1e-4), "mse")
            network.fit(*_arrays(), batch_size=_BATCH, verbose=0)
            network.predict(_arrays()[0], verbose=0)

    fit(6)
    yield
    fit(count)


def _predicts(seen: Seen, count: int) -> Iterator[None]:
    model, batch = _of_keras(seen), _arrays()[0][:_BATCH]

    def predict(times: int) -> None:
        for _ in range(times):
            model.predict(batch)

    predict(1000)
    yield
    predict(count)


def _folds(seen: Seen, count: int) -> Iterator[None]:
    def fold(times: int) -> None:
        x, y = _arrays()
        for number in range(times):
            keras.backend.clear_session()
            held_out = np.arange(_ROWS) % 4 == number % 4
            model = _of_keras(seen)
            model.fit(
                x[~held_out], y[~held_out], batch_size=_BATCH, epochs=2, callbacks=[_Scales(seen)], verbose=0,
                validation_data=(x[held_out], y[held_out]),
            )
            model.predict(x[held_out])

    fold(4)
    yield
    fold(count)


@dataclasses.dataclass(frozen=True)
class Case:
    """Something that is done very often.

    Attributes:
        name: Its name.
        what: What is counted, for the table.
        count: How often.
        run: Does it as often as it is told, and stops once before that, warmed up.
        traced: Whether each time is traced again, for it makes a network.
        beside: Name of the case in which Keras does the same by itself: what that holds is not mixtrain's.
    """

    name: str
    what: str
    count: int
    run: Callable[[Seen, int], Iterator[None]]
    traced: bool = False
    beside: str | None = None


CASES: Final = {
    case.name: case
    for case in (
        Case("epoch_host", "steps of one epoch, host feed", 1_000_000, _epoch_host),
        Case("epoch_sink", "steps of one epoch, sink feed", 1_000_000, _epoch_sink),
        Case("train_calls", "calls of `train`, host and sink feed in turn", 300, _train_calls),
        Case("models_of_cells", "Models of Cells made, trained and dropped", 60, _models_of_cells, traced=True),
        Case(_ALONE, "Keras networks compiled, fit and dropped, without mixtrain", 60, _keras_alone, traced=True),
        Case(
            "models_of_keras", "Models of Keras networks made, trained and dropped", 60, _models_of_keras, traced=True,
            beside=_ALONE,
        ),
        Case("predicts", "calls of `predict`", 100_000, _predicts),
        Case("folds", "folds, `keras.backend.clear_session()` before each", 20, _folds, traced=True),
    )
}


# ---- what is measured ---------------------------------------------------------------------------------------------
def _held() -> dict[str, float]:
    """Return what this process holds: memory in MiB, threads and file descriptors."""
    status = pathlib.Path("/proc/self/status").read_text()
    fields = dict(row.split(":", 1) for row in status.splitlines())
    return {
        "mib": int(fields["VmRSS"].split()[0]) / 1024,
        "threads": int(fields["Threads"]),
        "files": len(os.listdir("/proc/self/fd")),
    }


def _settled() -> dict[str, float]:
    """Return what this process holds once garbage, and what its allocator keeps of freed memory, is given back."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
    return _held()


@contextlib.contextmanager
def _most() -> Iterator[dict[str, float]]:
    """Yield the most that the process holds while what is inside runs; its own thread is not counted."""
    most, ended = _held(), threading.Event()

    def look() -> None:
        while not ended.wait(_SECONDS_BETWEEN_LOOKS):
            now = _held()
            now["threads"] -= 1
            most.update({name: max(value, most[name]) for name, value in now.items()})

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def measured(case: Case, count: int) -> dict[str, Any]:
    """Run a case in this process; return what was seen."""
    mixtrain.set_seed(0)
    seen = Seen()
    run = case.run(seen, count)
    next(run)
    before, traces, started = _settled(), seen.traces, time.perf_counter()
    with _most() as most:
        for _ in run:
            raise AssertionError("a case stops once")
    seconds = time.perf_counter() - started
    scales = [min(seen.scales), max(seen.scales)] if seen.scales else None
    return {
        "name": case.name, "what": case.what, "count": count, "seconds": seconds, "traces": seen.traces - traces,
        "before": before, "after": _settled(), "most": most, "scales": scales,
    }


def flat(case: Case, row: Mapping[str, Any], beside: Mapping[str, Any] | None = None) -> bool:
    """Whether a case held no more at its end than before, or than Keras alone; and traced no more than it must."""
    before, after = row["before"], row["after"]
    allowed = MIB_MORE if beside is None else max(MIB_MORE, beside["after"]["mib"] - beside["before"]["mib"])
    # A network is traced equally often each time.
    traced_well = row["traces"] % row["count"] == 0 if case.traced else row["traces"] == 0
    held = after["threads"] <= before["threads"] and after["files"] <= before["files"]
    bounded = row["scales"] is None or 1 <= row["scales"][0] <= row["scales"][1] < float("inf")
    return traced_well and held and bounded and after["mib"] - before["mib"] <= allowed


def as_text(record: Mapping[str, Any]) -> str:
    """Return a record as text with its table."""
    head = ["", "MiB before, at most, after", "threads", "file descriptors", "traces", "loss scale", "seconds", ""]
    lines = [line(head), "|---" * len(head) + "|"]
    for row in record["rows"]:
        held = [row[when] for when in ("before", "most", "after")]
        scales = row["scales"]
        lines.append(line([
            f"{row['count']:,} {row['what']}",
            ", ".join(f"{one['mib']:,.0f}" for one in held),
            *(", ".join(f"{one[name]:.0f}" for one in held) for name in ("threads", "files")),
            f"{row['traces']:,}",
            "" if scales is None else f"{scales[0]:,.0f} to {scales[1]:,.0f}",
            f"{row['seconds']:,.0f}",
            "for comparison" if row["name"] == _ALONE else "flat" if row["flat"] else "not flat",
        ]))
    return "\n\n".join([surroundings_line(record), "\n".join(lines)])


def _beside(row: Mapping[str, Any], named: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the row of what Keras does by itself, for a case that is beside it."""
    name = CASES[row["name"]].beside
    return None if name is None else named.get(name)


def record_of(rows: Sequence[Mapping[str, Any]], seconds: float, load: float) -> dict[str, Any]:
    """Return the record of some rows."""
    backend, named = keras.backend.backend(), {row["name"]: row for row in rows}
    return rounded({  # type: ignore[no-any-return]
        "set": f"soak_{backend}", "surroundings": surroundings(), "versions": versions(),
        "load_average": {"before": load, "after": load_average()}, "seconds": seconds,
        "rows": [{**row, "flat": flat(CASES[row["name"]], row, _beside(row, named))} for row in rows],
    })


def _in_a_process(name: str, share: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.soak", "--in-this-process", name, "--share", str(share)]
    root = str(pathlib.Path(__file__).parent.parent)
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": root}
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    return json.loads(said.splitlines()[-1])  # type: ignore[no-any-return]


def _recorded() -> dict[str, Any]:
    """Return the rows of the last record by name: those of the cases that are not run again stay."""
    path = RESULTS / f"soak_{keras.backend.backend()}.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else []
    return {row["name"]: row for row in rows if row["name"] in CASES}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the cases, and write what was seen."""
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
    started, load = time.perf_counter(), load_average()
    known = {} if options.print_only else _recorded()
    for name in options.case:
        known[name] = _in_a_process(name, options.share)
        print(json.dumps(rounded(known[name])), flush=True)
    rows = [known[name] for name in CASES if name in known]
    record = record_of(rows, time.perf_counter() - started, load)
    text = as_text(record)
    print(text)
    if not options.print_only:
        write_json(record, RESULTS)
        update_section(record["set"], text, PAGE)


if __name__ == "__main__":
    main()
