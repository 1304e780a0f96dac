"""Several devices train as one does: losses, weights, metrics, skips and scales, for every size of batch."""

from __future__ import annotations

import functools
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, backend, nn
from mixtrain.backend import LabelOutOfRange
from mixtrain.distribution import data_parallel
from tests import devices
from tests.backends import on_jax_only_some
from tests.distribution.networks import batches, farthest, mlp, train, values_of

# Each of several Models is compiled by XLA there.


@pytest.mark.slow
def test_batches_of_every_size_train_evaluate_and_predict_as_on_one_device() -> None:
    data = batches(*range(1, 2 * devices.COUNT + 2))
    one, several = (train(count, data, metrics={"accuracy"}) for count in (None, devices.COUNT))
    assert farthest(one, several) < 1e-6
    assert several.model.eval(data) == pytest.approx(one.model.eval(data), abs=1e-6)
    assert np.allclose(several.model.predict(data[-1][0]), one.model.predict(data[-1][0]), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", on_jax_only_some(["sum", None]))
def test_a_loss_that_is_a_sum_or_has_a_number_for_each_row_is_that_of_all_rows(reduction: str | None) -> None:
    data = batches(4, 3, 4)
    loss = functools.partial(keras.losses.SparseCategoricalCrossentropy, from_logits=True, reduction=reduction)
    one, several = (train(count, data, loss=loss()) for count in (None, 2))
    assert farthest(one, several) < 1e-5


def test_a_function_that_sums_is_declared() -> None:
    def squares(x: Any) -> Any:
        return keras.ops.sum(keras.ops.square(x * weight))

    result = []
    for mean in (True, False):
        weight = mixtrain.Parameter(np.float32(1))
        with data_parallel(2, gradients_mean=mean):
            step = nn.TrainOneStepCell(_Loss(squares, weight), nn.SGD([weight], 0.125))
        result.append((float(step(mixtrain.Tensor([1.0, 1.0]))), float(weight)))
    assert result == [(1.0, 0.75), (2.0, 0.5)]


class _Loss(nn.Cell):
    """A function of a batch as a network that returns its loss."""

    def __init__(self, function: Any, weight: Any) -> None:
        super().__init__()
        self.function, self.weight = function, weight

    def construct(self, x: Any) -> Any:
        return self.function(x)


class _Kept(nn.Cell):
    """What dropout leaves of each row, as the loss of that row."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = mixtrain.Parameter(np.float32(1))
        self.dropout = nn.Dropout(p=0.5)

    def construct(self, x: Any) -> Any:
        return keras.ops.sum(self.dropout(x) * self.weight, axis=1)


def test_replicas_draw_other_numbers_that_can_be_repeated() -> None:
    def losses() -> np.ndarray:
        mixtrain.set_seed(3)
        net = _Kept()
        with data_parallel(2):
            step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.0)).set_train()
        return np.array([step(mixtrain.Tensor(np.ones((2, 64), np.float32))).asnumpy() for _ in range(2)])

    first = losses()
    assert len(set(first.ravel())) == 4
    assert np.array_equal(first, losses())


@pytest.mark.slow
def test_moving_statistics_are_averaged_over_replicas_and_normalize_by_their_own() -> None:
    x, _ = batches(6)[0]
    network = keras.Sequential([keras.Input((6,)), keras.layers.BatchNormalization(momentum=0.5)])
    with data_parallel(2):
        model = Model(network, "mse", keras.optimizers.SGD(0.0))
    trace = model.train(1, [(x, np.zeros_like(x))], verbose=0)
    halves = x.reshape(2, 3, 6)
    mean, variance = (backend.to_numpy(value) for value in network.layers[0].non_trainable_variables)
    assert np.allclose(mean, 0.5 * halves.mean(1).mean(0), atol=1e-6)
    assert np.allclose(variance, 0.5 + 0.5 * halves.var(1).mean(0), atol=1e-6)
    assert trace["loss"][0] == pytest.approx(1.0, abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    {"clipnorm": 0.01, "use_ema": True, "ema_overwrite_frequency": 2}, {"gradient_accumulation_steps": 2},
    {"global_clipnorm": 0.01, "weight_decay": 0.1}, {"clipvalue": 0.001},
])
def test_keras_s_optimizers_clip_average_and_accumulate_as_on_one_device(options: dict[str, Any]) -> None:
    data = batches(*[4] * 6)
    one, several = (
        train(count, data, optimizer=keras.optimizers.SGD(0.5, 0.9, **options), sink=sink)
        for count, sink in ((None, False), (2, True))
    )
    assert farthest(one, several) < 1e-6
    plain = train(None, data, optimizer=keras.optimizers.SGD(0.5, 0.9))
    assert farthest(one, plain) > 1e-3, "the option counts"


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_devices(tmp_path: Any) -> None:
    data = batches(*[4] * 6)
    whole = train(None, data, keras.layers.LayerNormalization())
    half = train(2, data[:3], keras.layers.LayerNormalization())
    mixtrain.save_checkpoint(half.model.train_network, str(tmp_path / "half.ckpt"))
    for count in (None, 2):
        again = train(count, data[:1], keras.layers.LayerNormalization())
        mixtrain.load_param_into_net(again.model.train_network, mixtrain.load_checkpoint(str(tmp_path / "half.ckpt")))
        again.model.train(1, data[3:], verbose=0)
        result = values_of(again.network)
        assert max(float(np.abs(a - b).max()) for a, b in zip(result, whole.weights, strict=True)) < 1e-5


def test_a_label_out_of_range_is_refused_before_the_step() -> None:
    (x, y), = batches(4)
    y[3] = 7
    with data_parallel(2):
        model = Model(mlp(), nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"), keras.optimizers.SGD(0.1))
    with pytest.raises(LabelOutOfRange, match="labels must be from 0 to 2; got 7"):
        model.train(1, [(x, y)], verbose=0)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (100, ValueError, "devices must be from 1 to the . that .* has; got 100"),
        (0, ValueError, "devices must be from 1"),
        ([], ValueError, "devices must be different ones"),
        ("GPU:0", TypeError, "devices must be a number, a list of devices or None"),
        ([3], TypeError, "devices must be (names of|JAX) devices"),
    ],
)
def test_devices_that_are_not_there_are_refused(given: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message), data_parallel(given):
        pass


def test_losses_of_which_some_are_sums_are_refused() -> None:
    x, y = batches(4)[0]
    inputs = keras.Input((6,))
    network = keras.Model(inputs, [keras.layers.Dense(1)(inputs), keras.layers.Dense(1)(inputs)])
    with data_parallel(2):
        losses = [keras.losses.MeanSquaredError(), keras.losses.MeanSquaredError(reduction="sum")]
        model = Model(network, losses, keras.optimizers.SGD(0.1))
    target = y.astype(np.float32).reshape(4, 1)
    with pytest.raises(ValueError, match="must all be sums over rows, or all means"):
        model.train(1, [(x, (target, target))], verbose=0)


@pytest.mark.slow
def test_uncompiled_steps_run_on_one_device() -> None:
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    one, several = (train(count, batches(4, 4)) for count in (None, 2))
    assert farthest(one, several) == 0


@pytest.mark.slow
@pytest.mark.parametrize("update", ["stochastic", "compensated"])
def test_weights_in_bfloat16_stay_equal_on_all_devices_and_learn_as_on_one(update: Any) -> None:
    data = batches(*[4] * 6)
    half = {"amp_level": "O2", "cast_model_type": "bfloat16", "master_weights": False, "low_precision_update": update}
    one, several = (train(count, data, **half) for count in (None, 2))
    # Sums of halves of a batch differ in the last bits, by which a few weights are rounded the other way.
    assert farthest(one, several) < 0.03
    again = train(2, data, **half)
    assert farthest(several, again) == 0
