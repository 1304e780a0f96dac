"""OverflowMonitor: what overflowed, where, how far and what would help, in every feed, and nothing else changes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import (
    DynamicLossScaleManager,
    FixedLossScaleManager,
    LossScaleManager,
    Model,
    OverflowMonitor,
    backend,
    nn,
)
from mixtrain.train.stepper import Stepper
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import on_jax_only_some
from tests.train.planted import batches, chain_model

FEEDS = ("host", "groups", "sink")
ROWS, GOOD_BATCHES, BAD_STEP = 4, 5, 4


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a call of the group feed run three steps; a loss that is not finite is expected here."""
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
        yield


class Control(mixtrain.Callback):
    """Wants control in every step."""

    def on_train_step_end(self, run_context: Any) -> None:
        self.seen = run_context.original_args().cur_step_num


def feeding(feed: str) -> dict[str, Any]:
    return {"callbacks": [Control()] if feed == "host" else [], "dataset_sink_mode": feed == "sink", "verbose": 0}


# ---- networks with a place for a fault ------------------------------------------------------------------------------
class CellBlock(nn.Cell):
    """A residual block."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Dense(4, 4, weight_init="ones", has_bias=False)

    def construct(self, x: Any) -> Any:
        return x + self.inner(x)


class CellAttention(nn.Cell):
    """Scores of a row with itself, some of them masked."""

    def __init__(self, masked: float) -> None:
        super().__init__()
        self.project = nn.Dense(4, 4, weight_init="ones", has_bias=False)
        self.softmax = nn.Softmax()
        self.masked = masked

    def construct(self, x: Any) -> Any:
        hidden = (x[:, :1] > 50) * self.masked
        return x * self.softmax(self.project(x) - hidden.astype(x.dtype))


def cell_network(masked: float = 1e9) -> nn.Cell:
    return nn.SequentialCell(
        nn.Dense(4, 4, weight_init="ones", has_bias=False), CellBlock(), CellAttention(masked),
        nn.SequentialCell(nn.Dense(4, 4, weight_init="ones", has_bias=False), nn.ReLU()), nn.Dense(4, 1),
    )


class KerasBlock(keras.layers.Layer):
    """A residual block."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.inner = keras.layers.Dense(4, kernel_initializer="ones", use_bias=False, name="inner")

    def build(self, shape: Any) -> None:
        self.inner.build(shape)

    def call(self, x: Any) -> Any:
        return x + self.inner(x)


class KerasAttention(keras.layers.Layer):
    """Scores of a row with itself, some of them masked."""

    def __init__(self, masked: float, **options: Any) -> None:
        super().__init__(**options)
        self.project = keras.layers.Dense(4, kernel_initializer="ones", use_bias=False, name="project")
        self.softmax = keras.layers.Softmax(name="softmax")
        self.masked = masked

    def build(self, shape: Any) -> None:
        self.project.build(shape)

    def call(self, x: Any) -> Any:
        hidden = keras.ops.cast(keras.ops.cast(x[:, :1] > 50, "float32") * self.masked, x.dtype)
        return x * self.softmax(self.project(x) - hidden)


def keras_network(masked: float = 1e9) -> keras.Model:
    dense = keras.layers.Dense
    nested = keras.Sequential(
        [keras.Input((4,)), dense(4, kernel_initializer="ones", use_bias=False, name="deep"), keras.layers.ReLU()],
        name="nested",
    )
    return keras.Sequential([
        keras.Input((4,)), dense(4, kernel_initializer="ones", use_bias=False, name="stem"), KerasBlock(name="block"),
        KerasAttention(masked, name="attention"), nested, dense(1, name="head"),
    ])


NETWORKS = {"cell": cell_network, "keras": keras_network}
# By fault: the layer of a Cell and of a Keras network that must be named.
LAYERS = {
    "middle": ("0", "stem"),
    "residual": ("1", "block"),
    "nested": ("3.0", "nested/deep"),
    "mask": ("2", "attention"),
}


def weight_of(network: Any, path: str) -> Any:
    if isinstance(network, nn.Cell):
        return next(weight for weight in network.get_parameters() if weight.name == f"{path}.weight")
    layer: Any = network
    for name in path.split("/"):
        layer = layer.get_layer(name) if isinstance(layer, keras.Model) else getattr(layer, name)
    return layer.kernel


