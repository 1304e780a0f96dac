"""Keras losses of one output and of several, weighted, with sample weights and the losses that layers add."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, backend, nn
from mixtrain.step.output_losses import loss_caller
from tests.train.planted import Trace

layers = keras.layers
_draw = np.random.default_rng(3)
X = _draw.standard_normal((8, 4)).astype(np.float32)
Y = _draw.standard_normal((8, 1)).astype(np.float32)
C = _draw.integers(0, 3, 8).astype(np.int32)
W = _draw.uniform(0.0, 2.0, 8).astype(np.float32)
BY_NAME = {"a": "mse", "b": "sparse_categorical_crossentropy"}


def two_outputs(form: str = "list", **options: Any) -> Any:
    keras.utils.set_random_seed(1)
    entry = keras.Input((4,))
    hidden = layers.Dense(5, activation="tanh", **options)(entry)
    a, b = layers.Dense(1, name="a")(hidden), layers.Dense(3, activation="softmax", name="b")(hidden)
    return keras.Model(entry, {"a": a, "b": b} if form == "dict" else [a, b])


def two_steps(net: Any, label: Any, sample_weight: Any = None, **options: Any) -> list[float]:
    """Return the losses of two epochs of one step."""
    batch = (X, label) if sample_weight is None else (X, label, sample_weight)
    given = options.pop("optimizer", keras.optimizers.SGD(0.1))
    model = Model(net, options.pop("loss"), given, sample_weight=sample_weight is not None, **options)
    return model.train(2, [batch], verbose=0)["loss"]  # type: ignore[no-any-return]


def two_steps_in_keras(net: Any, label: Any, sample_weight: Any = None, **options: Any) -> list[float]:
    net.compile(keras.optimizers.SGD(0.1), **options)
    keras_history = net.fit(X, label, batch_size=8, epochs=2, shuffle=False, verbose=0, sample_weight=sample_weight)
    return keras_history.history["loss"]  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "loss", "label", "weights", "sample_weight"),
    [
        ("list", BY_NAME, {"a": Y, "b": C}, None, None),
        ("list", list(BY_NAME.values()), [Y, C], [0.5, 2.0], None),
        ("dict", BY_NAME, {"a": Y, "b": C}, {"a": 0.25, "b": 4.0}, W),
        ("dict", "mse", {"a": Y, "b": np.eye(3, dtype=np.float32)[C]}, None, None),
    ],
    ids=["by-name", "list-weighted", "dict-sample-weight", "one-for-all"],
)
def test_losses_of_several_outputs_are_those_of_keras(
    form: str, loss: Any, label: Any, weights: Any, sample_weight: Any
) -> None:
    ours = two_steps(two_outputs(form), label, sample_weight, loss=loss, loss_weights=weights)
    theirs = two_steps_in_keras(two_outputs(form), label, sample_weight, loss=loss, loss_weights=weights)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.slow
def test_sample_weights_by_output_are_those_of_keras() -> None:
    label, weights = {"a": Y, "b": C}, {"a": W, "b": W[::-1].copy()}
    ours = two_steps(two_outputs("dict"), label, weights, loss=BY_NAME)
    np.testing.assert_allclose(ours, two_steps_in_keras(two_outputs("dict"), label, weights, loss=BY_NAME), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [["mse", None], {"a": "mse"}], ids=["list", "by-name"])
def test_one_label_is_that_of_the_only_output_with_a_loss(loss: Any) -> None:
    form = "list" if isinstance(loss, list) else "dict"
    ours, theirs = two_outputs(form), two_outputs(form)
    for net in (ours, theirs):
        net.get_layer("b").trainable = False  # It has no gradient, of which Keras warns.
    label = Y if form == "list" else {"a": Y, "b": C}
    expected = two_steps_in_keras(theirs, label, loss=loss)
    np.testing.assert_allclose(two_steps(ours, Y, loss=loss), expected, rtol=1e-5)


class Penalty(keras.layers.Layer):
    """Adds a loss for each of its inputs, which it returns."""

    def call(self, x: Any) -> Any:
        self.add_loss(keras.ops.square(x) * 0.01)
        return x


def penalised() -> Any:
    keras.utils.set_random_seed(1)
    return keras.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(5, kernel_regularizer=keras.regularizers.L2(0.1), activity_regularizer="l1"),
            Penalty(),
            layers.Dense(1, bias_regularizer="l2"),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("manager", [None, FixedLossScaleManager(2.0**10)], ids=["plain", "scaled"])
def test_losses_that_layers_add_are_counted_and_scaled_as_in_keras(manager: Any) -> None:
    ours, theirs = penalised(), penalised()
    result = two_steps(ours, Y, loss="mse", loss_scale_manager=manager)
    np.testing.assert_allclose(result, two_steps_in_keras(theirs, Y, loss="mse"), rtol=1e-5)
    for mine, keras_weight in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_allclose(mine, keras_weight, atol=1e-6)


class Holding(nn.Cell):
    """A cell that holds one regularized Keras layer under two names."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.first = layer
        self.again = layer

    def construct(self, x: Any) -> Any:
        return self.again(self.first(x))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_the_regulariser_of_a_keras_layer_in_a_cell_counts_once_and_in_float32(level: Any) -> None:
    penalty = keras.regularizers.L2(2.0**14)
    layer = layers.Dense(4, use_bias=False, kernel_initializer="ones", kernel_regularizer=penalty)
    layer.build((None, 4))
    cell = Holding(layer)
    model = Model(cell, nn.MSELoss(), keras.optimizers.SGD(0.0), amp_level=level, loss_scale_manager=None)
    zeros = np.zeros((2, 4), np.float32)
    assert model.train(1, [(zeros, zeros)], verbose=0)["loss"] == [2.0**18]  # beyond float16


