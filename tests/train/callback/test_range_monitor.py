"""RangeMonitor: which steps it samples, what it counts there, and that training goes on as without it."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, RangeMonitor, backend, nn
from mixtrain.train.stepper import Stepper
from tests.backends import on_jax_only_some

FEEDS = ("host", "sink")


def network(kind: str) -> Any:
    if kind == "cell":
        return nn.SequentialCell(nn.Dense(4, 8), nn.ReLU(), nn.Dropout(p=0.4), nn.BatchNorm1d(8), nn.Dense(8, 1))
    return keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dropout(0.4),
        keras.layers.BatchNormalization(), keras.layers.Dense(1),
    ])


def run(kind: str, feed: str, monitor: RangeMonitor | None, steps: int = 5) -> tuple[Any, ...]:
    mixtrain.set_seed(3)
    keras.utils.set_random_seed(3)
    made = network(kind)
    model = Model(
        made, "mse", keras.optimizers.SGD(0.1), amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2.0**4),
    )
    draw = np.random.default_rng(0)
    data = [tuple(draw.standard_normal((6, size)).astype(np.float32) for size in (4, 1)) for _ in range(steps)]
    history = model.train(
        1, data, callbacks=[] if monitor is None else [monitor], dataset_sink_mode=feed == "sink", verbose=0
    )
    variables = made.get_parameters() if kind == "cell" else made.variables
    return dict(history), [backend.to_numpy(item).tobytes() for item in variables]


@pytest.mark.slow
@pytest.mark.parametrize("feed", on_jax_only_some(FEEDS, (1,)))
@pytest.mark.parametrize("kind", ["cell", "keras"])
def test_a_run_that_is_sampled_equals_the_run_that_is_not(kind: str, feed: str) -> None:
    monitor = RangeMonitor(every=2)
    assert run(kind, feed, monitor) == run(kind, feed, None)
    assert (monitor.samples, monitor.loss_scale) == (3, 2.0**4)
    kinds = {row.kind for row in monitor.records}
    assert kinds == {"activation", "gradient", "parameter"}
    outputs = [row for row in monitor.records if row.kind == "activation"]
    assert {row.size for row in outputs} == {3 * 6 * 8, 3 * 6}


@pytest.mark.skipif(backend.GROUPS.reads, reason="there a compiled call reads the batch, and a sampled step runs alone")
def test_a_sampled_step_of_sink_feed_is_the_first_of_a_call_that_is_compiled_once(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    made, counts = network("keras"), []
    model = Model(made, "mse", keras.optimizers.SGD(0.1))
    loop = Stepper.loop

    def counted(self: Stepper, iterator: Any, count: int) -> Any:
        result = loop(self, iterator, count)
        counts.append((count, self.traces()))
        return result

    monkeypatch.setattr(Stepper, "loop", counted)
    monitor = RangeMonitor(every=4)
    data = [(np.ones((6, 4), np.float32), np.ones((6, 1), np.float32))] * 10
    model.train(2, data, callbacks=[monitor], dataset_sink_mode=True, verbose=0)
    assert [count for count, _ in counts] == [4, 4, 2, 2, 4, 4] and monitor.samples == 5
    assert len({traces for _, traces in counts}) == 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Model. in epoch 1, 1 of 1 steps were skipped")
def test_activations_and_gradients_are_counted_as_they_are_in_float32_at_the_loss_scale() -> None:
    net = nn.SequentialCell(
        nn.Dense(2, 2, weight_init="ones", has_bias=False), nn.Dense(2, 1, weight_init=2.0**-20, has_bias=False)
    )
    model = Model(
        net, nn.L1Loss(), nn.SGD(net.trainable_params(), 0.0), amp_level="O3",
        loss_scale_manager=DynamicLossScaleManager(2.0**8),
    )
    monitor = RangeMonitor()
    x = np.float32([[2.0**20, 0.0], [1.0, 2.0]])
    model.train(1, [(x, np.full((2, 1), -1.0, np.float32))], callbacks=[monitor], verbose=0)
    hidden = monitor.records.row("activation", "0")
    assert (hidden.largest, hidden.counts("float16").overflow, hidden.size) == (2.0**20, 2, 4)
    # The loss is the mean of two rows: 2**8 / 2 * 2**-20 comes to the first layer's output.
    assert monitor.records.row("gradient", "0").exponents() == {-13: 4}
    assert monitor.records.row("gradient", "0").exponents(unscaled=True) == {-21: 4}
    assert monitor.records.row("parameter", "0").size == 4


@pytest.mark.slow
def test_the_program_that_counts_is_compiled_once_for_all_runs() -> None:
    net = nn.Dense(1, 1, has_bias=False)
    model = Model(net, nn.L1Loss(), nn.SGD(net.trainable_params(), 0.0), amp_level="O2")
    data = [(np.ones((2, 1), np.float32), np.ones((2, 1), np.float32))] * 3
    programs = []
    for _ in range(3):
        model.train(1, data, callbacks=[RangeMonitor(every=1)], verbose=0)
        ((_, program, _),) = model._compiled.range_sampler._compiled.values()
        programs.append((program, backend.trace_count(program)))
    assert programs == [programs[0]] * 3 and programs[0][1] == 1


@pytest.mark.slow
def test_large_tensors_are_counted_in_part_and_their_largest_value_is_found() -> None:
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    model = Model(net, nn.L1Loss(), nn.SGD(net.trainable_params(), 0.0))
    x = np.ones((1000, 1), np.float32)
    x[1] = 9.0
    monitor = RangeMonitor(values=100)
    model.train(1, [(x, x)], callbacks=[monitor], verbose=0)
    result = monitor.records.row("activation", "")
    # Every 11th: every 10th would leave out all but one of ten columns.
    assert (result.size, result.largest) == (91, 9.0)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1.0, 2.0**12])
@pytest.mark.parametrize("kind", ["cell", "keras"])
def test_gradients_that_underflow_without_scaling_are_named(kind: str, scale: float) -> None:
    if kind == "cell":
        net: Any = nn.SequentialCell(nn.Dense(4, 4), nn.Dense(4, 1, weight_init=2.0**-26, has_bias=False))
    else:
        small = keras.initializers.Constant(2.0**-26)
        net = keras.Sequential([
            keras.Input((4,)), keras.layers.Dense(4, name="0"),
            keras.layers.Dense(1, kernel_initializer=small, use_bias=False, name="1"),
        ])
    manager = DynamicLossScaleManager(scale)
    model = Model(net, "mae", keras.optimizers.SGD(0.0), amp_level="O2", loss_scale_manager=manager)
    monitor = RangeMonitor()
    data = [(np.ones((4, 4), np.float32), np.full((4, 1), -1.0, np.float32))]
    model.train(1, data, callbacks=[monitor], verbose=0)
    named = [(row.kind, row.path) for row in monitor.records.underflowing()]
    assert named == ([("gradient", "0"), ("parameter", "0")] if scale == 1 else [])


@pytest.mark.slow
def test_histograms_are_written_for_tensorboard(tmp_path: pathlib.Path) -> None:
    run("cell", "host", RangeMonitor(every=5, summary_dir=tmp_path), steps=6)
    files = list(tmp_path.iterdir())
    assert len(files) == 2
    assert any(b"log2 gradient/0" in file.read_bytes() for file in files)


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="every"):
        RangeMonitor(0)
    with pytest.raises(TypeError, match="values"):
        RangeMonitor(values=1.5)  # type: ignore[arg-type]
