"""Losses and metrics of networks whose outputs are dicts, also nested ones, as `keras.Model.fit` reports them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model
from tests.backends import quick_every
from tests.train.own_step import OwnStep

layers = keras.layers
X = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
Y = X.sum(1, keepdims=True)
LABELS = {"a": (Y > 0).astype(np.float32), "b": {"c": Y, "d": 2 * Y}}


def nested() -> keras.Model:
    keras.utils.set_random_seed(0)
    entry = keras.Input((4,))
    c, d = layers.Dense(1)(entry), layers.Dense(1)(entry)
    return keras.Model(entry, {"a": layers.Dense(1, "sigmoid")(entry), "b": {"c": c, "d": d}})


class Subclassed(keras.Model):
    """Returns a dict, whose keys Keras sees with the first batch."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = layers.Dense(1), layers.Dense(1)

    def build(self, shape: Any) -> None:
        self.first.build(shape)
        self.second.build(shape)

    def call(self, x: Any) -> Any:
        return {"b": self.first(x), "a": self.second(x)}


def subclassed() -> keras.Model:
    keras.utils.set_random_seed(0)
    network = Subclassed()
    network.build((None, 4))
    return network


def results(model: Any, labels: Any) -> tuple[dict[str, list[float]], dict[str, float], list[float]]:
    """Return the history of a fit, and what `evaluate` returns as a dict and as a list."""
    options = {"batch_size": 4, "verbose": 0}
    history = model.fit(X, labels, epochs=2, shuffle=False, validation_data=(X, labels), **options).history
    return history, model.evaluate(X, labels, return_dict=True, **options), model.evaluate(X, labels, **options)


NESTED = {"a": "bce", "b": {"c": "mse", "d": "mae"}}


@quick_every(8)
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize(
    ("make", "labels", "loss", "metrics", "weights"),
    [
        (nested, LABELS, NESTED, None, None),
        (nested, LABELS, NESTED, None, {"a": 1.0, "b": {"c": 2.0, "d": 0.5}}),
        (nested, LABELS, "mse", None, None),
        (subclassed, {"a": Y, "b": 2 * Y}, "mae", {"b": ["mse"], "a": ["mae"]}, None),
    ],
    ids=["nested", "weighted", "one loss", "subclassed"],
)
def test_it_is_what_keras_reports(make: Any, labels: Any, loss: Any, metrics: Any, weights: Any, level: Any) -> None:
    theirs = make()
    theirs.compile(keras.optimizers.SGD(0.01), loss, metrics=metrics, loss_weights=weights)
    ours = Model(make(), loss, keras.optimizers.SGD(0.01), metrics, amp_level=level, loss_weights=weights)
    expected, actual = results(theirs, labels), results(ours, labels)
    tolerance = 1e-5 if level == "O0" else 5e-3
    for mine, other in zip(actual[:2], expected[:2], strict=True):
        assert set(other) == set(mine) - {"skipped_steps", "loss_scale"}
        for name, values in other.items():
            np.testing.assert_allclose(mine[name], values, rtol=tolerance, err_msg=name)
    np.testing.assert_allclose(actual[2], expected[2], rtol=tolerance)


def test_several_losses_of_one_output_of_which_keras_uses_the_first_are_refused() -> None:
    network = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    model = Model(network, ["mse", "mae"], keras.optimizers.SGD(0.01), ["mae"])
    with pytest.raises(ValueError, match=r"a loss for each output.*got '?2 losses'?\. Write loss_fn=lambda"):
        model.fit(X, Y, verbose=0)


@pytest.mark.parametrize("run", ["fit", "evaluate"])
def test_a_metric_without_an_output_is_refused(run: str) -> None:
    labels = {"a": Y, "b": -Y}
    model = Model(subclassed(), "mse", keras.optimizers.SGD(0.01), [keras.metrics.mean_squared_error])
    with pytest.raises(ValueError, match=r"must belong to one of the network's outputs, \['[ab]', '[ab]'\]") as info:
        getattr(model, run)(X, labels, verbose=0)
    assert "a list of metrics for each, as metrics={" in str(info.value)


def test_lists_say_the_output_of_each_metric() -> None:
    model = Model(subclassed(), "mse", keras.optimizers.SGD(0.01), {"a": [], "b": ["mse"]})
    assert "b_mse" in model.fit(X, {"a": Y, "b": -Y}, verbose=0)


def test_a_metric_object_of_the_users_may_take_all_outputs() -> None:
    class Distance(keras.metrics.Mean):
        def update_state(self, labels: Any, outputs: Any, sample_weight: Any = None) -> None:
            super().update_state(keras.ops.abs(outputs["a"] - outputs["b"]))

    model = Model(subclassed(), "mse", keras.optimizers.SGD(0.01), [Distance("distance")])
    assert np.isfinite(model.fit(X, {"a": Y, "b": -Y}, verbose=0)["distance"]).all()


class TwoOutputs(OwnStep, keras.Model):
    """Trains by a step of its own, which Keras's loop runs."""


@pytest.mark.parametrize("as_list", [pytest.param(False, marks=pytest.mark.slow), True], ids=["tuples", "lists"])
def test_batches_whose_columns_are_lists_train_a_network_with_a_step_of_its_own(as_list: bool) -> None:
    def made() -> keras.Model:
        keras.utils.set_random_seed(0)
        entries = [keras.Input((4,)), keras.Input((1,))]
        outputs = [layers.Dense(1)(entries[0]), layers.Dense(1)(layers.Concatenate()(entries))]
        network = TwoOutputs(entries, outputs)
        network.compile("sgd", ["mse", "mae"])
        return network

    kind: Any = list if as_list else tuple
    expected = made().fit((X, Y), (Y, 2 * Y), batch_size=8, shuffle=False, verbose=0).history["loss"]
    data = [(kind((X[rows], Y[rows])), kind((Y[rows], 2 * Y[rows]))) for rows in (slice(8), slice(8, 16))]
    assert Model(made()).train(1, data, verbose=0)["loss"] == pytest.approx(expected, rel=1e-6)
