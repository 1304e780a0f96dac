"""What an epoch reports whose steps were all skipped: under `mixtrain.keras.prepare` what `Model` reports."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model
from mixtrain.keras import prepare
from tests.backends import quick_only_some

layers = keras.layers
_draw = np.random.default_rng(0)
X = _draw.standard_normal((64, 4)).astype(np.float32)
Y = X.sum(1, keepdims=True) * 3


def network() -> keras.Model:
    keras.utils.set_random_seed(0)
    return keras.Sequential([keras.Input((4,)), layers.Dense(8, "relu"), layers.Dense(1)])


def prepared(**options: Any) -> keras.Model:
    model = network()
    manager = DynamicLossScaleManager(2.0**24)  # Of the first epochs every step is skipped.
    optimizer = prepare(model, keras.optimizers.SGD(0.01), "O2", loss_scale_manager=manager)
    model.compile(optimizer, "mse", metrics=["mae"], **options)
    return model


@pytest.mark.parametrize("options", quick_only_some(
    [{"jit_compile": False}, {"jit_compile": True}, {"jit_compile": False, "steps_per_execution": 2},
     {"run_eagerly": True}]
), ids=str)
def test_it_reports_the_mean_of_the_finite_losses_and_no_metric(options: dict[str, Any]) -> None:
    model = prepared(**options)
    history = model.fit(X, Y, batch_size=32, epochs=8, shuffle=False, verbose=0, validation_data=(X, Y)).history
    manager = DynamicLossScaleManager(2.0**24)
    other = Model(network(), "mse", keras.optimizers.SGD(0.01), ["mae"], amp_level="O2", loss_scale_manager=manager)
    expected = other.train(8, [(X[:32], Y[:32]), (X[32:], Y[32:])], verbose=0)
    assert expected["skipped_steps"] == [2, 2, 2, 2, 2, 1, 0, 0]
    np.testing.assert_allclose(history["loss"], expected["loss"], rtol=1e-3)
    np.testing.assert_allclose(history["mae"], expected["mae"], rtol=1e-3)
    assert np.isnan(history["mae"]).tolist() == [True] * 5 + [False] * 3
    assert np.isfinite([*history["loss"], *history["val_loss"], *history["val_mae"]]).all()


@pytest.mark.slow
def test_early_stopping_does_not_keep_untrained_weights() -> None:
    model = prepared(jit_compile=False)
    first = model.evaluate(X, Y, verbose=0)[0]
    stopping = keras.callbacks.EarlyStopping("loss", patience=7, restore_best_weights=True)
    model.fit(X, Y, batch_size=32, epochs=10, shuffle=False, verbose=0, callbacks=[stopping])
    assert model.evaluate(X, Y, verbose=0)[0] < 0.95 * first


@pytest.mark.slow
def test_an_epoch_without_a_finite_loss_is_nan() -> None:
    model = prepared(jit_compile=False)
    history = model.fit(np.full_like(X, np.inf), Y, batch_size=32, epochs=1, verbose=0).history
    assert np.isnan([history["loss"], history["mae"]]).all()
