"""`calibrate_loss_scale` finds a scale without training; `on_overflow="retry"` loses no batch."""

from __future__ import annotations

import warnings
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
    backend,
    calibrate_loss_scale,
)
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import on_jax_only_some
from tests.train.test_first_scale import DATA, Control, feeding, model, values_of


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a call of the group feed run three steps."""
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 3)


def skipped(scale: float, data: Any) -> list[int]:
    """Return how many first steps a run from a scale skips, for each of some batches by itself."""
    results = []
    for batch in data:
        trained = model(loss_scale_manager=DynamicLossScaleManager(scale))
        results += trained.train(1, [batch], verbose=0)["skipped_steps"]
    return results


# ---- calibration ----------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_the_scale_is_half_of_the_largest_that_overflows_in_no_batch() -> None:
    scale = calibrate_loss_scale(model(), DATA[:2]).get_loss_scale()
    assert skipped(2 * scale, DATA[:2]) == [0, 0]
    assert 1 in skipped(4 * scale, DATA[:2])


@pytest.mark.slow
def test_nothing_of_the_model_changes() -> None:
    tried, fresh = model(), model()
    calibrate_loss_scale(tried, DATA[:2])
    scale = tried.loss_scale_manager.get_loss_scale()
    assert scale == fresh.loss_scale_manager.get_loss_scale() == 2.0**24
    histories = [dict(each.train(2, DATA, verbose=0)) for each in (tried, fresh)]
    assert histories[0] == histories[1]
    for left, right in zip(values_of(tried), values_of(fresh), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.slow
def test_a_trained_model_is_left_where_it_is() -> None:
    trained = model()
    trained.train(1, DATA, verbose=0)
    before = [value.copy() for value in values_of(trained)]
    state = trained.train_network.state
    counts = backend.to_numpy(state.counts).tolist(), state.current_scale()
    calibrate_loss_scale(trained, DATA, steps=2)
    assert (backend.to_numpy(state.counts).tolist(), state.current_scale()) == counts
    for left, right in zip(before, values_of(trained), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.slow
def test_only_the_first_batches_are_read() -> None:
    read: list[int] = []

    class Reading:
        def __iter__(self) -> Any:
            for number, batch in enumerate(DATA):
                read.append(number)
                yield batch

        def __len__(self) -> int:
            return len(DATA)

    calibrate_loss_scale(model(), Reading(), steps=2)
    assert max(read) <= 2  # One may be read ahead.


@pytest.mark.slow
def test_a_batch_that_no_scale_can_help_is_an_error_that_says_what_overflows() -> None:
    x, y = DATA[0]
    with pytest.raises(ValueError, match="one has none at scale 1. Found: column 0 of the batch: 96 of 96 values"):
        calibrate_loss_scale(model(), [(np.full_like(x, np.inf), y)])


def test_a_model_without_loss_scaling_is_refused() -> None:
    with pytest.raises(ValueError, match="the model must have loss scaling that skips"):
        calibrate_loss_scale(model(loss_scale_manager=None), DATA)
    with pytest.raises(TypeError, match="calibrate_loss_scale: model"):
        calibrate_loss_scale(keras.Sequential(), DATA)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="steps"):
        calibrate_loss_scale(model(), DATA, steps=0)


# ---- retries --------------------------------------------------------------------------------------------------------
def outlier(factor: float) -> list[Any]:
    """Return batches of which the fourth has labels far off, so that its gradients are larger."""
    draw = np.random.default_rng(1)
    rows = [draw.standard_normal((8, 6)).astype(np.float32) for _ in range(7)]
    labels = [draw.standard_normal((8, 3)).astype(np.float32) for _ in rows]
    labels[3] *= np.float32(factor)
    return list(zip(rows, labels, strict=True))


def retrying(on_overflow: Any, scale: float = 2.0**10, **options: Any) -> Model:
    keras.utils.set_random_seed(2)
    network = keras.Sequential([
        keras.Input((6,)), keras.layers.Dense(8), keras.layers.BatchNormalization(), keras.layers.Dropout(0.3),
        keras.layers.Dense(3),
    ])
    manager = DynamicLossScaleManager(scale, 4)
    return Model(
        network, "mse", keras.optimizers.SGD(1e-4), amp_level="O2", loss_scale_manager=manager, on_overflow=on_overflow,
        **options,
    )


@pytest.mark.slow
@pytest.mark.parametrize("feed", on_jax_only_some(["steps", "groups", "sink"], (1,)))
def test_a_batch_that_overflows_is_trained_on_at_a_smaller_scale(feed: str) -> None:
    data = outlier(2.0**10)
    skipping, trained, small = retrying("skip"), retrying("retry"), retrying("skip", 2.0**4)
    assert skipping.train(1, data, **feeding(feed))["skipped_steps"] == [1]
    history = trained.train(1, data, **feeding(feed))
    assert history["skipped_steps"] == [0] and history["loss_scale"][0] < 2.0**10
    # No batch is lost: the run that never overflows is near, the one that skipped is not.
    assert small.train(1, data, **feeding(feed))["skipped_steps"] == [0]
    distances = [
        max(float(np.abs(one - other).max()) for one, other in zip(values_of(run), values_of(small), strict=True)
            if one.dtype == np.float32)
        for run in (trained, skipping)
    ]
    assert distances[0] < 0.1 * distances[1]


def test_a_retried_step_counts_once() -> None:
    trained = retrying("retry")
    trained.train(1, outlier(2.0**10), verbose=0)
    state = trained.train_network.state
    assert (int(state.applied_steps), int(state.skipped_steps), int(state.good_steps)) == (7, 0, 4)


@pytest.mark.slow
def test_a_batch_that_needs_more_is_skipped_once() -> None:
    trained = retrying("retry", 2.0**24, explain_overflow=True)
    data = outlier(1.0)
    data[3] = (data[3][0], data[3][1] * np.float32(2.0**30))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        history = trained.train(1, data, verbose=0)
    state = trained.train_network.state
    assert history["skipped_steps"] == [int(state.skipped_steps)] == [len(trained.overflows)]
    assert int(state.applied_steps) + int(state.skipped_steps) == 7


@pytest.mark.slow
def test_a_loss_that_is_not_finite_is_not_tried_again() -> None:
    trained = retrying("retry", explain_overflow=True)
    data = outlier(1.0)
    data[3] = (data[3][0] * np.float32(np.nan), data[3][1])
    with pytest.warns(UserWarning, match="1 of 7 steps were skipped"):
        history = trained.train(1, data, verbose=0)
    assert (history["skipped_steps"], history["loss_scale"]) == ([1], [2.0**8])
    assert [record.finding.kind for record in trained.overflows] == ["input"]


@pytest.mark.slow
def test_a_run_without_overflow_is_the_same_with_retries() -> None:
    data = outlier(1.0)
    runs = [retrying(on_overflow, 2.0**4) for on_overflow in ("skip", "retry")]
    histories = [dict(run.train(2, data, callbacks=[Control()], verbose=0)) for run in runs]
    assert histories[0] == histories[1]
    for left, right in zip(*map(values_of, runs), strict=True):
        np.testing.assert_array_equal(left, right)


class Own(LossScaleManager):
    """Moved from Python."""

    def get_loss_scale(self) -> float:
        return 8.0

    def update_loss_scale(self, overflow: bool) -> None:
        del overflow


@pytest.mark.parametrize("manager", [FixedLossScaleManager(8.0), Own()], ids=["fixed", "own"])
def test_retries_need_a_scale_that_moves_in_the_step(manager: LossScaleManager) -> None:
    network = mixtrain.nn.Dense(1, 1)
    optimizer = mixtrain.nn.SGD(network.trainable_params(), 0.1)
    with pytest.raises(ValueError, match='on_overflow="retry" needs a loss scale that the step itself makes smaller'):
        Model(network, "mse", optimizer, loss_scale_manager=manager, on_overflow="retry")


def test_other_words_are_refused() -> None:
    with pytest.raises(ValueError, match="on_overflow must be one of"):
        Model(mixtrain.nn.Dense(1, 1), on_overflow="again")  # type: ignore[arg-type]
