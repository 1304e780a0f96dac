"""The facade: networks, losses, optimizers and metrics in any mix, evaluation and prediction."""

from __future__ import annotations

import itertools
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, backend, nn
from tests.backends import on_jax_only_some
from tests.train.planted import Trace

_draw = np.random.default_rng(0)
X = _draw.standard_normal((32, 6)).astype(np.float32)
Y = X @ _draw.standard_normal((6, 1)).astype(np.float32)
DATA = [(X[start:start + 8], Y[start:start + 8]) for start in range(0, 32, 8)]


def _dense() -> nn.Dense:
    return nn.Dense(6, 1)


def _cells() -> Any:
    mixtrain.set_seed(3)
    return nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 1))


def _keras() -> Any:
    mixtrain.set_seed(3)
    layers = keras.layers
    return keras.Sequential([keras.Input((6,)), layers.Dense(5, activation="relu"), layers.Dense(1)])


def _mixed() -> Any:
    mixtrain.set_seed(3)
    return nn.SequentialCell(keras.layers.Dense(5), nn.ReLU(), keras.layers.BatchNormalization(), nn.Dense(5, 1))


def _make(net: Any = None, **options: Any) -> Model:
    net = _dense() if net is None else net
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.05), **options)


# ---- any mix -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "loss", "optimizer", "level"),
    on_jax_only_some([
        (_cells, nn.MSELoss, "mixtrain", "O0"),
        (_cells, lambda: "mse", "keras", "O2"),
        (_cells, keras.losses.MeanSquaredError, "name", "O0"),
        (_keras, nn.MSELoss, "mixtrain", "O2"),
        (_keras, lambda: "mse", "keras", "O0"),
        (_keras, lambda: keras.losses.mean_squared_error, "name", "O3"),
        (_mixed, nn.MSELoss, "keras", "O2"),
        (_mixed, lambda: "mse", "name", "O0"),
    ], [0, 3, 6]),
)
def test_networks_losses_optimizers_and_metrics_go_together_in_any_mix(
    network: Any, loss: Any, optimizer: str, level: Any
) -> None:
    net = network()
    made: Any = {"name": "sgd", "keras": keras.optimizers.SGD(0.01)}.get(optimizer)
    if made is None:
        made = nn.SGD(net.trainable_params() if isinstance(net, nn.Cell) else net.trainable_variables, 0.01)
    metrics = {"mse": "mse", "theirs": keras.metrics.MeanSquaredError(), "loss": "loss"}
    model = Model(net, loss(), made, metrics=metrics, amp_level=level, loss_scale_manager=DynamicLossScaleManager(2**8))
    history = model.fit(4, DATA, DATA, verbose=0)
    assert history["loss"][-1] < history["loss"][0]
    # Keras's metrics are told of training too; "mse" is Keras's where the network and the loss are.
    in_training = {"theirs"} | ({"mse"} if network is _keras and loss is not nn.MSELoss else set())
    assert set(history) == {"loss", "loss_scale", "skipped_steps", "val_mse", "val_theirs", "val_loss"} | in_training
    assert history["val_mse"][-1] == pytest.approx(history["val_theirs"][-1], rel=1e-5)
    assert history["val_mse"][-1] == pytest.approx(history["val_loss"][-1], rel=1e-5)
    values = model.eval(DATA)
    assert values == pytest.approx({name: history[f"val_{name}"][-1] for name in metrics}, rel=1e-6)
    output = model.predict(X)
    assert (output.dtype.name, tuple(output.shape)) == ("float32", (32, 1))
    assert np.mean((backend.to_numpy(output) - Y) ** 2) == pytest.approx(values["mse"], rel=1e-3)


def test_the_same_network_trains_the_same_run_as_keras() -> None:
    ours, theirs = _keras(), _keras()
    history = Model(ours, "mse", keras.optimizers.Adam(0.01)).train(3, DATA, verbose=0)
    theirs.compile(keras.optimizers.Adam(0.01), "mse")
    expected = theirs.fit(X, Y, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-5)
    for one, other in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_allclose(backend.to_numpy(one), backend.to_numpy(other), rtol=1e-5, atol=1e-7)


def test_keras_layers_are_built_from_the_first_batch() -> None:
    net = _mixed()
    assert len(net.trainable_params()) == 2
    model = Model(net, "mse", "sgd", amp_level="O2")
    model.build(DATA)
    assert len(net.trainable_params()) == 6
    assert model.precision_report().row("2").compute_dtype == mixtrain.float32


@pytest.mark.slow
def test_a_network_that_returns_its_own_loss_is_built_from_all_columns() -> None:
    net = nn.WithLossCell(keras.Sequential([keras.layers.Dense(1)]), nn.MSELoss())
    assert np.isfinite(Model(net, optimizer="sgd").train(1, DATA, verbose=0)["loss"]).all()