class Nested(nn.Cell):
    """A cell that holds a regularized Keras model, and beside it the layer inside that model."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.inner = model.layers[0]
        self.model = Whole(model)

    def construct(self, x: Any) -> Any:
        return self.model(x)


class Whole(nn.Cell):
    """A cell that holds a Keras model."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.held = model

    def construct(self, x: Any) -> Any:
        return self.held(x)


@pytest.mark.slow
def test_a_layer_held_by_a_cell_and_by_a_model_in_it_adds_its_losses_once_and_scaled_once() -> None:
    theirs = penalised()
    expected = two_steps_in_keras(theirs, Y, loss="mse")
    for manager in (None, FixedLossScaleManager(2.0**10)):
        model = penalised()
        net = Nested(model)
        losses = two_steps(net, Y, loss="mse", loss_scale_manager=manager)
        np.testing.assert_allclose(losses, expected, rtol=1e-5)
        for mine, keras_weight in zip(model.get_weights(), theirs.get_weights(), strict=True):
            np.testing.assert_allclose(mine, keras_weight, atol=1e-6)


@pytest.mark.slow
def test_the_loss_of_a_masked_sequence_is_that_of_keras_at_float32_and_half() -> None:
    def make() -> Any:
        keras.utils.set_random_seed(1)
        return keras.Sequential(
            [keras.Input((4,), dtype="int32"), layers.Embedding(5, 3, mask_zero=True), layers.Dense(1)]
        )

    ids, label = np.array([[1, 2, 0, 0], [3, 0, 0, 0]], np.int32), np.ones((2, 4, 1), np.float32)
    net = make()
    net.compile("sgd", "mse")
    expected = net.evaluate(ids, label, verbose=0)
    for level, near in (("O0", 1e-6), ("O3", 1e-3)):
        optimizer = keras.optimizers.SGD(0.1)
        model = Model(make(), "mse", optimizer, amp_level=level, loss_scale_manager=None)  # type: ignore[arg-type]
        assert model.train(1, [(ids, label)], verbose=0)["loss"] == [pytest.approx(expected, rel=near)]


@pytest.mark.slow
def test_evaluation_weighs_and_adds_losses_as_keras_does() -> None:
    net, theirs = penalised(), penalised()
    theirs.compile("sgd", "mse")
    model = Model(net, "mse", "sgd", metrics=["mse"], sample_weight=True)
    history = model.fit(1, [(X, Y, W)], [(X, Y, W)], verbose=0)
    theirs.set_weights(net.get_weights())
    assert history["val_loss"] == [pytest.approx(theirs.evaluate(X, Y, sample_weight=W, verbose=0), rel=1e-5)]
    assert model.eval([(X, Y)]).keys() == {"loss", "mse"}


