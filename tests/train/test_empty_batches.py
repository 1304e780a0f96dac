"""A batch without rows is an error before its step, in every feed: its mean loss would be 0 / 0."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, nn
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import quick_every

_draw = np.random.default_rng(3)
X = _draw.standard_normal((32, 4)).astype(np.float32)
Y = _draw.standard_normal((32, 1)).astype(np.float32)
FULL = [(X[start : start + 8], Y[start : start + 8]) for start in range(0, 32, 8)]
EMPTY = (X[:0], Y[:0])


class Rows:
    """A dataset of batches whose shapes are not known before they are read."""

    def __init__(self, batches: list[Any]) -> None:
        self.batches = batches

    def __iter__(self) -> Any:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)


class EveryStep(mixtrain.Callback):
    def on_train_step_end(self, run_context: Any) -> None:
        """Be called after every step."""


def model(kind: str, **options: Any) -> Model:
    """Return a Model of a Cell or of a Keras network; every call returns the same weights."""
    keras.utils.set_random_seed(1)
    mixtrain.set_seed(1)
    if kind == "Cell":
        cell = nn.Dense(4, 1)
        return Model(cell, nn.MSELoss(), nn.Momentum(cell.trainable_params(), 0.1, 0.9), **options)
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    return Model(network, "mse", keras.optimizers.SGD(0.1, momentum=0.9), **options)


def weights(trained: Model) -> list[np.ndarray]:
    network = trained._networks.network
    cells = isinstance(network, mixtrain.nn.Cell)
    return [value.asnumpy() for value in network.get_parameters()] if cells else network.get_weights()


FEEDS: dict[str, dict[str, Any]] = {
    "host": {}, "each step": {"callbacks": [EveryStep()]}, "sink": {"dataset_sink_mode": True},
}


@quick_every(16)
@pytest.mark.parametrize("feed", FEEDS)
@pytest.mark.parametrize("kind", ["Keras", "Cell"])
@pytest.mark.parametrize("before", [0, 2, 4])
def test_it_is_refused_before_its_step(kind: str, feed: str, before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 4)
    manager = DynamicLossScaleManager(1024, 2, 1000)
    trained = model(kind, amp_level="O2", loss_scale_manager=manager)
    with pytest.raises(ValueError) as caught:
        trained.train(2, Rows([*FULL[:before], EMPTY, *FULL[before:]]), verbose=0, **FEEDS[feed])
    assert str(caught.value) == (
        f"Model.train: a batch must have at least one row; got 0 rows in step {before + 1}, epoch 1: column 0 has "
        "shape (0, 4). Leave empty batches out: write [batch for batch in batches if len(batch[0])]."
    )
    assert manager.get_loss_scale() == 1024
    untouched = model(kind, amp_level="O2", loss_scale_manager=DynamicLossScaleManager(1024, 2, 1000))
    if before:
        untouched.train(1, FULL[:before], verbose=0, **FEEDS[feed])
    assert all(map(np.array_equal, weights(trained), weights(untouched)))
    trained.train(1, FULL, verbose=0)  # It trains on.


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
def test_it_is_refused_in_eager_mode(feed: str) -> None:
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    with pytest.raises(ValueError, match="got 0 rows in step 3, epoch 1: column 0"):
        model("Cell").train(1, Rows([*FULL[:2], EMPTY]), verbose=0, **FEEDS[feed])


@pytest.mark.parametrize("name", ["eval", "evaluate"])
def test_it_is_refused_in_evaluation(name: str) -> None:
    with pytest.raises(ValueError, match="Model.eval: a batch must have at least one row; got 0 rows in batch 3: "):
        getattr(model("Keras"), name)(Rows([*FULL[:2], EMPTY]))


def test_it_is_refused_in_validation() -> None:
    with pytest.raises(ValueError, match="got 0 rows in batch 1: column 0 has shape"):
        model("Keras").fit(1, FULL, Rows([EMPTY]), verbose=0)


def test_predictions_of_no_rows_are_no_rows() -> None:
    network = model("Keras")
    assert np.shape(network.predict(X[:0])) == (0, 1)
    assert np.array_equal(network.predict(Rows([FULL[0][0], X[:0], FULL[1][0]])), network.predict(X[:16]))


@pytest.mark.slow
@pytest.mark.parametrize("feed", FEEDS)
def test_other_columns_may_be_empty(feed: str) -> None:
    """Boxes of all images of a batch, where there are none."""

    def loss(predicted: Any, boxes: Any) -> Any:
        return keras.ops.mean(predicted**2) + keras.ops.sum(boxes)

    keras.utils.set_random_seed(1)
    trained = Model(keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]), loss, "sgd")
    data = Rows([(x, X[: 2 * index]) for index, (x, _) in enumerate(FULL)])
    assert np.isfinite(trained.train(1, data, verbose=0, **FEEDS[feed])["loss"]).all()
