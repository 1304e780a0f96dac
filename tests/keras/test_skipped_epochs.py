"""What an epoch reports whose steps were all skipped: under `mixtrain.keras.prepare` what `Model` reports."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model
from mixtrain.keras import prepare
from tests.backends import quick_every

layers = keras.layers
_draw = np.random.default_rng(0)
X = _draw.standard_normal((64, 4)).astype(np.float32)
Y = X.sum(1, keepdims=True) * 3
SIGNS = (Y > 0).astype(np.float32)


def network() -> keras.Model:
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((4,)), layers.Dense(8, "relu"), layers.Dense(1)])


def two_outputs() -> keras.Model:
    keras.utils.set_random_seed(0)
    inputs = keras.Input((4,))
    hidden = layers.Dense(8, "relu")(inputs)
    return keras.Model(inputs, {name: layers.Dense(1, name=name)(hidden) for name in ("a", "b")})


def manager() -> DynamicLossScaleManager:
    return DynamicLossScaleManager(2.0**24)  # Of the first epochs every step is skipped.


def prepared(model: keras.Model, loss: Any = "mse", metrics: Any = ("mae",), **options: Any) -> keras.Model:
    optimizer = prepare(model, keras.optimizers.SGD(0.01), "O2", loss_scale_manager=manager())
    model.compile(optimizer, loss, metrics=metrics, **options)
    return model


def fit(door: str, labels: np.ndarray, metrics: Sequence[str], callbacks: Any) -> tuple[keras.Model, Any]:
    """Train with `prepare` or `Model`; return the network and its history."""
    model = network()
    if door == "prepare":
        prepared(model, metrics=metrics, jit_compile=False)
        return model, model.fit(
            X, labels, batch_size=32, epochs=9, shuffle=False, verbose=0, callbacks=callbacks
        ).history
    other = Model(model, "mse", keras.optimizers.SGD(0.01), metrics, amp_level="O2", loss_scale_manager=manager())
    return model, other.train(9, [(X[:32], labels[:32]), (X[32:], labels[32:])], callbacks, verbose=0)


def fourth_root(label: Any, output: Any) -> Any:
    """A metric of which Keras does not know whether higher is better."""
    return keras.ops.sqrt(keras.ops.sqrt(keras.ops.abs(label - output)))


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {"jit_compile": False}, {"jit_compile": True}, {"jit_compile": False, "steps_per_execution": 2},
    {"run_eagerly": True},
], ids=str)
def test_it_reports_the_mean_of_the_finite_losses_and_the_worst_of_each_metric(options: dict[str, Any]) -> None:
    metrics = ["mae", "accuracy", fourth_root]
    model = prepared(network(), metrics=metrics, **options)
    history = model.fit(X, Y, batch_size=32, epochs=8, shuffle=False, verbose=0, validation_data=(X, Y)).history
    other = Model(network(), "mse", keras.optimizers.SGD(0.01), metrics, amp_level="O2", loss_scale_manager=manager())
    expected = other.train(8, [(X[:32], Y[:32]), (X[32:], Y[32:])], verbose=0)
    assert expected["skipped_steps"] == [2, 2, 2, 2, 2, 1, 0, 0]
    for name in ("loss", "mae", "accuracy", "fourth_root"):
        np.testing.assert_allclose(history[name], expected[name], rtol=1e-3)
    assert history["mae"][:5] == [np.inf] * 5 and history["accuracy"][:5] == [-np.inf] * 5
    assert np.isnan(history["fourth_root"]).tolist() == [True] * 5 + [False] * 3
    assert np.isfinite([*history["mae"][5:], *history["accuracy"][5:]]).all()
    assert np.isfinite([*history["loss"], *history["val_loss"], *history["val_mae"]]).all()


@pytest.mark.slow
def test_it_reports_the_worst_of_each_output() -> None:
    losses, metrics = {"a": "mse", "b": "mae"}, {"a": ["mae", "accuracy"], "b": ["mae", fourth_root]}
    labels = {"a": Y, "b": -Y}
    model = prepared(two_outputs(), losses, metrics, weighted_metrics={"a": ["mae"]}, jit_compile=False)
    history = model.fit(X, labels, batch_size=64, epochs=14, shuffle=False, verbose=0).history
    other = Model(
        two_outputs(), losses, keras.optimizers.SGD(0.01), metrics, amp_level="O2", loss_scale_manager=manager(),
        weighted_metrics={"a": ["mae"]},
    )
    expected = dict(other.train(14, [(X, labels)], verbose=0))
    first = {name: expected[name][0] for name in history}
    lower = dict.fromkeys(("a_loss", "b_loss", "a_mae", "b_mae", "a_weighted_mae"), np.inf)
    np.testing.assert_equal(
        first, {"loss": expected["loss"][0], "a_accuracy": -np.inf, "b_fourth_root": np.nan} | lower
    )
    for name, values in history.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-3)
    assert np.isfinite([values[-1] for values in history.values()]).all()


@quick_every(4, 3)
@pytest.mark.parametrize("door", ["prepare", "Model"])
@pytest.mark.parametrize(("metric", "better"), [("mae", "min"), ("accuracy", "max")])
def test_no_callback_of_keras_takes_it_for_the_best(
    door: str, metric: str, better: str, tmp_path: pathlib.Path
) -> None:
    stopping = [
        keras.callbacks.EarlyStopping(metric, patience=9, mode=mode, restore_best_weights=True)
        for mode in ("auto", better)
    ]
    paths = [tmp_path / f"{mode}.weights.h5" for mode in ("auto", better)]
    checkpoints = [
        keras.callbacks.ModelCheckpoint(path, metric, mode=mode, save_best_only=True, save_weights_only=True)
        for path, mode in zip(paths, ("auto", better), strict=True)
    ]
    model, history = fit(door, SIGNS, [metric], [*stopping, *checkpoints])
    best = min if better == "min" else max
    epoch = history[metric].index(best(history[metric]))
    assert epoch > 3 and np.isfinite(history[metric]).tolist() == [False] * 4 + [True] * 5
    assert [callback.best_epoch for callback in stopping] == [epoch] * 2
    untrained, kept = network().get_weights()[0], model.get_weights()
    assert not np.array_equal(untrained, kept[0])
    for path in paths:
        model.load_weights(path)
        np.testing.assert_equal(model.get_weights(), kept)


@quick_every(4, 2)
@pytest.mark.parametrize("door", ["prepare", "Model"])
@pytest.mark.parametrize("mode", ["min", "max"])
def test_no_callback_takes_it_for_the_best_of_a_metric_of_unknown_direction(
    door: str, mode: str, tmp_path: pathlib.Path
) -> None:
    path, name = tmp_path / "best.weights.h5", "fourth_root"
    stopping = keras.callbacks.EarlyStopping(name, patience=9, mode=mode, restore_best_weights=True)
    plateau = keras.callbacks.ReduceLROnPlateau(name, patience=9, mode=mode)
    checkpoint = keras.callbacks.ModelCheckpoint(path, name, mode=mode, save_best_only=True, save_weights_only=True)
    metrics: Any = [fourth_root]
    model, history = fit(door, SIGNS, metrics, [stopping, plateau, checkpoint])
    values = history[name]
    assert np.isnan(values).tolist() == [True] * 4 + [False] * 5
    best = min(values[4:]) if mode == "min" else max(values[4:])
    assert stopping.best_epoch == values.index(best)
    assert [stopping.best, checkpoint.best, plateau.best] == [best] * 3
    kept = model.get_weights()
    assert not np.array_equal(network().get_weights()[0], kept[0])
    model.load_weights(path)
    np.testing.assert_equal(model.get_weights(), kept)


@pytest.mark.slow
def test_early_stopping_does_not_keep_untrained_weights() -> None:
    model = prepared(network(), jit_compile=False)
    first = model.evaluate(X, Y, verbose=0)[0]
    stopping = keras.callbacks.EarlyStopping("loss", patience=7, restore_best_weights=True)
    model.fit(X, Y, batch_size=32, epochs=10, shuffle=False, verbose=0, callbacks=[stopping])
    assert model.evaluate(X, Y, verbose=0)[0] < 0.95 * first


@pytest.mark.slow
def test_an_epoch_without_a_finite_loss_is_nan() -> None:
    model = prepared(network(), jit_compile=False)
    history = model.fit(np.full_like(X, np.inf), Y, batch_size=32, epochs=1, verbose=0).history
    assert np.isnan(history["loss"]).all() and history["mae"] == [np.inf]
