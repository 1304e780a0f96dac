"""Metrics as Keras's `compile` takes them: names, outputs, weights, masks; and evaluation without any."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Callback, Model, backend, nn
from mixtrain.train.keras_metrics import CompileMetric, DeviceMetrics
from mixtrain.train.model_metrics import model_metrics
from tests.backends import ON_KERAS_3_10, on_jax_only_some

layers = keras.layers
ROWS, BATCH = 10, 4  # the last batch holds 2
_draw = np.random.default_rng(3)
X = _draw.standard_normal((ROWS, 4)).astype(np.float32)
Y = _draw.standard_normal((ROWS, 1)).astype(np.float32)
C = _draw.integers(0, 3, ROWS).astype(np.int32)
W = _draw.uniform(0.0, 2.0, ROWS).astype(np.float32)
ONE_HOT = np.eye(3, dtype=np.float32)[C]
LOSSES = {"a": "mse", "b": "sparse_categorical_crossentropy"}


def batches(*columns: Any) -> list[Any]:
    """Return the columns cut into batches; columns that are None are left out."""
    given = tuple(column for column in columns if column is not None)
    return [
        keras.tree.map_structure(lambda values: values[start : start + BATCH], given)  # noqa: B023
        for start in range(0, ROWS, BATCH)
    ]


def two_outputs(form: str) -> Any:
    keras.utils.set_random_seed(1)
    entry = keras.Input((4,))
    hidden = layers.Dense(5, activation="tanh")(entry)
    a, b = layers.Dense(1, name="a")(hidden), layers.Dense(3, activation="softmax", name="b")(hidden)
    return keras.Model(entry, {"a": a, "b": b} if form == "dict" else [a, b])


def one_output(units: int, activation: str) -> Any:
    keras.utils.set_random_seed(1)
    return keras.Sequential([keras.Input((4,)), layers.Dense(units, activation=activation)])


def in_keras(net: Any, data: Any, label: Any, weight: Any, **options: Any) -> dict[str, Any]:
    """Return what Keras's `compile` and `evaluate` give."""
    net.compile("sgd", **options)
    return net.evaluate(data, label, sample_weight=weight, batch_size=BATCH, verbose=0, return_dict=True)


def by_us(net: Any, data: Any, label: Any, weight: Any, **options: Any) -> dict[str, Any]:
    """Return the metrics of a `Model`, and its loss as a validation reports it."""
    model = Model(net, options.pop("loss"), keras.optimizers.SGD(0.0), sample_weight=weight is not None, **options)
    history = model.fit(1, batches(data, label, weight)[:1], batches(data, label, weight), verbose=0)
    return {name.removeprefix("val_"): values[0] for name, values in history.items() if name.startswith("val_")}


BY_OUTPUT: list[tuple[str, Any, Any, Any]] = [
    ("dict", {"a": ["mae"], "b": ["accuracy"]}, {"a": ["mae"], "b": "acc"}, W),
    ("list", ["mae", ["acc", "sparse_top_k_categorical_accuracy"]], None, None),
    ("list", None, [["mse"], ["accuracy"]], W),
]


@pytest.mark.slow
@pytest.mark.parametrize(("form", "metrics", "weighted", "weight"), on_jax_only_some(BY_OUTPUT, [0, 2]))
def test_metrics_of_each_output_have_keras_names_and_values(
    form: str, metrics: Any, weighted: Any, weight: Any
) -> None:
    label = {"a": Y, "b": C} if form == "dict" else [Y, C]
    options = {"loss": LOSSES, "metrics": metrics, "weighted_metrics": weighted}
    expected = in_keras(two_outputs(form), X, label, weight, **options)
    result = by_us(two_outputs(form), X, label, weight, **options)
    # Keras forgets to weigh the losses of the outputs by the rows of a batch where TensorFlow leaves their number open.
    of_outputs = [result.pop(f"{name}_loss") for name in "ab"]
    assert sum(of_outputs) == pytest.approx(result["loss"], rel=1e-6)
    assert result == pytest.approx({name: value for name, value in expected.items() if name in result}, rel=1e-5)
    assert set(expected) - set(result) == {"a_loss", "b_loss"}


def keyed(keys: str, form: str = "dict") -> Any:
    """Return a model whose outputs are a list, or a dict with keys that are not the names of its layers."""
    keras.utils.set_random_seed(1)
    entry = keras.Input((4,))
    if form == "list":
        return keras.Model(entry, [layers.Dense(1, name=key)(entry) for key in keys])
    return keras.Model(entry, {key: layers.Dense(1, name=f"layer_{key}")(entry) for key in keys})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "metrics"), [("ba", {"a": ["mae", "mse"], "b": "mse"}), ("a", {"a": "mae"})], ids=["two", "one"]
)
@pytest.mark.skipif(ON_KERAS_3_10, reason="Keras before 3.12 refuses metrics by such keys")
def test_metrics_by_the_keys_of_outputs_have_keras_names_order_and_values(keys: str, metrics: Any) -> None:
    label, loss = {key: Y[:8] for key in keys}, dict.fromkeys(keys, "mae")
    theirs = keyed(keys)
    theirs.compile("sgd", loss, metrics=metrics)
    ours = Model(keyed(keys), loss, "sgd", metrics=metrics)
    for values in ({}, {"return_dict": True}):
        expected = theirs.evaluate(X[:8], label, batch_size=BATCH, verbose=0, **values)
        assert ours.evaluate(X[:8], label, batch_size=BATCH, verbose=0, **values) == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "losses"), [("list", "ab"), ("dict", "ba"), ("dict", "ab"), ("dict", "")])
