"""Plain loss functions in a Model: arguments in Keras's or MindSpore's order, reduced as their library reduces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model, backend, nn
from tests.backends import quick_every

ops = keras.ops
_draw = np.random.default_rng(2)
X = _draw.standard_normal((24, 4)).astype(np.float32)
Y = (X.sum(1) + _draw.standard_normal(24)).astype(np.float32)
C = _draw.integers(0, 3, 24).astype(np.int32)
W = _draw.uniform(0.0, 2.0, 24).astype(np.float32)


def pinball(y_true: Any, y_pred: Any) -> Any:
    error = y_true - y_pred
    return ops.mean(ops.maximum(0.9 * error, -0.1 * error))


def swapped_pinball(logits: Any, labels: Any) -> Any:
    return pinball(ops.expand_dims(labels, -1), logits)


def pinball_of_each(a: Any, b: Any) -> Any:
    """The same without names that say anything, and without a mean: Keras's order and Keras's reduction."""
    return ops.maximum(0.9 * (a - b), -0.1 * (a - b))


def focal(target: Any, x: Any, gamma: float = 2.0) -> Any:
    chosen = ops.sum(ops.one_hot(ops.cast(target, "int32"), 3) * x, axis=-1)
    return -((1.0 - chosen) ** gamma) * ops.log(chosen + 1e-7)


def one_output(activation: str | None = None, units: int = 1) -> Any:
    keras.utils.set_random_seed(4)
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((4,)), layers.Dense(5, activation="tanh"), layers.Dense(units, activation=activation)]
    )


def two_outputs() -> Any:
    keras.utils.set_random_seed(4)
    entry = keras.Input((4,))
    a, b = keras.layers.Dense(1, name="a")(entry), keras.layers.Dense(3, activation="softmax", name="b")(entry)
    return keras.Model(entry, {"a": a, "b": b})


def batches(*columns: Any) -> list[Any]:
    parts = [slice(start, start + 6) for start in range(0, 24, 6)]
    return [keras.tree.map_structure(lambda column, part=part: column[part], columns) for part in parts]


def in_keras(make: Callable[[], Any], loss: Any, label: Any, **weights: Any) -> tuple[list[float], list[np.ndarray]]:
    network = make()
    network.compile(keras.optimizers.SGD(0.1), loss)
    keras_history = network.fit(X, label, batch_size=6, epochs=2, shuffle=False, verbose=0, **weights)
    return keras_history.history["loss"], network.get_weights()


def assert_as_in_keras(make: Callable[[], Any], loss: Any, label: Any, feed: dict[str, Any]) -> None:
    network = make()
    history = Model(network, loss, keras.optimizers.SGD(0.1)).train(2, batches(X, label), **feed)
    losses, weights = in_keras(make, loss, label)
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-6)
    for mine, theirs in zip(network.get_weights(), weights, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


@quick_every(8)
@pytest.mark.parametrize("loss", [pinball, pinball_of_each])
def test_a_function_for_a_keras_network_gets_its_arguments_as_in_keras(loss: Any, feed: dict[str, Any]) -> None:
    assert_as_in_keras(one_output, loss, Y, feed)


@pytest.mark.slow
def test_a_focal_loss_of_each_sample_is_averaged_as_in_keras(feed: dict[str, Any]) -> None:
    assert_as_in_keras(lambda: one_output("softmax", 3), focal, C, feed)


@pytest.mark.slow
def test_functions_in_a_dict_of_losses_get_their_arguments_as_in_keras(feed: dict[str, Any]) -> None:
    assert_as_in_keras(two_outputs, {"a": pinball, "b": focal}, {"a": Y, "b": C}, feed)


@pytest.mark.slow
def test_functions_in_a_list_of_losses_get_their_arguments_as_in_keras() -> None:
    def listed() -> Any:
        network = two_outputs()
        return keras.Model(network.inputs, [network.outputs[0], network.outputs[1]])

    assert_as_in_keras(listed, [pinball_of_each, focal], [Y, C], {"verbose": 0})


@pytest.mark.slow
def test_mindspores_names_get_mindspores_order_with_a_keras_network(feed: dict[str, Any]) -> None:
    network = one_output()
    history = Model(network, swapped_pinball, keras.optimizers.SGD(0.1)).train(2, batches(X, Y), **feed)
    losses, weights = in_keras(one_output, pinball, Y)
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-6)
    np.testing.assert_allclose(network.get_weights()[0], weights[0], atol=1e-6)


def cell() -> Any:
    return nn.Dense(4, 1, weight_init="ones", bias_init="zeros")


@pytest.mark.parametrize(
    "loss", [lambda logits, labels: ops.mean(2 * labels - logits), lambda a, b: ops.mean(2 * b - a)]
)
def test_a_function_for_a_cell_gets_the_output_first(loss: Any) -> None:
    net = cell()
    label = Y[:, None]
    history = Model(net, loss, nn.SGD(net.trainable_params(), 0.0)).train(1, [(X, label)], verbose=0)
    expected = float(np.mean(2 * label - X.sum(1, keepdims=True)))
    assert history["loss"] == [pytest.approx(expected, abs=1e-5)]


def test_keras_names_get_keras_order_with_a_cell_too() -> None:
    net = cell()
    history = Model(net, pinball, nn.SGD(net.trainable_params(), 0.0)).train(1, [(X, Y[:, None])], verbose=0)
    expected = backend.to_numpy(pinball(Y[:, None], X.sum(1, keepdims=True)))
    assert history["loss"] == [pytest.approx(float(expected), abs=1e-5)]


@pytest.mark.slow
def test_samples_are_weighed_in_a_function_as_in_keras() -> None:
    network = one_output()
    model = Model(network, pinball_of_each, keras.optimizers.SGD(0.1), sample_weight=True)
    history = model.train(2, batches(X, Y, W), verbose=0)
    losses, _ = in_keras(one_output, pinball_of_each, Y, sample_weight=W)
    np.testing.assert_allclose(history["loss"], losses, rtol=1e-6)


@pytest.mark.slow
def test_the_evaluated_loss_of_a_function_is_that_of_keras() -> None:
    network = one_output()
    result = Model(network, pinball, keras.optimizers.SGD(0.1), metrics=["mae"]).fit(
        1, batches(X, Y), batches(X[:9], Y[:9])[:2], verbose=0
    )
    theirs = one_output()
    theirs.compile(keras.optimizers.SGD(0.1), pinball, metrics=["mae"])
    keras_history = theirs.fit(
        X, Y, batch_size=6, shuffle=False, verbose=0, validation_data=(X[:9], Y[:9]), validation_batch_size=6
    ).history
    np.testing.assert_allclose(result["val_loss"], keras_history["val_loss"], rtol=1e-6)
    np.testing.assert_allclose(result["val_mae"], keras_history["val_mae"], rtol=1e-6)


def test_names_that_contradict_each_other_are_an_error_when_the_model_is_made() -> None:
    with pytest.raises(TypeError, match="both mean the label"):
        Model(one_output(), lambda labels, targets: ops.mean(labels - targets), "sgd")
