"""Keras networks that bring their loss themselves, and those that override a step that mixtrain does not call."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model, nn

ops = keras.ops
_draw = np.random.default_rng(2)
X = _draw.standard_normal((24, 4)).astype(np.float32)
Y = (X.sum(1, keepdims=True) + _draw.standard_normal((24, 1))).astype(np.float32)
W = _draw.uniform(0.0, 2.0, 24).astype(np.float32)


def batches(*columns: Any) -> list[tuple[Any, ...]]:
    return [tuple(column[start : start + 6] for column in columns) for start in range(0, 24, 6)]


class Autoencoder(keras.Model):
    """Adds its reconstruction error, and a penalty that a layer below adds."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = keras.layers.Dense(2, kernel_regularizer=keras.regularizers.L2(0.01))
        self.decode = keras.layers.Dense(4)

    def call(self, x: Any) -> Any:
        y = self.decode(self.encode(x))
        self.add_loss(ops.mean(ops.square(y - x)))
        return y


class Doubling(keras.Sequential):
    """Computes its loss itself, with the help of Keras's own."""

    def compute_loss(
        self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None, training: bool = True
    ) -> Any:
        return 2.0 * super().compute_loss(x, y, y_pred, sample_weight) + ops.mean(ops.square(y_pred - x[:, :1]))


class Alone(keras.Sequential):
    """Computes its loss without Keras's, in the form of older Keras versions."""

    def compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> Any:
        return ops.mean(ops.abs(y - y_pred)) + self.losses[0]


def autoencoder() -> Any:
    keras.utils.set_random_seed(4)
    return Autoencoder()


def doubling(kind: Any = Doubling) -> Any:
    keras.utils.set_random_seed(4)
    return kind([keras.Input((4,)), keras.layers.Dense(3, kernel_regularizer="l2"), keras.layers.Dense(1)])


def alone() -> Any:
    return doubling(Alone)


def in_keras(network: Any, loss: Any, *columns: Any) -> tuple[list[float], list[np.ndarray]]:
    network.compile(keras.optimizers.SGD(0.05), loss)
    x, y, w = [*columns, None, None][:3]
    keras_history = network.fit(x, y, sample_weight=w, batch_size=6, epochs=2, shuffle=False, verbose=0)
    return keras_history.history["loss"], network.get_weights()


def assert_same(network: Any, history: Any, theirs: tuple[list[float], list[np.ndarray]]) -> None:
    np.testing.assert_allclose(history["loss"], theirs[0], rtol=1e-6)
    for mine, weight in zip(network.get_weights(), theirs[1], strict=True):
        np.testing.assert_allclose(mine, weight, atol=1e-6)


# ---- losses that are added ------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("columns", [(X,), (X, Y)], ids=["data", "data-and-label"])
def test_a_network_without_a_loss_function_is_trained_on_what_it_adds(columns: Any, feed: dict[str, Any]) -> None:
    network = autoencoder()
    history = Model(network, optimizer=keras.optimizers.SGD(0.05)).train(2, batches(*columns), **feed)
    assert_same(network, history, in_keras(autoencoder(), None, X))


@pytest.mark.slow
def test_the_added_loss_is_scaled_and_trains_in_half(feed: dict[str, Any]) -> None:
    network = autoencoder()
    manager = DynamicLossScaleManager(2**10)
    model = Model(network, optimizer=keras.optimizers.SGD(0.05), amp_level="O2", loss_scale_manager=manager)
    history = model.train(2, batches(X), **feed)
    np.testing.assert_allclose(history["loss"], in_keras(autoencoder(), None, X)[0], rtol=2e-2)
    assert history["skipped_steps"] == [0, 0]


@pytest.mark.slow
def test_the_added_loss_is_evaluated_as_in_keras() -> None:
    network = autoencoder()
    history = Model(network, optimizer=keras.optimizers.SGD(0.05)).fit(1, batches(X), batches(X), verbose=0)
    theirs = autoencoder()
    theirs.compile(keras.optimizers.SGD(0.05))
    keras_history = theirs.fit(X, batch_size=6, shuffle=False, verbose=0, validation_data=(X,), validation_batch_size=6)
    np.testing.assert_allclose(history["val_loss"], keras_history.history["val_loss"], rtol=1e-6)


def test_a_network_without_any_loss_is_an_error_and_its_output_is_never_taken_for_one() -> None:
    network = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    before = network.get_weights()
    with pytest.raises(ValueError, match=r"must add losses .* shape \(6, 1\).*Write Model\(network, loss_fn"):
        Model(network, optimizer=keras.optimizers.SGD(0.1)).train(1, batches(X), verbose=0)
    np.testing.assert_array_equal(network.get_weights()[0], before[0])


def test_more_columns_than_data_label_and_weights_are_an_error() -> None:
    model = Model(autoencoder(), optimizer=keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match="1 to 3 columns: data, label, sample_weight; got 4"):
        model.train(1, batches(X, Y, W, W), verbose=0)


