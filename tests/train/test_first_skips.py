"""A loss scale on its way down skips steps: callbacks that look for an improvement end as if those had not been."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model

FEEDS = pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])

_draw = np.random.default_rng(3)
X = np.concatenate([_draw.standard_normal((8, 3))] * 2).astype(np.float32)
Y = (X @ np.array([[1.0], [-2.0], [0.5]]) * 2).astype(np.float32)
DATA = [(X[:8], Y[:8]), (X[8:], Y[8:])]
WEIGHTS = [_draw.standard_normal(shape) for shape in ((3, 4), (4,), (4, 1), (1,))]
FIRST_SCALE, GOOD_SCALE = 2.0**24, 2.0**10


class Run:
    """One run in float16 with some callbacks, from the same weights each time.

    Attributes:
        history: What it returned.
        logs: The losses that Keras callbacks saw.
        before: Epochs before the first step was applied.
        weights: The network's weights at the end.
        rate: The learning rate at the end.
    """

    def __init__(self, callbacks: Any, first_scale: float, sink: bool, epochs: int = 20) -> None:
        self.network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(4), keras.layers.Dense(1)])
        self.network.set_weights(WEIGHTS)
        optimizer = keras.optimizers.SGD(2.0**-6)
        self.logs: list[float] = []
        keep = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda batch, logs: self.logs.append(logs["loss"]),
            on_epoch_end=lambda epoch, logs: self.logs.append(logs["loss"]),
        )
        manager = DynamicLossScaleManager(first_scale)
        model = Model(self.network, "mse", optimizer, amp_level="O2", loss_scale_manager=manager)
        self.history = model.train(
            epochs, DATA, [*callbacks, keep, keras.callbacks.TerminateOnNaN()], dataset_sink_mode=sink, verbose=0
        )
        self.before = self.history["skipped_steps"].count(2)
        self.weights, self.rate = self.network.get_weights(), float(optimizer.learning_rate)


def both(callbacks: Callable[[], Any], sink: bool) -> tuple[Run, Run]:
    """Return the run from the default scale, and the one from a scale at which nothing is skipped."""
    skipping, good = Run(callbacks(), FIRST_SCALE, sink), Run(callbacks(), GOOD_SCALE, sink)
    assert sum(good.history["skipped_steps"]) == 0
    # The same batch twice an epoch: so the runs are the same but for the epochs before.
    assert skipping.before >= 3 and sum(skipping.history["skipped_steps"]) == 2 * skipping.before
    assert np.isfinite(skipping.logs).all() and np.isfinite(skipping.history["loss"]).all()
    return skipping, good


def assert_same(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-2, atol=2e-2)


@pytest.mark.slow
@FEEDS
def test_the_best_checkpoint_is_of_a_trained_network(sink: bool, tmp_path: pathlib.Path) -> None:
    def files() -> list[Any]:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.weights.h5"
        return [keras.callbacks.ModelCheckpoint(path, "loss", save_best_only=True, save_weights_only=True)]

    skipping, good = both(files, sink)
    kept = []
    for path in sorted(tmp_path.iterdir()):
        good.network.load_weights(path)
        kept.append(good.network.get_weights())
    assert len(kept) == 2
    assert_same(kept[0], skipping.weights)  # This loss gets better in every epoch.
    assert_same(kept[1], good.weights)
    trained = skipping.history["loss"]
    assert min(trained) == trained[-1] < trained[skipping.before] / 10


def keras_stops() -> list[Any]:
    return [keras.callbacks.EarlyStopping("loss", min_delta=1e6, patience=3, restore_best_weights=True)]


def our_stops() -> list[Any]:
    return [mixtrain.EarlyStopping("loss", min_delta=1e6, patience=3, restore_best_weights=True)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("callbacks", "sink"),
    [(keras_stops, False), (our_stops, True), (keras_stops, True), (our_stops, False)],
)
def test_patience_begins_with_the_first_applied_step_and_the_best_weights_are_trained(
    callbacks: Any, sink: bool
) -> None:
    skipping, good = both(callbacks, sink)
    assert len(good.history["loss"]) == 4
    assert len(skipping.history["loss"]) == 4 + skipping.before
    assert_same(skipping.weights, good.weights)


def keras_lowers() -> list[Any]:
    return [keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, min_delta=1e6, patience=8)]


def our_lowers() -> list[Any]:
    return [mixtrain.ReduceLROnPlateau("loss", factor=0.5, min_delta=1e6, patience=8)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("callbacks", "sink"),
    [(keras_lowers, False), (our_lowers, True), (keras_lowers, True), (our_lowers, False)],
)
def test_skipped_epochs_are_no_plateau(callbacks: Any, sink: bool) -> None:
    skipping = Run(callbacks(), FIRST_SCALE, sink, epochs=12)
    good = Run(callbacks(), GOOD_SCALE, sink, epochs=12 - skipping.before)
    assert skipping.rate == good.rate == 2.0**-6
    assert Run(callbacks(), GOOD_SCALE, sink, epochs=9).rate == 2.0**-7


def test_what_a_plateau_writes_for_later_callbacks_is_there_from_the_first_epoch(tmp_path: pathlib.Path) -> None:
    lines = keras.callbacks.CSVLogger(tmp_path / "log.csv")
    run = Run([*keras_lowers(), lines], FIRST_SCALE, sink=False, epochs=1)
    assert run.before == 1
    assert "learning_rate" in (tmp_path / "log.csv").read_text().splitlines()[0]