def set_weight(network: Any, path: str, value: float) -> None:
    weight = weight_of(network, path)
    weight.assign(np.full(tuple(weight.shape), value, np.float32))


def data(x: float = 1.0, y: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    return np.full((ROWS, 4), x, np.float32), np.full((ROWS, 1), y, np.float32)


def train(network: Any, bad: Any, feed: str, *, loss: Any = "mae", scale: float = 8.0, **options: Any) -> Any:
    """Train in float16 on batches of which one is faulty, and return the records of the monitor."""
    monitor = OverflowMonitor(verbose=False)
    model = Model(
        network, loss, keras.optimizers.SGD(0.0), amp_level="O3", loss_scale_manager=DynamicLossScaleManager(scale),
        **options,
    )
    settings = feeding(feed)
    settings["callbacks"] = [*settings["callbacks"], monitor]
    good = [data(1.0)] * GOOD_BATCHES
    history = model.train(1, [*good[: BAD_STEP - 1], bad, *good[BAD_STEP - 1 :]], **settings)
    assert history["skipped_steps"] == [len(monitor.records)]
    return monitor.records


def small(network: Any) -> Any:
    """Bring the numbers of a network down, so that an input of 1 is far from every limit."""
    paths = ("0", "1.inner", "3.0") if isinstance(network, nn.Cell) else ("stem", "block/inner", "nested/deep")
    for path in paths:
        set_weight(network, path, 2.0**-4)
    return network


KINDS = pytest.mark.parametrize("kind", ["cell", "keras"])
EVERY_FEED = pytest.mark.parametrize("feed", on_jax_only_some(FEEDS, (1, 2)))


# ---- planted faults -------------------------------------------------------------------------------------------------
@pytest.mark.slow
@EVERY_FEED
@KINDS
def test_a_nan_in_the_input_is_named_with_its_column(kind: str, feed: str) -> None:
    x, y = data()
    x[1, 2] = np.nan
    (record,) = train(small(NETWORKS[kind]()), (x, y), feed)
    assert (record.step, record.loss_scale, record.next_loss_scale) == (BAD_STEP, 8.0, 4.0)
    finding = record.finding
    assert (finding.kind, finding.column, finding.count, finding.size, finding.scale) == ("input", 0, 1, 16, None)
    assert str(record) == (
        "step 4: scale 8 -> 4: column 0 of the batch: 1 of 16 values not finite (1 NaN); a smaller loss scale cannot "
        "help: look at the data"
    )


@pytest.mark.slow
@EVERY_FEED
@KINDS
@pytest.mark.parametrize("fault", [*LAYERS])
def test_an_activation_above_65504_is_named_with_its_layer_and_its_size(fault: str, kind: str, feed: str) -> None:
    network = small(NETWORKS[kind]())
    named = LAYERS[fault][kind == "keras"]
    x = {"middle": 2.0**12, "residual": 2.0**14, "nested": 2.0**6, "mask": 2.0**9}[fault]
    if fault == "middle":
        set_weight(network, named, 8.0)
    elif fault == "residual":  # Each side fits: 2**15 and 2**15.
        set_weight(network, "0" if kind == "cell" else "stem", 0.5)
        set_weight(network, "1.inner" if kind == "cell" else "block/inner", 0.25)
    elif fault == "nested":
        set_weight(network, named, 2.0**13)
    (record,) = train(network, data(x), feed)
    finding = record.finding
    assert (finding.kind, finding.layer, finding.forward_finite, finding.scale) == ("forward", named, False, None)
    assert finding.count == finding.size == 16
    if fault != "mask":  # Of a mask the result is NaN, which has no size.
        assert finding.largest == {"middle": 2.0**17, "residual": 2.0**16, "nested": finding.largest}[fault]
        assert finding.largest > 65504
        assert finding.origin is not None
        assert f"values above 65504, the largest {finding.largest:.2g}, first in {finding.origin}; a smaller loss " \
            f"scale cannot help: keep layer {named} in float32" in str(record)


@pytest.mark.slow
@EVERY_FEED
@KINDS
def test_a_loss_that_overflows_is_told_from_the_network(kind: str, feed: str) -> None:
    (record,) = train(small(NETWORKS[kind]()), data(y=1e30), feed, loss="mse")
    assert (record.finding.kind, record.finding.layer) == ("loss", None)
    assert "look at the loss function and the labels" in str(record)


@pytest.mark.slow
@EVERY_FEED
@KINDS
def test_a_gradient_that_overflows_only_at_a_high_scale_names_the_scale_that_would_do(kind: str, feed: str) -> None:
    network = NETWORKS[kind]()
    monitor = OverflowMonitor(verbose=False)
    manager = DynamicLossScaleManager(2.0**24, 16)
    model = Model(network, "mse", keras.optimizers.SGD(0.0), amp_level="O2", loss_scale_manager=manager)
    settings = feeding(feed)
    settings["callbacks"] = [*settings["callbacks"], monitor]
    history = model.train(1, [data(1.0, 1.0)] * 12, **settings)
    assert 3 < history["skipped_steps"][0] == len(monitor.records) < 7
    assert {record.finding.kind for record in monitor.records} <= {"gradient", "parameter"}
    # What is predicted at the first step is the scale at which the rule settles.
    assert {record.finding.scale for record in monitor.records} == {manager.get_loss_scale()}
    assert all(record.finding.forward_finite and record.finding.largest > 65504 for record in monitor.records)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("feed", FEEDS)
def test_steps_that_xla_compiles_are_explained_too(feed: str) -> None:
    mixtrain.set_context(jit_level="O1")
    network = small(cell_network())
    set_weight(network, "0", 8.0)
    (record,) = train(network, data(2.0**12), feed)
    assert (record.finding.kind, record.finding.layer) == ("forward", "0")


# ---- nothing else changes -------------------------------------------------------------------------------------------
def noisy(monitor: bool, feed: str) -> tuple[Any, ...]:
    """Train a network with dropout and batch norm in which steps overflow; return all that it came to."""
    mixtrain.set_seed(1)
    network = nn.SequentialCell(
        nn.Dense(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(p=0.4), nn.Dense(8, 1)
    )
    draw = np.random.default_rng(0)
    rows = [draw.standard_normal((8, 4)).astype(np.float32) for _ in range(13)]
    rows[5] *= np.float32(1e5)
    rows[9] *= np.float32(np.nan)
    labels = [draw.standard_normal((8, 1)).astype(np.float32) for _ in rows]
    optimizer = nn.Momentum(network.trainable_params(), [0.01 / number for number in range(1, 60)], 0.9)
    model = Model(
        network, nn.MSELoss(), optimizer, amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2.0**20, 2, 3),
        explain_overflow=monitor,
    )
    history = model.train(2, list(zip(rows, labels, strict=True)), **feeding(feed))
    state = [*network.get_parameters(), *optimizer.get_parameters()]
    assert len(model.overflows) == (sum(history["skipped_steps"]) if monitor else 0)
    steps = [record.step for record in model.overflows]
    traces = sum(stepper.traces() for stepper in model._compiled._steppers.values())
    return dict(history), [backend.to_numpy(value).tobytes() for value in state], traces, steps


@pytest.mark.slow
@pytest.mark.parametrize("feed", on_jax_only_some(FEEDS, (1,)))
def test_a_run_with_the_monitor_equals_the_run_without_it(feed: str) -> None:
    plain, watched = noisy(False, feed), noisy(True, feed)
    assert watched[:3] == plain[:3]
    assert len(watched[3]) > 4 and {6, 10, 19, 23} <= set(watched[3])


@pytest.mark.slow
def test_every_feed_records_the_same_steps() -> None:
    flags = "0010110000100"
    records = []
    for feed in FEEDS:
        model = chain_model(DynamicLossScaleManager(16, 2, 3), explain_overflow=True)
        model.train(1, batches(flags), **feeding(feed))
        records.append([(row.step, row.loss_scale, row.next_loss_scale, row.finding) for row in model.overflows])
    assert [step for step, *_ in records[0]] == [index + 1 for index, flag in enumerate(flags) if flag == "1"]
    assert records[1:] == records[:1] * 2


@pytest.mark.slow
def test_a_call_of_sink_feed_ends_at_an_overflow_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    original = Stepper.loop_until_overflow

    def counting(self: Any, iterator: Any, count: int) -> Any:
        result = original(self, iterator, count)
        calls.append(len(result[1].records))
        return result

    monkeypatch.setattr(Stepper, "loop_until_overflow", counting)
    model = chain_model(DynamicLossScaleManager(16, 2, 100), explain_overflow=True)
    model.train(1, batches("0"), dataset_sink_mode=True, verbose=0)
    calls.clear()
    history = model.train(2, batches("000100010"), dataset_sink_mode=True, verbose=0)
    assert (calls, history["skipped_steps"]) == ([4, 4, 1] * 2, [2, 2])


def test_a_manager_that_is_moved_from_python_has_moved_before_the_line_is_written() -> None:
    class Careful(LossScaleManager):
        scale = 64.0

        def get_loss_scale(self) -> float:
            return self.scale

        def update_loss_scale(self, overflow: bool) -> None:
            self.scale = self.scale / 4 if overflow else self.scale

    model = chain_model(Careful(), explain_overflow=True)
    model.train(1, batches("0100"), verbose=0)
    assert [(record.loss_scale, record.next_loss_scale) for record in model.overflows] == [(64.0, 16.0)]


def test_a_fixed_scale_is_told_which_one_would_do() -> None:
    network = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    optimizer = nn.SGD(network.trainable_params(), 0.01)
    manager = FixedLossScaleManager(2.0**18)
    model = Model(network, nn.MSELoss(), optimizer, amp_level="O2", loss_scale_manager=manager, explain_overflow=True)
    model.train(1, [(np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32))], verbose=0)
    (record,) = model.overflows
    # The gradient at the output is 2.
    assert str(record) == (
        "step 1: scale 262144: gradient of the network itself's output: 1 of 1 values above 65504, the largest "
        "5.2e+05; forward finite; scale 16384 would do"
    )


