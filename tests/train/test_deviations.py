"""With explain_overflow, layers whose outputs are far from float32's are told of, though nothing overflows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, nn
from tests.backends import quick_only_some
from tests.train.test_lost_updates import FEEDS, values_of

ops, layers = keras.ops, keras.layers


class Inside(layers.Layer):
    def __init__(self, function: Callable[[Any], Any], **options: Any) -> None:
        super().__init__(name="inside", **options)
        self.function = function

    def call(self, x: Any) -> Any:
        return self.function(x)


class InsideCell(nn.Cell):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def construct(self, x: Any) -> Any:
        return self.function(x)


def variance(x: Any) -> Any:
    mean = ops.mean(x, axis=-1, keepdims=True)
    return ops.mean(x * x, axis=-1, keepdims=True) - mean * mean


def added_one_by_one(x: Any) -> Any:
    total = x[:, :1]
    for index in range(1, x.shape[1]):
        total = total + x[:, index : index + 1]
    return total


def shifted(x: Any) -> Any:
    return (x + 100.0) - 100.0


# Name: the function, the width of the input, its mean, and the half dtypes in which it is far off.
FAULTS: dict[str, tuple[Callable[[Any], Any], int, float, tuple[str, ...]]] = {
    "a variance": (variance, 64, 30.0, ("float16", "bfloat16")),
    "a long sum": (added_one_by_one, 512, 3.0, ("bfloat16",)),
    "a shift": (shifted, 8, 0.0, ("bfloat16",)),
}
ROWS = [(name, half) for name, (*_, halves) in FAULTS.items() for half in halves]


def batches(width: int, mean: float) -> list[tuple[np.ndarray, np.ndarray]]:
    draw = np.random.default_rng(0)
    x = (draw.standard_normal((3, 16, width)) + mean).astype(np.float32)
    return [(rows, rows[:, :1]) for rows in x]


def model(function: Any, width: int, half: str, *, explain: bool = True, kept: bool = False) -> Model:
    keras.utils.set_random_seed(0)
    inside = Inside(function) if function else layers.Dense(width, name="inside")
    if kept:
        mixtrain.to_float(inside, mixtrain.float32)
    network = keras.Sequential([keras.Input((width,)), inside, layers.Dense(1, name="head")])
    options: dict[str, Any] = {"amp_level": "O2", "cast_model_type": half, "explain_overflow": explain}
    return Model(network, "mse", keras.optimizers.SGD(1e-6), **options)


def told(one: Model, data: Any, epochs: int = 1, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        one.train(epochs, data, verbose=0, **options)
    return [str(item.message) for item in caught]


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize(("name", "half"), ROWS)
def test_a_layer_that_is_far_off_is_named_once_with_the_line_that_cures_it(name: str, half: str, feed: str) -> None:
    function, width, mean, _ = FAULTS[name]
    data = batches(width, mean)
    one = model(function, width, half)
    (line,) = told(one, data, 12, **FEEDS[feed])
    assert "outputs of inside are" in line and "off in half precision at step 1" in line and "to_float" in line
    assert told(model(function, width, half, kept=True), data, **FEEDS[feed]) == []
    assert told(model(function, width, half, explain=False), data, **FEEDS[feed]) == []


@pytest.mark.parametrize("half", quick_only_some(["float16", "bfloat16"], (1,)))
def test_a_layer_that_is_near_is_not_named(half: str) -> None:
    assert told(model(None, 8, half), batches(8, 0.0)) == []


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
def test_a_layer_that_comes_to_be_far_off_is_named_ten_epochs_later(feed: str) -> None:
    class Growing(layers.Layer):
        """Adds a number that grows with each step, and takes it away."""

        def build(self, shape: Any) -> None:
            self.number = self.add_weight(shape=(), initializer="zeros", trainable=False, name="number")

        def call(self, x: Any) -> Any:
            number = ops.cast(self.number, x.dtype)
            self.number.assign(self.number + 4.0)
            return (x + number) - number

    keras.utils.set_random_seed(0)
    network = keras.Sequential([keras.Input((8,)), Growing(name="growing"), layers.Dense(1)])
    one = Model(
        network, "mse", keras.optimizers.SGD(1e-6), amp_level="O2", cast_model_type="bfloat16", explain_overflow=True
    )
    (line,) = told(one, batches(8, 0.0), 11, **FEEDS[feed])
    assert "growing" in line and "at step 31" in line


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
def test_not_a_number_of_the_run_changes(feed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for watched in (True, False):
        if not watched:
            monkeypatch.setattr("mixtrain.train.deviations.Deviations.on_train_sample", lambda *args: None)
        keras.utils.set_random_seed(0)
        network = keras.Sequential([
            keras.Input((8,)), layers.Dense(8), layers.BatchNormalization(), layers.Dropout(0.5),
            Inside(lambda x: shifted(x * 0.1)),
            layers.Dense(1),
        ])
        one = Model(
            network, "mse", keras.optimizers.Adam(1e-3), amp_level="O2", cast_model_type="bfloat16",
            explain_overflow=True,
        )
        assert len(told(one, batches(8, 0.0), 2, **FEEDS[feed])) == watched
        results.append((values_of(one), [stepper.traces() for stepper in one._compiled._steppers.values()]))
    (values, traces), (plain_values, plain_traces) = results
    assert traces == plain_traces
    for left, right in zip(values, plain_values, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.slow
def test_a_cell_is_named_and_the_report_says_it(tmp_path: Any) -> None:
    mixtrain.set_seed(0)
    network = nn.SequentialCell(nn.Dense(8, 8), nn.Dropout(p=0.2), InsideCell(shifted), nn.Dense(8, 1))
    optimizer = nn.SGD(network.trainable_params(), 1e-6)
    one = Model(
        network, nn.MSELoss(), optimizer, amp_level="O2", cast_model_type="bfloat16", explain_overflow=True
    )
    (line,) = told(one, batches(8, 0.0))
    assert "outputs of 2 are" in line
    one.report(tmp_path / "run.json")
    assert "outputs of 2 are" in (tmp_path / "run.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["suggest_rules", "check"])
def test_a_path_that_is_far_off_is_not_within_the_tolerance_though_gradients_are(kind: str) -> None:
    data = batches(8, 0.0)
    one = model(shifted, 8, "bfloat16")
    if kind == "check":
        assert "most of it from inside" in str(one.check(data))
        return
    found = mixtrain.suggest_rules(one, data, steps=0)
    assert found.lines == ('mixtrain.to_float(network.get_layer("inside"), mixtrain.float32)',)
    assert found.error > 0.1 > found.error_with