def test_labels_without_a_last_axis_fit_a_column_of_predictions() -> None:
    for name in ("mse", keras.losses.mean_squared_error, keras.losses.MeanSquaredError()):
        loss = loss_caller(name)(backend.to_tensor(Y), backend.to_tensor(np.zeros(8, np.float32)))
        assert float(loss) == pytest.approx(float(np.mean(Y**2)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Model. in epoch .* steps were skipped although")
def test_an_overflow_of_one_output_skips_the_step() -> None:
    trace = Trace()
    huge = {"a": Y, "b": C}, {"a": np.full_like(Y, 3e38), "b": C}
    model = Model(two_outputs(), {**BY_NAME, "a": "mae"}, "adam", loss_scale_manager=DynamicLossScaleManager(2**10))
    model.train(1, [(X, huge[0]), (X * np.float32(np.inf), huge[1])], callbacks=trace, verbose=0)
    assert trace.overflows == [False, True]


def test_three_columns_are_refused_unless_asked_for_and_two_when_they_are() -> None:
    with pytest.raises(ValueError, match=r"must have 2 columns.*got 3.*sample_weight=True"):
        Model(penalised(), "mse", "sgd").train(1, [(X, Y, W)], verbose=0)
    with pytest.raises(ValueError, match="must have 3 columns, data, label and sample_weight; got 2"):
        Model(penalised(), "mse", "sgd", sample_weight=True).train(1, [(X, Y)], verbose=0)


@pytest.mark.parametrize(
    ("loss", "options", "label", "message"),
    [
        ({"a": "mse", "c": "mse"}, {}, {"a": Y, "b": C}, r"loss_fn must name outputs .*'a', 'b'.*got \['c'\]"),
        (["mse"], {}, [Y, C], "there must be a loss_fn for output 'a'"),
        (BY_NAME, {"loss_weights": {"x": 1.0}}, {"a": Y, "b": C}, r"loss_weights must name outputs"),
        (BY_NAME, {}, {"a": Y}, "there must be a label for output 'b'"),
    ],
)
def test_losses_that_do_not_fit_the_outputs_are_refused_by_name(
    loss: Any, options: Any, label: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        two_steps(two_outputs(), label, loss=loss, **options)


def test_sample_weights_need_a_keras_loss_and_options_a_loss() -> None:
    with pytest.raises(TypeError, match="sample_weight needs a Keras loss; got MSELoss"):
        Model(penalised(), nn.MSELoss(), "sgd", sample_weight=True).train(1, [(X, Y, W)], verbose=0)
    with pytest.raises(ValueError, match="loss_weights needs a loss_fn"):
        Model(penalised(), loss_weights=2.0)
    with pytest.raises(TypeError, match="loss_weights must be a number"):
        Model(penalised(), "mse", loss_weights="2")


@pytest.mark.slow
def test_metrics_of_each_output_are_those_of_keras() -> None:
    expected = {"a": ["mae"], "b": ["accuracy"]}
    theirs = two_outputs()
    theirs.compile("sgd", BY_NAME, metrics=expected)
    values = theirs.evaluate(X, {"a": Y, "b": C}, verbose=0, return_dict=True)
    for metrics in (expected, [["mae"], ["accuracy"]]):
        result = Model(two_outputs(), BY_NAME, "sgd", metrics=metrics).eval([(X, {"a": Y, "b": C})])
        assert result == pytest.approx(values)
    with pytest.raises(ValueError, match="a list of lists must have one for each of the 2 outputs"):
        Model(two_outputs(), BY_NAME, "sgd", metrics=[["mae"]])


def test_accuracy_by_name_is_chosen_by_shape_as_in_keras() -> None:
    net = keras.Sequential([keras.Input((4,)), layers.Dense(1, activation="sigmoid")])
    label = (Y > 0).astype(np.float32)
    net.compile("sgd", "binary_crossentropy", metrics=["accuracy"])
    expected = net.evaluate(X, label, verbose=0, return_dict=True)
    result = Model(net, "binary_crossentropy", "sgd", metrics=["accuracy"]).eval([(X, label)])
    assert result == pytest.approx(expected)