class Returning(keras.Model):
    """Takes data and label and returns its loss, one number."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1, **options)

    def call(self, x: Any, y: Any) -> Any:
        return ops.mean(ops.square(self.dense(x) - y))


@pytest.mark.slow
def test_a_network_that_takes_the_label_and_returns_a_scalar_is_trained_on_it(feed: dict[str, Any]) -> None:
    keras.utils.set_random_seed(4)
    network = Returning()
    history = Model(network, optimizer=keras.optimizers.SGD(0.05)).train(2, batches(X, Y), **feed)
    keras.utils.set_random_seed(4)
    theirs = keras.Sequential([keras.layers.Dense(1)])
    assert_same(network, history, in_keras(theirs, "mse", X, Y))


def test_a_scalar_beside_added_losses_is_an_error_for_either_may_be_meant() -> None:
    network = Returning(kernel_regularizer="l2")
    with pytest.raises(ValueError, match="either return its loss or add it"):
        Model(network, optimizer=keras.optimizers.SGD(0.05)).train(1, batches(X, Y), verbose=0)


# ---- overridden methods ---------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize(("make", "loss"), [(doubling, "mse"), (alone, None), (alone, "mse")])
def test_an_overridden_compute_loss_is_what_is_trained(make: Any, loss: Any, feed: dict[str, Any]) -> None:
    network = make()
    history = Model(network, loss, keras.optimizers.SGD(0.05)).train(2, batches(X, Y), **feed)
    assert_same(network, history, in_keras(make(), loss, X, Y))


@pytest.mark.slow
def test_an_overridden_compute_loss_gets_sample_weights_and_loss_scaling() -> None:
    network = doubling()
    manager = DynamicLossScaleManager(2**10)
    model = Model(network, "mse", keras.optimizers.SGD(0.05), sample_weight=True, loss_scale_manager=manager)
    history = model.train(2, batches(X, Y, W), verbose=0)
    assert_same(network, history, in_keras(doubling(), "mse", X, Y, W))


def test_an_overridden_compute_loss_is_what_is_evaluated() -> None:
    network, theirs = doubling(), doubling()
    theirs.compile(keras.optimizers.SGD(0.05), "mse")
    result = Model(network, "mse").eval(batches(X, Y))
    np.testing.assert_allclose(result["loss"], theirs.evaluate(X, Y, batch_size=6, verbose=0), rtol=1e-6)


@pytest.mark.slow
def test_compute_loss_leaves_the_network_as_it_was_compiled() -> None:
    network = doubling()
    network.compile(keras.optimizers.SGD(0.05), "mae")
    Model(network, "mse", keras.optimizers.SGD(0.05)).train(1, batches(X, Y), verbose=0)
    theirs = doubling()
    theirs.set_weights(network.get_weights())
    theirs.compile(keras.optimizers.SGD(0.05), "mae")
    assert network.evaluate(X, Y, verbose=0) == theirs.evaluate(X, Y, verbose=0)


# ---- without an optimizer, and compiled -----------------------------------------------------------------------------
def test_training_without_an_optimizer_is_an_error() -> None:
    for network, loss in ((doubling(), "mse"), (nn.Dense(4, 1), nn.MSELoss()), (doubling(), None)):
        with pytest.raises(ValueError, match=r"must have an optimizer to train.*Write Model\(network, loss_fn, opt"):
            Model(network, loss).train(1, batches(X, Y), verbose=0)


def compiled(**options: Any) -> Any:
    network = doubling(keras.Sequential)
    network.compile(keras.optimizers.SGD(0.05), "mse", **options)
    return network


@pytest.mark.slow
def test_a_compiled_network_brings_its_loss_its_optimizer_and_its_metrics(feed: dict[str, Any]) -> None:
    network, theirs = compiled(metrics=["mae"]), compiled(metrics=["mae"])
    model = Model(network)
    history = model.train(2, batches(X, Y), **feed)
    keras_history = theirs.fit(X, Y, batch_size=6, epochs=2, shuffle=False, verbose=0)
    assert_same(network, history, (keras_history.history["loss"], theirs.get_weights()))
    expected = theirs.evaluate(X, Y, verbose=0, return_dict=True)
    assert model.eval(batches(X, Y)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_what_is_given_beside_a_compiled_network_goes_before_what_it_brings() -> None:
    network, theirs = compiled(), doubling(keras.Sequential)
    history = Model(network, "mae", keras.optimizers.SGD(0.2)).train(2, batches(X, Y), verbose=0)
    theirs.compile(keras.optimizers.SGD(0.2), "mae")
    keras_history = theirs.fit(X, Y, batch_size=6, epochs=2, shuffle=False, verbose=0)
    assert_same(network, history, (keras_history.history["loss"], theirs.get_weights()))


@pytest.mark.slow
def test_a_network_compiled_for_its_added_losses_brings_its_optimizer() -> None:
    network = autoencoder()
    network.compile(keras.optimizers.SGD(0.05))
    history = Model(network).train(2, batches(X), verbose=0)
    assert_same(network, history, in_keras(autoencoder(), None, X))


class Pairs(keras.Model):
    """Learns which of two parts of a row belong together: its labels are the diagonal."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = keras.layers.Dense(3), keras.layers.Dense(3)

    def call(self, x: Any) -> Any:
        return ops.matmul(self.first(x["first"]), ops.transpose(self.second(x["second"])))

    def compute_loss(self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None, **options: Any) -> Any:
        return super().compute_loss(x, ops.eye(ops.shape(y_pred)[0]), y_pred, sample_weight, **options)


def test_a_compute_loss_that_makes_its_labels_needs_none() -> None:
    rows = {"first": X[:, :2], "second": X[:, 2:]}

    def made() -> keras.Model:
        keras.utils.set_random_seed(0)
        network = Pairs()
        network(rows)
        network.compile(keras.optimizers.SGD(0.01), "mse")
        return network

    options: dict[str, Any] = {"batch_size": 6, "epochs": 2, "shuffle": False, "verbose": 0}
    theirs = made().fit(rows, **options).history["loss"]
    np.testing.assert_allclose(Model(made()).fit(rows, **options)["loss"], theirs, rtol=1e-5)