# ---- lines ----------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_same_verdict_in_steps_in_a_row_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    model = chain_model(DynamicLossScaleManager(16, 2, 100), explain_overflow=True)
    model.train(1, batches("0111010"), verbose=0)
    lines = capsys.readouterr().out.splitlines()
    starts = ["step 2: scale 16 -> 8: gradient of a parameter", "  the same in 2 more steps, to step 4: scale 4 -> 2",
              "step 6: scale 2 -> 1: gradient of a parameter"]
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True)), lines


@pytest.mark.slow
@pytest.mark.parametrize("kind", [keras.layers.LayerNormalization, keras.layers.BatchNormalization])
def test_a_normalization_whose_output_overflows_is_cured_by_the_layers_that_are_named(kind: Any) -> None:
    large, small = keras.initializers.Constant(1e5), keras.initializers.Constant(1e-6)
    rows = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    cure: tuple[str, ...] = ()
    for expected in (1, 0):
        dense = keras.layers.Dense
        parts = [dense(3), kind(gamma_initializer=large, name="norm"), dense(1, kernel_initializer=small, name="head")]
        network = keras.Sequential([keras.Input((3,)), *parts])
        for path in cure:
            mixtrain.to_float(network.get_layer(path), mixtrain.float32)
        model = Model(network, "mse", keras.optimizers.SGD(1e-9), amp_level="O2", explain_overflow=True)
        assert model.train(1, [(rows, rows[:, :1])], verbose=0)["skipped_steps"] == [expected]
        cure = cure or model.overflows[0].finding.cure
        assert cure == ("norm", "head")