# ---- evaluation and prediction -----------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(
    ("frequency", "count"), [(1, 4), (2, 2), (3, 1), ([1, 4], 2), ([7], 0)]
)
def test_fit_evaluates_as_often_as_it_is_told(frequency: Any, count: int) -> None:
    history = _make(metrics={"mse"}).fit(4, DATA, DATA, valid_frequency=frequency, verbose=0)
    assert len(history["loss"]) == 4
    assert len(history.get("val_mse", [])) == len(history.get("val_loss", [])) == count


def test_training_mode_is_on_while_training_and_off_while_evaluating_and_predicting() -> None:
    modes = []

    class Watched(nn.Dense):
        def construct(self, x: Any) -> Any:
            modes.append(self.training)
            return super().construct(x)

    model = _make(Watched(6, 1), metrics={"mse"})
    model.fit(2, DATA, DATA, verbose=0)
    model.predict(X)
    assert [mode for mode, _ in itertools.groupby(modes)] == [True, False]  # a backend may trace each twice


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Model(_dense()).eval(DATA), ValueError, "Model.eval: evaluation needs metrics or a loss_fn"),
        (lambda: Model(_dense()).fit(1, DATA, DATA, verbose=0), ValueError, "Model.fit: evaluation needs metrics"),
        (lambda: _make(metrics={"mse"}).eval([]), ValueError, "Model.eval: the dataset must have at least one batch"),
        (lambda: _make(metrics={"mse"}).eval([(X,)]), ValueError, "must have 2 columns, data and label; got 1"),
        (lambda: _make(metrics={"mse"}).fit(1, DATA, DATA, 0), ValueError, "valid_frequency must be at least 1; got 0"),
        (lambda: _make(metrics={"mse"}).fit(1, DATA, DATA, "a"), TypeError, "valid_frequency must be an int; got str"),
        (lambda: _make().predict(), TypeError, "Model.predict: a batch must be given"),
        (lambda: _make().build(), ValueError, "Model.build: a dataset must be given"),
    ],
)
def test_calls_that_cannot_work_say_what_to_write(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)


def test_an_eval_network_of_ones_own_gives_metrics_its_outputs_by_index() -> None:
    class Swapped(nn.Cell):
        def __init__(self, net: Any) -> None:
            super().__init__()
            self.net = net

        def construct(self, x: Any, label: Any) -> Any:
            return label, self.net(x), keras.ops.mean((self.net(x) - label) ** 2)

    net = _dense()
    model = Model(net, eval_network=Swapped(net), eval_indexes=[2, 1, 0], metrics={"mse", "loss"})
    values = model.eval(DATA)
    assert values["mse"] == pytest.approx(values["loss"], rel=1e-6)
    short = Model(net, eval_network=Swapped(net), eval_indexes=[2, 1, 3], metrics={"mse"})
    with pytest.raises(ValueError, match="the eval network must return at least 4 outputs"):
        short.eval(DATA)


def test_prediction_takes_several_inputs_and_builds_the_network() -> None:
    class Two(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, one: Any, other: Any) -> Any:
            return self.dense(one) + other

    assert tuple(Model(Two()).predict(X, Y).shape) == (32, 1)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
@pytest.mark.parametrize("network", [_cells, _keras])
def test_a_half_network_predicts_float32_in_half(network: Any, level: Any) -> None:
    exact = backend.to_numpy(Model(network()).predict(X))
    half = Model(network(), amp_level=level).predict(X)
    assert half.dtype.name == "float32"
    difference = np.abs(backend.to_numpy(half) - exact).max()
    assert 0 < difference < 1e-2


@pytest.mark.slow
def test_a_train_step_of_ones_own_is_trained_by_a_model() -> None:
    class Custom(nn.TrainOneStepCell):
        def __init__(self, network: Any, optimizer: Any, sens: float = 1.0) -> None:
            super().__init__(network, optimizer, sens)
            self.reciprocal = mixtrain.Tensor(1 / sens, mixtrain.float32)

        def construct(self, *inputs: Any) -> Any:
            loss = self.network(*inputs)
            start = keras.ops.full(loss.shape, self.sens, loss.dtype)
            gradients = self.grad(self.network, self.weights)(*inputs, start)
            gradients = self.grad_reducer(tuple(gradient * self.reciprocal for gradient in gradients))
            self.optimizer(gradients)
            return loss

    def run(how: str) -> Trace:
        net, trace = _cells(), Trace()
        optimizer = nn.AdamWeightDecay(net.trainable_params(), 0.01)
        if how == "plain":
            Model(net, nn.MSELoss(), optimizer).train(2, DATA, callbacks=trace, verbose=0)
            return trace
        step = Custom(nn.WithLossCell(net, nn.MSELoss()), optimizer, 1024.0)
        if how == "direct":
            step.set_train()
            trace.losses = [float(step(mixtrain.Tensor(x), mixtrain.Tensor(y))) for x, y in DATA * 2]
        else:
            Model(step).train(2, DATA, callbacks=trace, dataset_sink_mode=how == "sink", verbose=0)
        return trace

    expected = run("plain").losses
    for how in ("host", "sink", "direct"):
        np.testing.assert_allclose(run(how).losses, expected, rtol=1e-5)
