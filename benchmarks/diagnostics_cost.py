"""What diagnostics cost: epochs of LeNet-5 that are watched and that are not, timed in turn.

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
from benchmarks.table import PAGE, line, short, surroundings_line, update_section
from benchmarks.workloads import LENET
from benchmarks.written import rounded, write_json
from mixtrain import (
    DynamicLossScaleManager, FixedLossScaleManager, Model, OverflowMonitor, RangeMonitor, nn, set_seed,
)
from mixtrain.dataset import NumpySlicesDataset
from mixtrain.loss_scale.manager import LossScaleManager

NAMES: Final = tuple(f"diagnostics_{backend}" for backend in BACKENDS)
STEPS: Final = 200
_BATCH: Final = 32
# Where some steps are to overflow, the scale doubles after so many: at its edge, one step in so many overflows.
_WINDOW: Final = 50
# What is measured, what its ratio may not pass, and two epochs: with what it is about, and without.
Pair = tuple[str, float | None, Callable[[], Any], Callable[[], Any]]
# No gradient of this network overflows at it.
_SAFE: Final = 64
# Rounds differ by more than a goal of so much allows: their median is told from it by so many times as many.
_CLOSE: Final = 1.05
_MORE: Final = 10


def _data(batches: int = STEPS) -> Any:
    """Return an epoch of batches; fewer than its steps are repeated."""
    draw = np.random.default_rng(0)
    images = draw.standard_normal((batches * _BATCH, 1, 32, 32)).astype(np.float32)
    labels = draw.integers(0, 10, len(images)).astype(np.int32)
    columns = tuple(np.tile(one, (STEPS // batches,) + (1,) * (one.ndim - 1)) for one in (images, labels))
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
    """Return what trains an epoch with some callbacks, by a Model of its own."""
    return _epochs([make], sink=sink, manager=manager, batches=batches)[0]


def _epochs(
    makes: Sequence[Callable[[], list[Any]]], *, sink: bool, manager: LossScaleManager, batches: int = STEPS
) -> list[Callable[[], Any]]:
    """Return what trains an epoch with the callbacks of each of `makes`, all by one Model.

    Two Models of one kind differ by a percent: memory is theirs by chance. It would pass for what a callback costs.
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
    """Yield what is measured, what its ratio may not pass, and two epochs: watched, and not."""
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
        # Its weights stand still, so that the same batch overflows in each step, and would not at half the scale.
        fixed = FixedLossScaleManager(edge, drop_overflow_update=True)
        always = epoch(_monitor, sink=sink, manager=fixed, batches=1)
        yield f"OverflowMonitor, every step overflows, {feed}", 3.0, always, plain


def nothing() -> list[Any]:
    return []


def _monitor() -> list[Any]:
    return [OverflowMonitor(verbose=False)]


def _ranges() -> list[Any]:
    return [RangeMonitor(every=50)]


def measured(name_of_set: str, found_pairs: Iterable[Pair], rounds: int) -> dict[str, Any]:
    """Return the record: rounds of both epochs in turn, and the median of the rounds' ratios.

    Args:
        name_of_set: Its name, without the backend.
        found_pairs: What is measured.
        rounds: How many there are; `_MORE` times as many where the goal is close to 1.
    """
    start, rows = RunStart(), []
    for name, limit, watched, plain in found_pairs:
        runs: dict[str, Callable[[], float]] = {"watched": _timed(watched), "plain": _timed(plain)}
        for run in [*runs.values()] * 2:
            run()
        gc.collect()
        more = _MORE if limit is not None and limit <= _CLOSE else 1
        found = interleaved(runs, rounds=more * rounds)
        series = {key: Series(key, "ms a step", tuple(values)) for key, values in found.items()}
        judgment = evaluate(Goal(name, "watched", "plain", limit), series)
        rows.append({**judgment, "plain": series["plain"].quartiles[1], "rounds": more * rounds})
        print(f"{name}: {rows[-1]['seen']:.3f}", flush=True)
    return rounded({  # type: ignore[no-any-return]
        **start.metadata(f"{name_of_set}_{keras.backend.backend()}", versions()),
        "steps": STEPS, "rows": rows,
    })


def as_text(record: Mapping[str, Any]) -> str:
    """Return a record as text with its table."""
    head = ["LeNet-5, O2 float16", "a step without, ms", "rounds", "ratio", "quartiles", "goal", ""]
    lines = [line(head), "|---" * len(head) + "|"]
    for row in record["rows"]:
        goal = ["", ""] if row["met"] is None else [f"<= {row['limit']:.2f}", "met" if row["met"] else "not met"]
        spread = f"{row['low']:.3f} to {row['high']:.3f}"
        seen = [short(row["plain"]), str(row["rounds"]), f"{row['seen']:.3f}"]
        lines.append(line([row["what"], *seen, spread, *goal]))
    steps = f"A round is an epoch of {record['steps']} steps with, and one without."
    return "\n\n".join([surroundings_line(record), steps, "\n".join(lines)])


def main(
    name: str = "diagnostics", found_pairs: Callable[[], Iterable[Pair]] = pairs, about: str | None = __doc__
) -> None:
    """Measure, and write what was seen."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--print-only", action="store_true", help="leave the record and the page as they are")
    options = parser.parse_args()
    record = measured(name, found_pairs(), options.rounds)
    text = as_text(record)
    print(text)
    if not options.print_only:
        write_json(record)
        update_section(record["set"], text, PAGE)


def _timed(call: Callable[[], Any]) -> Callable[[], float]:
    """Return what runs an epoch and returns the milliseconds of a step."""

    def run() -> float:
        started = time.perf_counter()
        call()
        return 1e3 * (time.perf_counter() - started) / STEPS

    return run


if __name__ == "__main__":
    main()