class Exponential(keras.layers.Layer):
    """The exponential of its input."""

    def call(self, x: Any) -> Any:
        return keras.ops.exp(x)


@pytest.mark.slow
def test_weights_that_grew_in_good_training_are_not_blamed_for_a_bad_batch() -> None:
    one = keras.initializers.Constant(1.0)
    parts = [Exponential(name="exp"), keras.layers.Dense(1, kernel_initializer=one, name="head")]
    network = keras.Sequential([keras.Input((3,)), *parts])
    good, bad, labels = np.zeros((4, 3), np.float32), np.zeros((4, 3), np.float32), np.full((4, 1), 300, np.float32)
    bad[1] = 12
    model = Model(
        network, "mse", keras.optimizers.Adam(1.0), amp_level="O2", explain_overflow=True,
        loss_scale_manager=DynamicLossScaleManager(1.0),
    )
    model.train(1, [(good, labels)] * 60 + [(bad, labels)], verbose=0)
    (record,) = model.overflows
    assert np.abs(backend.to_numpy(network.weights[0])).max() > 16  # Which a learning rate is blamed for elsewhere.
    assert record.finding.growth is None and "in float32, to_float" in str(record.finding)


def test_another_column_is_another_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    rows, labels = np.ones((4, 3), np.float32), np.ones((4, 1), np.float32)
    bad_rows, bad_labels = rows.copy(), labels.copy()
    bad_rows[1, 1], bad_labels[2] = np.nan, np.nan
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model = Model(network, "mse", keras.optimizers.SGD(1e-3), amp_level="O2", explain_overflow=True)
    model.train(1, [(bad_rows, labels), (bad_rows, labels), (rows, bad_labels)], verbose=0)
    assert [record.finding.column for record in model.overflows] == [0, 0, 1]
    printed = capsys.readouterr().out
    assert "the same in 1 more step" in printed and printed.count("column") == 2


