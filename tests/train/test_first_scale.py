"""A loss scale that nobody chose is found on the first batch: no batch is lost for it, and numbers are exact."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, backend
from tests.precision.zoo import ZOO, Entry, loss

BATCHES, ROWS = 8, 16
DRAW = np.random.default_rng(9)
X = DRAW.normal(size=(BATCHES * ROWS, 6)).astype("float32")
Y = DRAW.integers(0, 3, size=(BATCHES * ROWS,))
DATA = [(X[start : start + ROWS], Y[start : start + ROWS]) for start in range(0, len(X), ROWS)]


class Control(mixtrain.Callback):
    """Wants control in every step, so that steps run one by one."""

    def on_train_step_end(self, run_context: Any) -> None:
        self.last = run_context.original_args().step_results


def feeding(feed: str) -> dict[str, Any]:
    return {"callbacks": [Control()] if feed == "steps" else [], "dataset_sink_mode": feed == "sink", "verbose": 0}


def network() -> keras.Model:
    keras.utils.set_random_seed(4)
    return keras.Sequential([
        keras.Input((6,)), keras.layers.Dense(8, activation="relu"), keras.layers.BatchNormalization(),
        keras.layers.Dropout(0.4), keras.layers.Dense(3),
    ])


def model(**options: Any) -> Model:
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return Model(network(), loss_fn, keras.optimizers.Adam(0.01), amp_level="O2", **options)


def values_of(trained: Model) -> list[np.ndarray]:
    variables = trained.predict_network.variables
    return [backend.to_numpy(variable) for variable in (*variables, *trained.optimizer.variables)]


def assert_equal(one: Model, other: Model) -> None:
    for left, right in zip(values_of(one), values_of(other), strict=True):
        np.testing.assert_array_equal(left, right)


# The other two of `keras.applications` take minutes to trace; they pass as well.
TWENTY = [entry for entry in ZOO if not entry.large or entry.name in ("mobile_net_v2", "resnet50_v2")]


@pytest.mark.slow
@pytest.mark.parametrize("entry", TWENTY, ids=lambda entry: entry.name)
def test_no_batch_of_a_network_of_the_zoo_is_lost(entry: Entry) -> None:
    inputs, labels = entry.batch(BATCHES * ROWS)
    batches = [
        keras.tree.map_structure(lambda rows: rows[start : start + ROWS], (inputs, labels))
        for start in range(0, BATCHES * ROWS, ROWS)
    ]
    trained = Model(entry.make(), loss, keras.optimizers.Adam(), amp_level="O2")
    history = trained.train(1, batches, verbose=0)
    assert history["skipped_steps"] == [0]
    assert math.isfinite(history["loss"][0])


@pytest.mark.slow
@pytest.mark.parametrize("feed", ["sink", "groups", "steps"])
def test_the_first_step_is_the_one_of_a_run_from_the_scale_that_was_found(feed: str) -> None:
    result, named = model(), None
    history = result.train(1, DATA[:1], **feeding(feed))
    scale = history["loss_scale"][0]
    named = model(loss_scale_manager=DynamicLossScaleManager(scale))
    named.train(1, DATA[:1], **feeding(feed))
    assert history["skipped_steps"] == [0] and scale < 2.0**24
    assert_equal(result, named)
    too_large = model(loss_scale_manager=DynamicLossScaleManager(2 * scale))
    assert too_large.train(1, DATA[:1], verbose=0)["skipped_steps"] == [1]


@pytest.mark.slow
def test_numbers_do_not_depend_on_the_feed() -> None:
    runs = []
    for feed in ("steps", "groups", "sink"):
        trained = model()
        history = trained.train(2, DATA, **feeding(feed))
        assert history["skipped_steps"] == [0, 0]
        runs.append((trained, dict(history)))
    for trained, history in runs[1:]:
        assert history == runs[0][1]
        assert_equal(trained, runs[0][0])


@pytest.mark.slow
def test_the_search_leaves_counts_of_applied_steps_alone() -> None:
    trained = model()
    trained.train(1, DATA, verbose=0)
    state = trained.train_network.state
    assert (int(state.applied_steps), int(state.skipped_steps), int(state.good_steps)) == (BATCHES, 0, BATCHES)


@pytest.mark.slow
def test_a_later_batch_that_overflows_is_skipped() -> None:
    trained = model()
    planted = [*DATA[:4], (np.full_like(X[:ROWS], 1e6), Y[:ROWS]), *DATA[4:]]
    with pytest.warns(UserWarning, match="1 of 9 steps were skipped although a smaller loss scale cannot help"):
        history = trained.train(1, planted, verbose=0)
    assert history["skipped_steps"] == [1]


@pytest.mark.slow
@pytest.mark.parametrize("feed", ["groups", "sink", "steps"])
def test_a_first_batch_that_no_scale_can_help_is_one_skipped_step_and_the_next_is_searched_on(feed: str) -> None:
    bad = (np.full_like(X[:ROWS], np.inf), Y[:ROWS])
    trained, clean = model(), model()
    with pytest.warns(UserWarning, match="1 of 9 steps were skipped"):
        history = trained.train(1, [bad, *DATA], **feeding(feed))
    clean.train(1, DATA, **feeding(feed))
    assert history["skipped_steps"] == [1]
    assert_equal(trained, clean)


@pytest.mark.slow
def test_a_named_manager_keeps_its_meaning() -> None:
    trained = model(loss_scale_manager=DynamicLossScaleManager())
    history = trained.train(1, DATA, verbose=0)
    assert history["skipped_steps"][0] >= 3


@pytest.mark.slow
def test_no_scale_is_searched_where_keras_quantizes_to_float8_since_gradients_are_clipped_there() -> None:
    changes = []
    for ours in (False, True):
        keras.utils.set_random_seed(0)
        made = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(3)])
        for layer in made.layers:
            layer.quantize("float8")
        before, optimizer = made.get_weights(), keras.optimizers.SGD(0.5)
        of_classes = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        made.compile(optimizer if ours else keras.optimizers.LossScaleOptimizer(optimizer), of_classes)
        trains: Any = Model(made, amp_level="O2") if ours else made
        trains.fit(X, Y, batch_size=len(X), shuffle=False, verbose=0)
        changes.append([after - first for after, first in zip(made.get_weights(), before, strict=True)])
    assert trains.loss_scale_manager.get_loss_scale() == 2**15
    for mine, theirs in zip(changes[1][:2], changes[0][:2], strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-3)


@pytest.mark.slow
def test_an_automatic_scale_is_found_as_the_default_one_is() -> None:
    named, default = model(loss_scale_manager=DynamicLossScaleManager("auto")), model()
    history = named.train(1, DATA, verbose=0)
    assert dict(history) == dict(default.train(1, DATA, verbose=0))
    assert history["skipped_steps"] == [0]
    assert_equal(named, default)
    assert named.loss_scale_manager.get_config()["init_loss_scale"] == "auto"


def test_another_word_for_the_scale_is_refused() -> None:
    with pytest.raises(TypeError, match="init_loss_scale"):
        DynamicLossScaleManager("automatic")  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_second_run_does_not_search_again() -> None:
    trained = model()
    trained.train(1, DATA, verbose=0)
    trained.train_network.set_sense_scale(mixtrain.Tensor(2.0**24))
    assert trained.train(1, DATA[:3], verbose=0)["skipped_steps"] == [3]
