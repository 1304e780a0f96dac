"""Measure the cost of diagnostics: epochs of LeNet-5 with and without monitors, timed in turn.

    python -m benchmarks.diagnostics_cost
    KERAS_BACKEND=jax python -m benchmarks.diagnostics_cost --print-only
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import keras
import numpy as np

from benchmarks.call_pairs import BACKENDS
from benchmarks.goals import Goal, evaluate
from benchmarks.measure import Series, interleaved
from benchmarks.networks.in_cells import lenet
from benchmarks.surroundings import RunStart, versions
from benchmarks.table import line, publish, short, surroundings_line
from benchmarks.workloads import LENET
from benchmarks.written import rounded
from mixtrain import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    Model,
    OverflowMonitor,
    RangeMonitor,
    nn,
    set_seed,
)
from mixtrain.dataset import NumpySlicesDataset
from mixtrain.loss_scale.manager import LossScaleManager

NAMES: Final = tuple(f"diagnostics_{backend}" for backend in BACKENDS)
STEPS: Final = 200
_BATCH: Final = 32
# Steps between doublings of the scale where overflows are wanted: about one step per window overflows.
_WINDOW: Final = 50
# Description, limit on the ratio, and two epochs: with the feature and without.
Pair = tuple[str, float | None, Callable[[], Any], Callable[[], Any]]
# A loss scale at which no gradient of this network overflows.
_SAFE: Final = 64
# Rounds vary by more than limits up to this; such goals get more rounds.
_TIGHT_LIMIT: Final = 1.05
_ROUNDS_FACTOR: Final = 10


def _data(batches: int = STEPS) -> Any:
    """Return an epoch of `STEPS` batches, repeated from `batches` distinct ones."""
    random = np.random.default_rng(0)
    images = random.standard_normal((batches * _BATCH, 1, 32, 32)).astype(np.float32)
    labels = random.integers(0, 10, len(images)).astype(np.int32)
    columns = tuple(np.tile(array, (STEPS // batches,) + (1,) * (array.ndim - 1)) for array in (images, labels))
    return NumpySlicesDataset(columns, shuffle=False).batch(_BATCH)


def _model(manager: LossScaleManager) -> Model:
    set_seed(0)
    network = lenet(nn, LENET)
    return Model(
        network, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        nn.Momentum(network.trainable_params(), 0.01, 0.9), amp_level="O2", loss_scale_manager=manager,
        bad_step_max=2**30,
    )


def epoch(
    make: Callable[[], list[Any]], *, sink: bool, manager: LossScaleManager, batches: int = STEPS
) -> Callable[[], Any]:
    """Return a function that trains an epoch with some callbacks, on its own Model."""
    return _epochs([make], sink=sink, manager=manager, batches=batches)[0]


def _epochs(
    makes: Sequence[Callable[[], list[Any]]], *, sink: bool, manager: LossScaleManager, batches: int = STEPS
) -> list[Callable[[], Any]]:
    """Return functions that train an epoch with the callbacks of each of `makes`, all on one Model.

    The step times of two equal Models differ by a percent, depending on where their memory lies: as much as a callback
    costs.
    """
    model, data = _model(manager), _data(batches)

    def with_callbacks(make: Callable[[], list[Any]]) -> Callable[[], Any]:
        return lambda: model.train(1, data, callbacks=make(), dataset_sink_mode=sink, verbose=0)

    return [with_callbacks(make) for make in makes]


def _edge() -> float:
    """Return the smallest power of two at which the first batch overflows."""
    monitor = OverflowMonitor(verbose=False)
    model = _model(FixedLossScaleManager(2**30, drop_overflow_update=True))
    model.train(1, _data(1).take(1), callbacks=monitor, dataset_sink_mode=False, verbose=0)
    return 2 * monitor.records[0].finding.scale


def safe() -> LossScaleManager:
    return DynamicLossScaleManager(_SAFE, scale_window=2**30)


def _growing() -> LossScaleManager:
    return DynamicLossScaleManager(2**24, scale_window=_WINDOW)


def pairs() -> Iterator[Pair]:
    """Yield the pairs of epochs with and without monitors, and their limits."""
    edge = _edge()
    for feed in ("host", "sink"):
        sink = feed == "sink"
        monitored, ranged, plain = _epochs([_monitor, _ranges, nothing], sink=sink, manager=safe())
        yield f"OverflowMonitor, good steps, {feed}", 1.02, monitored, plain
        yield f"RangeMonitor, every 50 steps, {feed}", 1.03, ranged, plain
        yield (
            f"OverflowMonitor, about 1 of {_WINDOW} steps overflows, {feed}", None,
            epoch(_monitor, sink=sink, manager=_growing()), epoch(nothing, sink=sink, manager=_growing()),
        )
        # Skipped updates keep the weights, so the same batch overflows in every step, and would not at half the scale.
        fixed = FixedLossScaleManager(edge, drop_overflow_update=True)
        always = epoch(_monitor, sink=sink, manager=fixed, batches=1)
        yield f"OverflowMonitor, every step overflows, {feed}", 3.0, always, plain


def nothing() -> list[Any]:
    return []


def _monitor() -> list[Any]:
    return [OverflowMonitor(verbose=False)]


def _ranges() -> list[Any]:
    return [RangeMonitor(every=50)]


def measured(name_of_set: str, pairs: Iterable[Pair], rounds: int) -> dict[str, Any]:
    """Time both epochs of each pair in turn and return the record, with the median ratio over rounds.

    Args:
        name_of_set: Name of the record, without the backend.
        pairs: The pairs of epochs.
        rounds: Number of rounds; `_ROUNDS_FACTOR` times as many for tight limits.
    """
    start, rows = RunStart(), []
    for name, limit, watched, plain in pairs:
        runs: dict[str, Callable[[], float]] = {"watched": _timed(watched), "plain": _timed(plain)}
        for run in [*runs.values()] * 2:
            run()
        gc.collect()
        count = rounds * (_ROUNDS_FACTOR if limit is not None and limit <= _TIGHT_LIMIT else 1)
        values = interleaved(runs, rounds=count)
        series = {key: Series(key, "ms per step", tuple(value)) for key, value in values.items()}
        judgment = evaluate(Goal(name, "watched", "plain", limit), series)
        rows.append({**judgment, "plain": series["plain"].quartiles[1], "rounds": count})
        print(f"{name}: {rows[-1]['measured']:.3f}", flush=True)
    return rounded({  # type: ignore[no-any-return]
        **start.metadata(f"{name_of_set}_{keras.backend.backend()}", versions()),
        "steps": STEPS, "rows": rows,
    })


def as_text(record: Mapping[str, Any]) -> str:
    """Format a record as Markdown."""
    head = ["LeNet-5, O2 float16", "a step without, ms", "rounds", "ratio", "quartiles", "goal", ""]
    lines = [line(head), "|---" * len(head) + "|"]
    for row in record["rows"]:
        goal = ["", ""] if row["met"] is None else [f"<= {row['limit']:.2f}", "met" if row["met"] else "not met"]
        spread = f"{row['low']:.3f} to {row['high']:.3f}"
        values = [short(row["plain"]), str(row["rounds"]), f"{row['measured']:.3f}"]
        lines.append(line([row["what"], *values, spread, *goal]))
    steps = f"A round is an epoch of {record['steps']} steps with, and one without."
    return "\n\n".join([surroundings_line(record), steps, "\n".join(lines)])


def main(
    name: str = "diagnostics", make_pairs: Callable[[], Iterable[Pair]] = pairs, about: str | None = __doc__
) -> None:
    """Measure, and write the record and the page."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args()
    record = measured(name, make_pairs(), options.rounds)
    publish(record, as_text(record), print_only=options.print_only)


def _timed(call: Callable[[], Any]) -> Callable[[], float]:
    """Return a function that runs an epoch and returns the milliseconds per step."""

    def run() -> float:
        started = time.perf_counter()
        call()
        return 1e3 * (time.perf_counter() - started) / STEPS

    return run


if __name__ == "__main__":
    main()
