"""What a compiled Keras model brings to a Model, and what Keras can do with a network that a Model trains."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
from mixtrain.train.compiled import compile_arguments_of, is_compiled

X = np.random.default_rng(4).normal(size=(32, 4)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32)
BATCHES = [(X[first : first + 8], Y[first : first + 8]) for first in range(0, 32, 8)]


def compiled(**options: object) -> keras.Model:
    network = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    network.compile(**options)
    return network


def test_a_compiled_model_brings_the_very_objects_that_it_was_given() -> None:
    """Keras keeps them under a private name: should it move, this fails."""

    def loss(y_true: object, y_pred: object) -> object:
        return y_pred

    metric, optimizer = keras.metrics.MeanAbsoluteError(), keras.optimizers.SGD(0.1)
    network = compiled(optimizer=optimizer, loss=loss, loss_weights=[2.0], metrics=[metric], weighted_metrics=["mse"])
    arguments = compile_arguments_of(network)
    assert arguments.loss_fn is loss and arguments.optimizer is optimizer and arguments.metrics[0] is metric
    assert arguments.loss_weights == [2.0] and arguments.weighted_metrics == ["mse"]


def test_the_loss_scaling_that_keras_wrapped_an_optimizer_in_is_left_to_a_manager() -> None:
    optimizer = keras.optimizers.SGD(0.1)
    network = compiled(optimizer=keras.optimizers.LossScaleOptimizer(optimizer), loss="mse")
    assert compile_arguments_of(network).optimizer is optimizer


def test_a_model_with_nothing_to_train_brings_no_optimizer() -> None:
    network = compiled(optimizer="sgd", loss="mse")
    network.trainable = False
    assert compile_arguments_of(network).optimizer is None


def test_networks_that_are_not_compiled_bring_nothing() -> None:
    assert not is_compiled(keras.layers.Dense(1))
    assert not is_compiled(keras.Sequential([keras.layers.Dense(1)]))
    assert is_compiled(compiled(optimizer="sgd"))


class Evaluates(keras.callbacks.Callback):
    """Evaluates the network after each epoch, as callbacks for Keras do."""

    def __init__(self) -> None:
        super().__init__()
        self.values: list[dict[str, float]] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.values.append(self.model.evaluate(X, Y, verbose=0, return_dict=True))


def network() -> keras.Model:
    keras.utils.set_random_seed(1)
    # A bias before the normalization has a gradient of rounding alone, which Adam would blow up.
    hidden = keras.layers.Dense(8, use_bias=False)
    return keras.Sequential([keras.Input((4,)), hidden, keras.layers.BatchNormalization(), keras.layers.Dense(2)])


def loss() -> keras.losses.Loss:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def adam() -> keras.optimizers.Optimizer:
    return keras.optimizers.Adam(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
def test_a_callback_that_evaluates_its_model_sees_what_it_sees_in_keras(sink: bool) -> None:
    theirs, ours = Evaluates(), Evaluates()
    peer = network()
    peer.compile(adam(), loss(), metrics=["accuracy"])
    peer.fit(X, Y, batch_size=8, epochs=2, shuffle=False, verbose=0, callbacks=[theirs])
    model = mixtrain.Model(network(), loss(), adam(), metrics=["accuracy"])
    history = model.fit(2, BATCHES, callbacks=ours, verbose=0, dataset_sink_mode=sink)
    alone = mixtrain.Model(network(), loss(), adam(), metrics=["accuracy"]).fit(2, BATCHES, verbose=0)
    assert history["accuracy"] == alone["accuracy"], "an evaluation leaves the training metrics alone"
    for result, expected in zip(ours.values, theirs.values, strict=True):
        assert result == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("saver", ["model", "callback", "network"])
def test_a_file_keeps_the_optimizer_and_goes_on_in_keras(tmp_path: pathlib.Path, saver: str) -> None:
    path = tmp_path / "net.keras"
    trained, optimizer = network(), adam()
    model = mixtrain.Model(trained, loss(), optimizer, metrics=["accuracy"], amp_level="O2")
    model.fit(2, BATCHES, verbose=0, callbacks=keras.callbacks.ModelCheckpoint(path) if saver == "callback" else None)
    if saver != "callback":
        (model if saver == "model" else trained).save(path)
    loaded = keras.models.load_model(path)
    assert type(loaded.optimizer) is keras.optimizers.Adam and loaded.optimizer.iterations == 8
    for kept, expected in zip(loaded.optimizer.variables, optimizer.variables, strict=True):
        np.testing.assert_array_equal(kept, expected)
    before = loaded.evaluate(X, Y, verbose=0)
    assert before == pytest.approx(model.evaluate(X, Y), abs=5e-3)
    loaded.fit(X, Y, batch_size=8, epochs=4, verbose=0)
    assert loaded.evaluate(X, Y, verbose=0)[0] < before[0] and loaded.optimizer.iterations == 24


@pytest.mark.slow
def test_what_a_model_compiles_is_no_compile_of_the_user() -> None:
    trained = network()
    mixtrain.Model(trained, loss(), adam()).fit(1, BATCHES, verbose=0)
    assert trained.compiled and not is_compiled(trained)
    with pytest.raises(ValueError, match="must have an optimizer"):
        mixtrain.Model(trained).fit(1, BATCHES, verbose=0)
    other = keras.optimizers.SGD()
    mixtrain.Model(trained, "mse", other).fit(1, [(X, X[:, :2])], verbose=0)
    assert trained.optimizer is other
    user = keras.optimizers.RMSprop()
    trained.compile(user, "mse")
    assert is_compiled(trained)
    mixtrain.Model(trained, loss(), adam()).fit(1, BATCHES, verbose=0)
    assert trained.optimizer is user


@pytest.mark.slow
def test_a_loss_or_an_optimizer_that_keras_does_not_know_leaves_a_network_uncompiled() -> None:
    trained = network()
    mixtrain.Model(trained, nn.SoftmaxCrossEntropyWithLogits(sparse=True), adam()).fit(1, BATCHES, verbose=0)
    assert not trained.compiled
    mixtrain.Model(trained, loss(), nn.SGD(trained.trainable_weights, 0.1)).fit(1, BATCHES, verbose=0)
    assert not trained.compiled


@pytest.mark.slow
def test_the_metrics_of_layers_stay_what_they_are_in_and_around_compiled_networks() -> None:
    class Counts(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.mean = keras.metrics.Mean(name="mean")

        def call(self, inputs: Any) -> Any:
            self.mean.update_state(inputs)
            return inputs

    inner = keras.Sequential([keras.Input((4,)), Counts(), keras.layers.Dense(3)])
    inner.compile("sgd", "mse", metrics=["mae"])
    outer = keras.Sequential([keras.Input((4,)), inner, keras.layers.Dense(2)])
    model = mixtrain.Model(outer, loss(), adam())
    first, second = (model.fit(1, BATCHES, verbose=0) for _ in range(2))
    assert list(first) == list(second) == ["loss", "mean"]
    assert first["loss"][0] > second["loss"][0] > 0 and first["mean"] == second["mean"]
