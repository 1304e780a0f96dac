"""Weights that half precision keeps from moving are told of once, in the first epoch, and nothing else is."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, backend, nn
from tests.backends import quick_only_some

layers = keras.layers
Batches = list[tuple[np.ndarray, np.ndarray]]
FEEDS: dict[str, dict[str, Any]] = {"host": {}, "sink": {"dataset_sink_mode": True}}
SAYS = "float32 would have moved"


def batches(count: int = 12, scale: float = 1.0, width: int = 8) -> Batches:
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((count, 16, width)).astype(np.float32) * np.float32(scale)
    return [(x, draw.standard_normal((16, 1)).astype(np.float32)) for x in rows]


def keras_network(dtype: str | None = None, **options: Any) -> Any:
    keras.utils.set_random_seed(0)
    hidden = layers.Dense(16, "relu", name="hidden", dtype=dtype, **options)
    return keras.Sequential([keras.Input((8,)), hidden, layers.Dense(1, name="head", dtype=dtype)])


def cells() -> Any:
    mixtrain.set_seed(0)
    head = nn.Dense(16, 1, bias_init="zeros")
    return nn.SequentialCell(nn.Dense(8, 16, bias_init="zeros"), nn.ReLU(), head)


def tiny_loss(y_true: Any, y_pred: Any) -> Any:
    return keras.ops.mean(keras.ops.square(y_true - y_pred)) * 1e-16


def model(network: Any, loss: Any = "mse", *, rate: Any = 0.01, adam: bool = False, **options: Any) -> Model:
    if isinstance(network, keras.Layer):
        optimizer: Any = (keras.optimizers.Adam if adam else keras.optimizers.SGD)(rate)
    else:
        kind = nn.Adam if adam else nn.SGD
        optimizer = kind(network.trainable_params(), rate)
    return Model(network, loss, optimizer, **{"amp_level": "O2", **options})


def told(one: Model, data: Sequence[Any], feed: str = "host", epochs: int = 2) -> list[str]:
    """Train, and return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one.train(epochs, data, verbose=0, **FEEDS[feed])
    return [str(item.message) for item in caught]