def test_evaluate_lists_the_losses_of_outputs_in_the_order_of_keras(form: str, losses: str) -> None:
    loss: Any = {key: {"a": "mae", "b": "mse"}[key] for key in losses} or "mae"
    label = [Y[:8], Y[:8]] if form == "list" else {"a": Y[:8], "b": Y[:8]}
    theirs = keyed("ba", form)
    theirs.compile("sgd", loss)
    expected = theirs.evaluate(X[:8], label, batch_size=BATCH, verbose=0)
    assert Model(keyed("ba", form), loss, "sgd").evaluate(X[:8], label, batch_size=BATCH, verbose=0) == pytest.approx(
        expected, rel=1e-5
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("units", "activation", "loss", "label", "metrics"),
    [
        (1, "sigmoid", "binary_crossentropy", (Y > 0).astype(np.float32), ["accuracy", "precision", "mse"]),
        (3, "softmax", "sparse_categorical_crossentropy", C, {"dense": ["Accuracy"]}),
        (3, "softmax", "categorical_crossentropy", ONE_HOT, ["acc", keras.metrics.AUC(name="area"), "acc"]),
        (3, "softmax", "ce", C, "accuracy"),
        (3, "softmax", "crossentropy", ONE_HOT, [keras.metrics.top_k_categorical_accuracy]),
        (1, "sigmoid", "ce", (Y > 0).astype(np.float32), None),
    ],
    ids=["binary", "sparse", "one-hot", "name-sparse", "name-one-hot", "name-binary"],
)
def test_names_mean_what_they_mean_in_keras_by_the_shapes(
    units: int, activation: str, loss: str, label: Any, metrics: Any
) -> None:
    net = one_output(units, activation)
    ours = {net.layers[0].name: ["Accuracy"]} if isinstance(metrics, dict) else metrics
    theirs = None if ours is None else keras.tree.flatten(ours)
    expected = in_keras(one_output(units, activation), X, label, None, loss=loss, metrics=theirs)
    assert by_us(net, X, label, None, loss=loss, metrics=ours) == pytest.approx(expected, rel=1e-5)


def masked() -> Any:
    keras.utils.set_random_seed(1)
    last = layers.Dense(1, activation="sigmoid")
    return keras.Sequential([keras.Input((3,), dtype="int32"), layers.Embedding(5, 3, mask_zero=True), last])


@pytest.mark.slow
@pytest.mark.parametrize("weight", [None, np.abs(_draw.standard_normal((ROWS, 3))).astype(np.float32)])
def test_masks_count_in_metrics_as_in_keras(weight: Any) -> None:
    ids = _draw.integers(0, 5, (ROWS, 3)).astype(np.int32)
    label = _draw.integers(0, 2, (ROWS, 3, 1)).astype(np.float32)
    results = []
    for evaluated in (in_keras, by_us):
        options = {"metrics": ["accuracy"], "weighted_metrics": ["mae", keras.metrics.BinaryAccuracy()]}
        results.append(evaluated(masked(), ids, label, weight, loss="binary_crossentropy", **options))
    assert results[1] == pytest.approx(results[0], rel=1e-5)
    assert results[0]["accuracy"] != np.mean(label == (masked()(ids) > 0.5))  # without masks it is another


@pytest.mark.slow
def test_a_set_of_names_speaks_as_mindspore_does_and_lists_as_keras_does() -> None:
    net = one_output(3, "softmax")
    data, loss = batches(X, C), "sparse_categorical_crossentropy"
    assert Model(net, loss, "sgd", metrics={"recall"}).eval(data)["recall"].shape == (3,)
    result = Model(net, loss, "sgd", metrics={"acc": nn.Accuracy(), "loss": nn.Loss()}).eval(data)
    assert result.keys() == {"acc", "loss"}
    assert Model(net, loss, "sgd", metrics=["acc"]).eval(data)["acc"] == pytest.approx(result["acc"])
    assert isinstance(model_metrics(net, loss, ["recall"])["recall"], CompileMetric)
    assert not isinstance(model_metrics(net, nn.MSELoss(), ["recall"])["recall"], CompileMetric)


