"""A batch that is not finite, without a loss-scale manager: it is told, and with explain_overflow it is skipped."""

from __future__ import annotations

import warnings
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import FixedLossScaleManager, Model, nn

LEVELS: dict[str, dict[str, Any]] = {
    "O0": {}, "O1 in bfloat16": {"amp_level": "O1", "cast_model_type": mixtrain.bfloat16},
    "O2 in bfloat16": {"amp_level": "O2", "cast_model_type": mixtrain.bfloat16},
}
FEEDS: dict[str, dict[str, Any]] = {"host": {}, "sink": {"dataset_sink_mode": True}}


def batches(planted: int | None = 2) -> list[tuple[np.ndarray, np.ndarray]]:
    draw = np.random.default_rng(0)
    result = [
        (draw.standard_normal((8, 4)).astype(np.float32), draw.standard_normal((8, 1)).astype(np.float32))
        for _ in range(5)
    ]
    if planted is not None:
        result[planted][0][2, 0] = np.nan
    return result


def model(kind: str = "keras", **options: Any) -> Model:
    keras.utils.set_random_seed(0)
    mixtrain.set_seed(0)
    if kind == "cell":
        cell = nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 1))
        return Model(cell, nn.MSELoss(), nn.SGD(cell.trainable_params(), 0.01), **options)
    layers = [keras.Input((4,)), keras.layers.Dense(6, "relu"), keras.layers.Dense(1)]
    return Model(keras.Sequential(layers), "mse", keras.optimizers.SGD(0.01), **options)


@pytest.mark.parametrize("kind", ["keras", pytest.param("cell", marks=pytest.mark.slow)])
@pytest.mark.parametrize("feed", ["host", pytest.param("sink", marks=pytest.mark.slow)])
@pytest.mark.parametrize("level", ["O0", *(pytest.param(level, marks=pytest.mark.slow) for level in list(LEVELS)[1:])])
def test_the_epoch_tells_since_which_step_weights_are_lost_and_what_to_write(level: str, feed: str, kind: str) -> None:
    with pytest.warns(UserWarning, match=r"\d of 4 weights are not finite since step 3 of epoch 1, .*Write Model"):
        model(kind, **LEVELS[level]).train(1, batches(), verbose=0, **FEEDS[feed])


@pytest.mark.parametrize("kind", ["keras", pytest.param("cell", marks=pytest.mark.slow)])
@pytest.mark.parametrize("feed", ["host", pytest.param("sink", marks=pytest.mark.slow)])
@pytest.mark.parametrize("level", ["O0", *(pytest.param(level, marks=pytest.mark.slow) for level in list(LEVELS)[1:])])
def test_with_explain_overflow_the_step_is_skipped_and_explained(level: str, feed: str, kind: str) -> None:
    watched = model(kind, explain_overflow=True, **LEVELS[level])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch 1, 1 of 5 steps were skipped although")
        watched.train(1, batches(), verbose=0, **FEEDS[feed])
    control = model(kind, loss_scale_manager=FixedLossScaleManager(1.0), **LEVELS[level])
    control.train(1, [batch for index, batch in enumerate(batches(None)) if index != 2], verbose=0, **FEEDS[feed])
    for one, other in zip(watched.train_network.weights, control.train_network.weights, strict=True):
        np.testing.assert_array_equal(mixtrain.backend.to_numpy(one), mixtrain.backend.to_numpy(other))
    (record,) = watched.overflows
    assert str(record).startswith("step 3: scale 1")
    assert "column 0 of the batch: 1 of 32 values not finite" in str(record)


@pytest.mark.parametrize("held", ["parameters", "numbers"])
def test_a_cell_that_is_its_own_train_step_is_told_of_by_epoch_if_it_holds_its_weights(held: str) -> None:
    class Step(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.network = nn.Dense(4, 1)
            optimizer = nn.SGD(self.network.trainable_params(), 0.01)
            self.optimizer = optimizer
            self.weights = optimizer.parameters if held == "parameters" else [0.5, 0.5]
            self.loss = nn.WithLossCell(self.network, nn.MSELoss())
            self.gradients = mixtrain.value_and_grad(self.loss, None, optimizer.parameters)

        def construct(self, x: Any, y: Any) -> Any:
            loss, gradients = self.gradients(x, y)
            self.optimizer(gradients)
            return loss

    keras.utils.set_random_seed(0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Model(Step()).train(1, batches(), verbose=0)
    told = [str(item.message) for item in caught if "weights are not finite since" in str(item.message)]
    assert len(told) == (held == "parameters")


@pytest.mark.slow
def test_finite_gradients_with_an_infinite_norm_are_no_reason_to_warn() -> None:
    network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False)])
    huge = Model(network, lambda output, label: keras.ops.mean(output) * 1e20, keras.optimizers.SGD(0.0))
    history = huge.train(1, [(np.full((1, 1), 1e10, np.float32), np.zeros((1, 1), np.float32))], verbose=0)
    assert np.isfinite(history["loss"]).all()


@pytest.mark.slow
def test_steps_in_half_that_are_applied_with_an_infinite_loss_are_told() -> None:
    # The gradient of an absolute error does not depend on its size.
    network = keras.Sequential([
        keras.Input((4,)), keras.layers.Dense(2, kernel_initializer=keras.initializers.Constant(2e4)),
    ])
    manager = FixedLossScaleManager(1.0)
    model = Model(network, "mae", keras.optimizers.SGD(0.0), amp_level="O2", loss_scale_manager=manager)
    data = [(np.ones((2, 4), np.float32), np.zeros((2, 2), np.float32))] * 3
    with pytest.warns(UserWarning, match="in epoch 1, 3 of 3 steps were applied with a loss that was not finite"):
        history = model.train(1, data, verbose=0)
    assert history["skipped_steps"] == [0]