# ---- what is told ---------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("kind", [keras_network, cells])
def test_gradients_that_are_all_flushed_to_zero(kind: Callable[[], Any], feed: str) -> None:
    (line,) = told(model(kind(), tiny_loss), batches(), feed)
    assert SAYS in line and "100% of" in line and "head" in line or "2" in line
    assert "of the gradients" in line and "loss_scale_manager=mixtrain.DynamicLossScaleManager(" in line
    scale = float(line.split("DynamicLossScaleManager(")[1].split(")")[0])
    cured = model(kind(), tiny_loss, loss_scale_manager=FixedLossScaleManager(scale))
    before = values_of(cured)
    assert told(cured, batches(), feed) == []
    assert any((one != other).any() for one, other in zip(before, values_of(cured), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("level", ["O2", "O1", "O3"])
def test_inputs_that_are_flushed_to_zero(level: str, feed: str) -> None:
    def make() -> Model:
        network = keras_network()
        manager = DynamicLossScaleManager(1024.0)
        return model(network, adam=True, amp_level=level, loss_scale_manager=manager)

    data = batches(scale=1e-9)
    one = make()
    (line,) = told(one, data, feed)
    assert SAYS in line and "hidden" in line and "column 0 of the batch" in line and "scale the inputs" in line
    # What it advises is a cure, and so is the other line.
    scaled = [(x * np.float32(1e9), y) for x, y in data]
    assert told(make(), scaled, feed) == []
    cured = make()
    mixtrain.to_float(cured.predict_network, mixtrain.float32)
    assert told(cured, data, feed) == []


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("adam", [False, True])
def test_updates_that_weights_in_bfloat16_lose(adam: bool, feed: str) -> None:
    def make(dtype: str, rate: float = 1e-5) -> Model:
        network = keras_network(dtype, kernel_initializer=keras.initializers.RandomUniform(0.1, 0.9))
        return model(network, adam=adam, rate=rate, amp_level="O0")

    (line,) = told(make("bfloat16", 0.1 if adam else 1e-5), batches(), feed)
    assert SAYS in line and "hidden" in line and "of the updates" in line and "bfloat16" in line
    # Adam's second beta is 1 in bfloat16.
    assert ("the optimizer computes in it too" if adam else "smaller than half a unit in the last place") in line
    # Of so small updates, a step of stochastic rounding may move too few weights to show that it helps: as it draws.
    choices = ("stochastic",) if adam else ("stochastic", "compensated")
    assert line.endswith(tuple(f'Write low_precision_update="{update}" in Model.' for update in choices))
    for update in ("stochastic", "compensated"):
        network = keras_network("bfloat16", kernel_initializer=keras.initializers.RandomUniform(0.1, 0.9))
        cured = model(network, adam=adam, rate=1e-5, amp_level="O0", low_precision_update=update)
        assert told(cured, batches(), feed) == []
    assert told(make("mixed_bfloat16"), batches(), feed) == []
    assert adam or told(make("bfloat16", 1e-2), batches(), feed) == []


@pytest.mark.slow
def test_it_is_told_once_a_model_and_early() -> None:
    one = model(keras_network(), tiny_loss)
    steps: list[int] = []

    class Counts(mixtrain.Callback):
        observes_only = True

        def on_train_step_end(self, run_context: Any) -> None:
            steps.append(run_context.original_args().cur_step_num)

    def note(message: Any, *rest: Any, **more: Any) -> None:
        assert steps and steps[-1] < 20

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        one.train(1, batches(200), Counts(), verbose=0)
    assert told(one, batches()) == []


# ---- what is not ----------------------------------------------------------------------------------------------------
class ReluDead(layers.Layer):
    """A layer most of whose units are off for every row."""

    def __init__(self) -> None:
        super().__init__(name="dead")
        bias = keras.initializers.Constant(-100.0)
        self.inner = layers.Dense(16, "relu", bias_initializer=bias)

    def build(self, shape: Any) -> None:
        self.inner.build(shape)

    def call(self, x: Any) -> Any:
        return self.inner(x)


def dense(*middle: Any, head: Any = None) -> Any:
    return keras.Sequential([keras.Input((8,)), *middle, head or layers.Dense(1)])


def embedding() -> Any:
    return keras.Sequential([
        keras.Input((4,), dtype="int32"), layers.Embedding(500, 8), layers.Flatten(), layers.Dense(1),
    ])


def frozen() -> Any:
    network = keras_network()
    network.get_layer("hidden").trainable = False
    return network


def zeros() -> Any:
    return dense(layers.Dense(8, kernel_initializer="zeros"), layers.Dense(8, kernel_initializer="zeros"))


def zero_start() -> Any:
    return dense(layers.Dense(8), head=layers.Dense(1, kernel_initializer="zeros"))


def tokens() -> Batches:
    draw = np.random.default_rng(0)
    return [(draw.integers(0, 9, (16, 4)).astype(np.int32), y) for _, y in batches()]


def one_hot() -> Batches:
    draw = np.random.default_rng(0)
    return [(np.eye(8, dtype=np.float32)[draw.integers(0, 3, 16)], y) for _, y in batches()]


def solved() -> Batches:
    return [(x, np.zeros_like(y)) for x, y in batches()]


SCHEDULES: dict[str, Callable[[], Any]] = {
    "rate 0 at first": lambda: keras.optimizers.schedules.PolynomialDecay(0.0, 1000, 0.01),
    "rate 0": lambda: 0.0,
}
QUIET: dict[str, tuple[Callable[[], Any], Callable[[], Batches], dict[str, Any]]] = {
    "a plain network": (keras_network, batches, {}),
    "Adam": (keras_network, batches, {"adam": True}),
    "dead units": (lambda: dense(ReluDead()), batches, {}),
    "an embedding": (embedding, tokens, {"adam": True}),
    "a frozen layer": (frozen, batches, {}),
    "all zeros": (zeros, solved, {}),
    "a head of zeros": (zero_start, batches, {}),
    "one-hot inputs": (keras_network, one_hot, {}),
    "a loss of 0": (lambda: dense(head=layers.Dense(1, kernel_initializer="zeros")), solved, {}),
    "dropout": (lambda: dense(layers.Dense(16, "relu"), layers.Dropout(0.8)), lambda: [
        (x[:1], y[:1]) for x, y in batches()], {}),
    "a batch norm": (lambda: dense(layers.Dense(16), layers.BatchNormalization()), batches, {}),
    **{name: (keras_network, batches, {"rate": make}) for name, make in SCHEDULES.items()},
    "overflows at first": (keras_network, batches, {"loss_scale_manager": lambda: DynamicLossScaleManager(2.0**40)}),
    "accumulation": (keras_network, batches, {"accumulate_steps": 3}),
}


@pytest.mark.parametrize("half", quick_only_some(["float16", "bfloat16"]))
@pytest.mark.parametrize("feed", quick_only_some(FEEDS))
@pytest.mark.parametrize("name", quick_only_some(QUIET))
def test_what_float32_does_not_move_either_is_not_told(name: str, feed: str, half: str) -> None:
    make, data, options = QUIET[name]
    keras.utils.set_random_seed(1)
    settings = {name: value() if callable(value) else value for name, value in options.items()}
    assert told(model(make(), cast_model_type=half, **settings), data(), feed) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULES)
def test_weights_in_bfloat16_are_not_told_of_while_the_rate_rises(name: str) -> None:
    network = keras_network("bfloat16", kernel_initializer=keras.initializers.RandomUniform(0.1, 0.9))
    assert told(model(network, adam=True, rate=SCHEDULES[name](), amp_level="O0"), batches()) == []


# ---- what it changes ------------------------------------------------------------------------------------------------
def values_of(one: Model) -> list[np.ndarray]:
    one._networks.precision.apply()
    return [backend.to_numpy(variable).astype(np.float32) for variable in one._networks.step.variables()]


def stochastic() -> Any:
    return dense(layers.Dense(16, "relu"), layers.BatchNormalization(), layers.Dropout(0.5))


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("case", ["told", "quiet"])
def test_not_a_number_of_the_run_changes_and_nothing_is_retraced(
    case: str, feed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss = tiny_loss if case == "told" else "mse"
    results = []
    for watched in (True, False):
        keras.utils.set_random_seed(3)
        one = model(stochastic(), loss, metrics=["mae"])
        if not watched:
            monkeypatch.setattr("mixtrain.train.lost_updates.LostUpdates.on_train_sample", lambda *args: None)
            monkeypatch.setattr("mixtrain.train.lost_updates.LostUpdates.on_train_epoch_end", lambda *args: None)
        lines = told(one, batches(), feed)
        assert len(lines) == (watched and case == "told")
        results.append((one.train(1, batches(), verbose=0, **FEEDS[feed]).history, values_of(one), traces(one)))
    (history, values, traced), (plain_history, plain_values, plain_traced) = results
    assert history == plain_history and traced == plain_traced
    for left, right in zip(values, plain_values, strict=True):
        np.testing.assert_array_equal(left, right)


def traces(one: Model) -> list[int]:
    return [stepper.traces() for stepper in one._compiled._steppers.values()]


def test_a_network_in_float32_is_not_looked_at() -> None:
    one = model(keras_network(), amp_level="O0")
    assert told(one, batches()) == [] and not one._watches[0].active


def test_the_report_says_it_too(tmp_path: Any) -> None:
    one = model(keras_network(), tiny_loss)
    (line,) = told(one, batches())
    one.report(tmp_path / "run.json")
    assert line.removeprefix("Model: ")[:40] in (tmp_path / "run.json").read_text(encoding="utf-8")