@pytest.mark.slow
def test_fit_without_metrics_gives_the_loss_and_so_does_eval() -> None:
    net = one_output(1, "tanh")
    expected = in_keras(one_output(1, "tanh"), X, Y, None, loss="mse")["loss"]
    history = Model(net, "mse", keras.optimizers.SGD(0.0)).fit(2, batches(X, Y), batches(X, Y), verbose=0)
    assert history["val_loss"] == pytest.approx([expected] * 2, rel=1e-6)
    assert Model(net, "mse").eval(batches(X, Y)) == pytest.approx({"loss": expected}, rel=1e-6)
    cell = nn.Dense(4, 1, weight_init="zeros", has_bias=False)
    by_batch = np.mean([np.mean(label**2) for _, label in batches(X, Y)])  # of MindSpore, batches count the same
    assert Model(cell, nn.MSELoss()).eval(batches(X, Y)) == pytest.approx({"loss": by_batch}, rel=1e-6)


class LooksAtValues(keras.metrics.Metric):
    """A metric that cannot be compiled."""

    def __init__(self) -> None:
        super().__init__(name="looks")
        self.rows = 0

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.rows += int(np.sum(np.asarray(y_true) == np.asarray(y_true)))

    def result(self) -> Any:
        return keras.ops.convert_to_tensor(float(self.rows))


@pytest.mark.slow
def test_a_metric_that_looks_at_values_works_and_counts_every_batch_once() -> None:
    result = Model(one_output(1, "tanh"), "mse", metrics=["mae", LooksAtValues()]).eval(batches(X, Y) * 2)
    assert result["looks"] == 2 * ROWS
    expected = in_keras(one_output(1, "tanh"), X, Y, None, metrics=["mae"], loss="mse")
    assert result["mae"] == pytest.approx(expected["mae"])


class Moments(keras.metrics.Metric):
    """A metric of two results."""

    def __init__(self) -> None:
        super().__init__(name="moments")
        self.sums = self.add_weight(shape=(2,), initializer="zeros", name="sums")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        del sample_weight
        self.sums.assign_add(keras.ops.stack([keras.ops.sum(y_true), keras.ops.sum(y_pred)]))

    def result(self) -> Any:
        return {"truth": self.sums[0], "guess": self.sums[1]}


def test_the_results_of_a_metric_that_returns_a_dict_have_their_own_names() -> None:
    result = Model(one_output(1, "tanh"), "mse", metrics=[Moments()]).evaluate(X, Y, return_dict=True, verbose=0)
    assert result.keys() == {"loss", "truth", "guess"}
    assert result["truth"] == pytest.approx(Y.sum(), rel=1e-5)


def test_functions_and_callable_objects_have_the_names_that_keras_gives_them() -> None:
    def RMSErrorOf(y_true: Any, y_pred: Any) -> Any:  # noqa: N802
        return y_true - y_pred

    class Gap:
        __call__ = staticmethod(RMSErrorOf)

    metrics = [RMSErrorOf, lambda y_true, y_pred: y_true - y_pred, Gap(), "mae"]
    net = one_output(1, "tanh")
    net.compile("sgd", "mse", metrics=metrics)
    net.run_eagerly = True
    expected = net.evaluate(X, Y, verbose=0, return_dict=True)
    assert {"loss", *model_metrics(net, "mse", metrics)} == set(expected)


def test_keras_metrics_are_compiled_after_their_first_batch() -> None:
    seen: list[bool] = []

    class Told(CompileMetric):
        def update(self, *inputs: Any) -> None:
            seen.append(backend.is_symbolic(inputs[0]))
            super().update(*inputs)

    metrics = DeviceMetrics([Told("mae")])
    for start in range(0, 8, 4):
        for _ in range(2):
            ones = keras.ops.ones((4, 1))
            metrics.update(ones, ones * float(start), None, [None])
    assert seen in ([False, True], [False, True, True]), "a backend may trace twice"


def test_a_callback_between_steps_finds_the_metrics_up_to_date() -> None:
    metric, seen = nn.Loss(), []

    class Look(Callback):
        def on_eval_step_end(self, run_context: Any) -> None:
            seen.append(metric.eval())

    Model(one_output(1, "tanh"), "mse", metrics={"loss": metric}).eval(batches(X, Y), callbacks=Look())
    assert len(seen) == 3
    assert len(set(seen)) == 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"weighted_metrics": [[nn.Accuracy()], []]}, TypeError, "each of weighted_metrics must be a Keras metric"),
        ({"weighted_metrics": {"x": ["mae"], "y": []}}, ValueError, "weighted_metrics must be a list for the outputs"),
        ({"metrics": ["mae"]}, ValueError, "a list of lists must have one for each of the 2 outputs; got 1"),
        ({"metrics": {"a": ["acuracy"]}}, ValueError, "name must be one of .*accuracy"),
        ({"metrics": {"a": [3]}}, TypeError, "each must be a metric or its name"),
    ],
)
def test_metrics_that_do_not_fit_are_refused(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Model(two_outputs("list"), LOSSES, "sgd", **options)