def test_a_run_that_ends_by_the_guard_has_its_last_step_in_the_records() -> None:
    model = chain_model(DynamicLossScaleManager(16, 2, 100), explain_overflow=True, bad_step_max=2)
    with pytest.raises(mixtrain.LossScaleExhausted) as caught:
        model.train(1, batches("01110"), verbose=0)
    assert model.overflows[-1].step == caught.value.step == 4
    assert str(model.overflows[-1].finding) in str(caught.value)


@pytest.mark.slow
def test_a_second_run_starts_with_no_records() -> None:
    model = chain_model(DynamicLossScaleManager(16), explain_overflow=True)
    for _ in range(2):
        model.train(1, batches("010"), verbose=0)
        assert [record.step for record in model.overflows] == [2]


def test_without_the_option_nothing_is_recorded() -> None:
    model = chain_model(DynamicLossScaleManager(16))
    model.train(1, batches("010"), verbose=0)
    assert model.overflows == []


@pytest.mark.slow
def test_an_eager_run_is_explained() -> None:
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    for sink in (False, True):
        model = chain_model(DynamicLossScaleManager(16), explain_overflow=True)
        model.train(1, batches("0110"), dataset_sink_mode=sink, verbose=0)
        assert [record.step for record in model.overflows] == [2, 3]


def test_explain_overflow_must_be_true_or_false() -> None:
    with pytest.raises(TypeError, match="explain_overflow"):
        Model(nn.Dense(1, 1), explain_overflow=3)  # type: ignore[arg-type]


# ---- the steps before ------------------------------------------------------------------------------------------------
def exploding(feed: str, *callbacks: Any) -> mixtrain.OverflowMonitor:
    """Train at a learning rate that is too high until an output overflows; return the monitor."""
    keras.utils.set_random_seed(0)
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones", name="head")])
    manager = DynamicLossScaleManager(1.0)
    monitor = OverflowMonitor(verbose=False)
    model = Model(network, "mse", keras.optimizers.SGD(0.5), amp_level="O2", loss_scale_manager=manager)
    options = feeding(feed)
    options["callbacks"] += [monitor, *callbacks]
    model.train(1, [(np.ones((2, 4), np.float32), np.zeros((2, 1), np.float32))] * 16, **options)
    return monitor


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
def test_the_healthy_steps_before_are_those_of_the_run(feed: str) -> None:
    record = exploding(feed, mixtrain.RangeMonitor(every=2)).records[0]
    before = record.finding.before
    steps = range(max(record.step - 8, 1), record.step)
    assert [row.step for row in before if row.loss is not None] == [*steps]
    losses = [row.loss for row in before if row.loss is not None]
    assert all(later > 4 * earlier for earlier, later in zip(losses, losses[1:], strict=False))
    assert {row.loss_scale for row in before if row.loss is not None} == {1.0}
    sampled = {row.step: row.largest for row in before if row.largest is not None}
    assert set(sampled) == set(range(1, record.step, 2)) and sampled[1] == pytest.approx(4.0, rel=1e-3)
    assert "; before it grew: loss from " in str(record.finding)
    assert len(record.finding.table().splitlines()) == len(before) + 1


@pytest.mark.slow
def test_an_end_of_the_run_says_what_the_monitor_has_found() -> None:
    keras.utils.set_random_seed(0)
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, kernel_initializer="ones", name="head")])
    monitor = OverflowMonitor(verbose=False)
    model = Model(
        network, "mse", keras.optimizers.SGD(0.5), amp_level="O2", loss_scale_manager=DynamicLossScaleManager(1.0),
        bad_step_max=2,
    )
    with pytest.raises(mixtrain.LossScaleExhausted, match="lower the learning rate") as caught:
        model.train(1, [(np.ones((2, 4), np.float32), np.zeros((2, 1), np.float32))] * 20, monitor, verbose=0)
    assert caught.value.step == monitor.records[-1].step and str(monitor.records[-1].finding) in str(caught.value)
