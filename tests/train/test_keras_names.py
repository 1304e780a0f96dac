"""A Model has the methods and attributes of a compiled `keras.Model`, with Keras's results."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, backend, execution
from tests.backends import ON_TENSORFLOW, quick_every

X = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
Y = X[:, :1] * 2
KIND = (X[:, 0] > 0).astype(np.int32)


def network(outputs: int = 1) -> keras.Model:
    keras.utils.set_random_seed(0)
    layers = [keras.Input((4,)), keras.layers.Dense(3, "tanh", name="body"), keras.layers.Dense(outputs, name="head")]
    return keras.Sequential(layers, name="net")


def compiled(**options: Any) -> keras.Model:
    theirs = network()
    theirs.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"], **options)
    return theirs


@quick_every(2, 1)
@pytest.mark.parametrize("weights", [None, np.linspace(0, 1, 16, dtype=np.float32)], ids=["plain", "weighted"])
def test_batches_are_trained_tested_and_predicted_as_by_keras(weights: np.ndarray | None) -> None:
    theirs, ours = compiled(), Model(compiled())
    for step in range(3):
        expected = theirs.train_on_batch(X, Y, sample_weight=weights)
        assert ours.train_on_batch(X, Y, sample_weight=weights) == pytest.approx(expected, rel=1e-5), step
    expected = theirs.test_on_batch(X, Y, sample_weight=weights)
    assert ours.test_on_batch(X, Y, sample_weight=weights) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(ours.predict_on_batch(X), theirs.predict_on_batch(X), rtol=1e-5)
    assert isinstance(ours.predict_on_batch(X), np.ndarray)


def test_a_batch_may_have_class_weights_and_return_a_dict() -> None:
    loss, optimizer = keras.losses.SparseCategoricalCrossentropy(from_logits=True), "sgd"
    theirs = network(2)
    theirs.compile(optimizer, loss)
    ours = Model(network(2), loss, optimizer)
    expected = theirs.train_on_batch(X, KIND, class_weight={0: 1.0, 1: 3.0}, return_dict=True)
    assert ours.train_on_batch(X, KIND, class_weight={0: 1.0, 1: 3.0}, return_dict=True) == pytest.approx(expected)
    scaled = Model(network(2), loss, optimizer, amp_level="O2")
    assert scaled.train_on_batch(X, KIND, return_dict=True)["skipped_steps"] in (0, 1)
    assert isinstance(scaled.train_on_batch(X, KIND), float)


def test_attributes_of_the_network_are_those_of_the_model() -> None:
    theirs, ours = compiled(), Model(network(), "mse", "sgd", metrics=["mae"])
    assert [each.path for each in ours.trainable_variables] == [each.path for each in theirs.trainable_variables]
    assert ours.get_layer("head").name == "head" and ours.name == "net" and ours.count_params() == 19
    assert (ours.input_shape, ours.output_shape) == (theirs.input_shape, theirs.output_shape)
    assert ours.metrics_names == ["loss", "mae"] and len(ours.weights) == 4
    assert ours.losses == [] and ours.compute_output_shape((None, 4)) == (None, 1)
    ours.reset_metrics()
    np.testing.assert_allclose(keras.ops.convert_to_numpy(ours(X)), keras.ops.convert_to_numpy(theirs(X)), rtol=1e-6)
    with pytest.raises(AttributeError, match="'Model' object has no attribute 'no_such_name'"):
        ours.no_such_name  # noqa: B018
    with pytest.raises(AttributeError, match="get_layer"):
        Model(mixtrain.nn.Dense(2, 1)).get_layer  # noqa: B018


def test_a_model_that_is_called_computes_by_its_plan() -> None:
    ours = Model(network(), amp_level="O2", cast_model_type="bfloat16")
    assert keras.backend.standardize_dtype(ours.get_layer("body")(X).dtype) == "bfloat16"
    assert keras.backend.standardize_dtype(ours(X).dtype) == "float32"


def test_compile_gives_another_loss_and_optimizer_and_keeps_the_precision() -> None:
    ours = Model(network(), "mae", "adam", amp_level="O2", cast_model_type="bfloat16")
    ours.compile(keras.optimizers.SGD(0.1), loss="mse", metrics=["mae"], steps_per_execution=4)
    assert ours.precision_report().level == "O2" and type(ours.optimizer) is keras.optimizers.SGD
    expected = compiled().fit(X, Y, batch_size=8, shuffle=False, verbose=0).history
    history = ours.fit(X, Y, batch_size=8, shuffle=False, verbose=0).history
    assert set(history) == set(expected) and history["loss"] == pytest.approx(expected["loss"], rel=2e-2)


class Noting(keras.layers.Layer):
    """Notes whether its inputs have values, and how the step around it runs; JAX traces what it differentiates."""

    seen: list[tuple[bool, str]] = []

    def call(self, x: Any) -> Any:
        eager = not backend.is_tracing() if ON_TENSORFLOW else not execution.current.graph_mode
        self.seen.append((eager, execution.current.jit_level))
        return x


@quick_every(3, 1)
@pytest.mark.parametrize(("options", "how"), [
    ({}, (False, "auto")), ({"run_eagerly": True}, (True, "auto")), ({"jit_compile": True}, (False, "O1")),
    ({"jit_compile": False}, (False, "O0")),
])
def test_compile_says_how_steps_run_and_what_they_compute_stays(options: dict[str, Any], how: tuple[bool, str]) -> None:
    expected = compiled().fit(X, Y, batch_size=8, shuffle=False, verbose=0).history
    made = network()
    inputs = keras.Input(X.shape[1:])
    ours = Model(keras.Model(inputs, Noting()(made(inputs))), "mse", "adam")
    ours.compile(keras.optimizers.SGD(0.1), "mse", metrics=["mae"], **options)
    for run in (
        lambda: ours.fit(X, Y, batch_size=8, shuffle=False, verbose=0), lambda: ours.evaluate(X, Y, verbose=0),
        lambda: ours.predict(X, verbose=0),
    ):
        Noting.seen.clear()
        result = run()
        assert Noting.seen[-1] == how
        if isinstance(result, Mapping):
            assert result["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    assert (execution.current.graph_mode, execution.current.jit_level) == (True, "auto")


@pytest.mark.parametrize(("option", "value"), [("run_eagerly", 1), ("jit_compile", "yes")])
def test_bad_ways_to_run_are_refused(option: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=f"Model.compile: {option} must be"):
        Model(network(), "mse", "sgd").compile("sgd", "mse", **{option: value})


def test_loss_is_a_name_of_loss_fn() -> None:
    assert Model(network(), loss="mse", optimizer="sgd").evaluate(X, Y, verbose=0) > 0
    with pytest.raises(ValueError, match="loss is Keras's name of loss_fn"):
        Model(network(), "mse", loss="mse")


def test_an_exported_network_is_the_one_in_float32(tmp_path: pathlib.Path) -> None:
    tf = pytest.importorskip("tensorflow")
    ours = Model(network(), "mse", "sgd", amp_level="O2", cast_model_type="bfloat16")
    ours.train_on_batch(X, Y)
    ours.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    expected = network()
    expected.set_weights(ours.get_weights())
    np.testing.assert_allclose(loaded.serve(X).numpy(), expected.predict(X, verbose=0), rtol=1e-5)
