"""Metrics while training: names and values of `history` and of every hook's logs are those of Keras's `fit`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Collection
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain

ROWS, BATCH, EPOCHS = 40, 8, 2
DRAW = np.random.default_rng(7)
X = DRAW.normal(size=(ROWS, 6)).astype("float32")
CLASSES = DRAW.integers(0, 3, size=(ROWS,))
ONE_HOT = np.eye(3, dtype="float32")[CLASSES]
TARGET = DRAW.normal(size=(ROWS, 1)).astype("float32")
WEIGHTS = DRAW.uniform(0.5, 2.0, size=(ROWS,)).astype("float32")
SENTENCES = DRAW.integers(0, 5, size=(ROWS, 7))

FEEDS: dict[str, dict[str, Any]] = {
    "steps": {"watch": True},
    "groups": {"watch": False},
    "sink": {"watch": True, "dataset_sink_mode": True, "sink_size": 1},
    "sink of an epoch": {"watch": False, "dataset_sink_mode": True},
}


class Logs(keras.callbacks.Callback):
    """Keeps what every hook is told, and wants control in each step."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.calls.append((f"batch {batch}", dict(logs)))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.calls.append((f"epoch {epoch}", dict(logs)))

    def on_train_end(self, logs: Any = None) -> None:
        self.calls.append(("end", dict(logs)))


def _dense() -> keras.Model:
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(5, activation="relu"), keras.layers.Dense(3)])


def _softmax() -> keras.Model:
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(3, activation="softmax")])


def _two_outputs() -> keras.Model:
    inputs = keras.Input((6,))
    hidden = keras.layers.Dense(4, activation="tanh")(inputs)
    kind, size = keras.layers.Dense(3, name="kind")(hidden), keras.layers.Dense(1, name="size")(hidden)
    return keras.Model(inputs, [kind, size])


def _masked() -> keras.Model:
    return keras.Sequential([
        keras.Input((7,), dtype="int32"), keras.layers.Embedding(5, 4, mask_zero=True),
        keras.layers.LSTM(3, return_sequences=True), keras.layers.Dense(1),
    ])


class _Activity(keras.layers.Layer):
    """Counts how much flows, in a metric of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = keras.metrics.Mean(name="activity")

    def call(self, inputs: Any) -> Any:
        self.mean.update_state(keras.ops.mean(keras.ops.abs(inputs)))
        return inputs


def _with_a_metric_inside() -> keras.Model:
    return keras.Sequential([keras.Input((6,)), keras.layers.Dense(4), _Activity(), keras.layers.Dense(1)])


def _tuple_network() -> keras.Model:
    class Two(keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = keras.layers.Dense(1), keras.layers.Dense(1)

        def call(self, inputs: Any) -> Any:
            return self.first(inputs), self.second(inputs)

    return Two()


def _nested(values: Any) -> Any:
    return {"a": values[0], "b": {"c": values[1], "d": values[2]}}


def _nested_outputs() -> keras.Model:
    inputs = keras.Input((6,))
    return keras.Model(inputs, _nested([keras.layers.Dense(1, name=f"of_{key}")(inputs) for key in "acd"]))


class ByKeys(keras.Model):
    """Returns a dict of two outputs, or a nested one of three, as only a call shows."""

    def __init__(self, *, nested: bool = False) -> None:
        super().__init__()
        self.parts = [keras.layers.Dense(1) for _ in range(2 + nested)]

    def call(self, inputs: Any) -> Any:
        outputs = [part(inputs) for part in self.parts]
        return _nested(outputs) if len(outputs) > 2 else dict(zip("ab", outputs, strict=True))


def _spread(y_true: Any, y_pred: Any) -> Any:
    return keras.ops.abs(y_true - y_pred)


LOGITS = "sparse_categorical_crossentropy"
# Network, the arguments of `compile`, and the data.
ZOO: dict[str, tuple[Callable[[], Any], Callable[[], dict[str, Any]], tuple[Any, ...]]] = {
    "accuracy of classes": (_softmax, lambda: {"loss": LOGITS, "metrics": ["accuracy"]}, (X, CLASSES)),
    "accuracy of one-hot labels": (
        _softmax, lambda: {"loss": "categorical_crossentropy", "metrics": ["acc", "top_k_categorical_accuracy"]},
        (X, ONE_HOT),
    ),
    "objects and functions": (
        _softmax,
        lambda: {
            "loss": "categorical_crossentropy",
            "metrics": [keras.metrics.AUC(num_thresholds=20, name="auc"), keras.metrics.Precision(name="p"), _spread],
        },
        (X, ONE_HOT),
    ),
    "a metric of several values": (
        _softmax, lambda: {"loss": "categorical_crossentropy", "metrics": [keras.metrics.F1Score()]}, (X, ONE_HOT),
    ),
    "weighted metrics": (
        _dense,
        lambda: {
            "loss": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "metrics": ["accuracy"],
            "weighted_metrics": ["accuracy"],
        },
        (X, CLASSES, WEIGHTS),
    ),
    "two outputs": (
        _two_outputs,
        lambda: {
            "loss": {"kind": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "size": "mse"},
            "loss_weights": {"kind": 0.25, "size": 2.0},
            "metrics": {"kind": ["accuracy"], "size": ["mae", "mse"]},
        },
        (X, {"kind": CLASSES, "size": TARGET}),
    ),
    "two outputs in lists": (
        _two_outputs,
        lambda: {
            "loss": [keras.losses.SparseCategoricalCrossentropy(from_logits=True), "mse"],
            "metrics": [["accuracy"], ["mae"]],
        },
        (X, (CLASSES, TARGET)),
    ),
    "two outputs without names": (
        _tuple_network, lambda: {"loss": ["mse", "mae"], "metrics": [["mae"], ["mse", "mae"]]}, (X, (TARGET, TARGET)),
    ),
    "one key of a subclassed model": (
        ByKeys, lambda: {"loss": "mse", "metrics": {"b": "mse"}}, (X, {"a": TARGET, "b": TARGET}),
    ),
    "keys of a subclassed model": (
        ByKeys,
        lambda: {
            "loss": "mse", "metrics": {"b": keras.metrics.MeanAbsoluteError(), "a": "mae"},
            "weighted_metrics": {"b": ["mse"]},
        },
        (X, {"a": TARGET, "b": TARGET}, {"a": WEIGHTS, "b": WEIGHTS}),
    ),
    "nested outputs": (
        _nested_outputs,
        lambda: {"loss": _nested(["mse", "mae", "mse"]), "metrics": _nested(["mse", ["mae", "mse"], None])},
        (X, _nested([TARGET, TARGET, TARGET])),
    ),
    "nested outputs without names": (
        functools.partial(ByKeys, nested=True),
        lambda: {
            "loss": "mse", "metrics": _nested(["mse", "mae", ["mse"]]),
            "weighted_metrics": _nested([None, "mae", "mae"]),
        },
        (X, _nested([TARGET, TARGET, TARGET]), _nested([WEIGHTS, WEIGHTS, WEIGHTS])),
    ),
    "masked steps": (
        _masked, lambda: {"loss": "mse", "metrics": ["mae"]},
        (SENTENCES, SENTENCES[..., None].astype("float32")),
    ),
    "a metric of a layer": (_with_a_metric_inside, lambda: {"loss": "mse", "metrics": ["mae"]}, (X, TARGET)),
}


def _pair(name: str) -> tuple[keras.Model, dict[str, Any], keras.Model, dict[str, Any], tuple[Any, ...]]:
    make, options, data = ZOO[name]
    networks = []
    for _ in range(2):
        keras.utils.set_random_seed(11)
        network = make()
        network(data[0][:2])
        networks.append(network)
    for values in (networks[0].get_weights(),):
        networks[1].set_weights(values)
    return networks[0], options(), networks[1], options(), data


def _model(network: keras.Model, options: dict[str, Any], **more: Any) -> mixtrain.Model:
    given = dict(options)
    return mixtrain.Model(network, given.pop("loss"), keras.optimizers.SGD(0.1), **given, **more)


def _batches(data: tuple[Any, ...], rows: int = ROWS) -> list[tuple[Any, ...]]:
    def part(values: Any, start: int) -> Any:
        if isinstance(values, dict):
            return {name: part(value, start) for name, value in values.items()}
        if isinstance(values, tuple):
            return tuple(part(value, start) for value in values)
        return values[start : start + BATCH]

    return [tuple(part(column, start) for column in data) for start in range(0, rows, BATCH)]


# Keras on JAX loses the masks of outputs on their way out of the gradient: its training metrics count masked steps, and
# those of its `evaluate` do not. Here they do not in either.
_MASKS_LOST = {"masked steps": {"mae"}} if keras.backend.backend() == "jax" else {}


# Keras on JAX cannot update a metric inside of a layer; here it can, see below.
_KERAS_FAILS = {"a metric of a layer"} if keras.backend.backend() == "jax" else set()
_COMPARED = [name for name in ZOO if name not in _KERAS_FAILS]


def _assert_same(
    result: dict[str, Any], expected: dict[str, Any], where: str, but: Collection[str] = ()
) -> None:
    assert sorted(result) == sorted(expected), where
    for name, value in expected.items():
        if name in but:
            continue
        np.testing.assert_allclose(result[name], value, rtol=2e-6, atol=2e-6, err_msg=f"{name} in {where}")


_CASES = [(name, feed) for name in _COMPARED for feed in FEEDS]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "feed"), _CASES)
def test_history_and_logs_are_those_of_keras_fit(name: str, feed: str) -> None:
    network, options, peer, peer_options, data = _pair(name)
    peer.compile(keras.optimizers.SGD(0.1), **peer_options)
    logs_here, theirs = Logs(), Logs()
    x, y, *weights = data
    expected = peer.fit(
        x, y, BATCH, EPOCHS, verbose=0, shuffle=False, callbacks=[theirs], sample_weight=weights[0] if weights else None
    )
    how = dict(FEEDS[feed])
    watch = how.pop("watch")
    model = _model(network, options, sample_weight=bool(weights))
    epochs = EPOCHS
    if how.get("sink_size") == 1:
        epochs *= len(_batches(data))
    history = model.train(epochs, _batches(data), [logs_here] if watch else [], verbose=0, **how)
    if epochs > EPOCHS:  # Each call is an epoch of one step, so each begins anew.
        assert sorted(history) == sorted(expected.history)
        return
    for epoch in range(EPOCHS):
        _assert_same(
            {key: values[epoch] for key, values in history.items()},
            {key: values[epoch] for key, values in expected.history.items()}, f"epoch {epoch}",
            _MASKS_LOST.get(name, ()),
        )
    if watch:
        assert [where for where, _ in logs_here.calls] == [where for where, _ in theirs.calls]
        for (where, logs), (_, peers) in zip(logs_here.calls, theirs.calls, strict=True):
            _assert_same(logs, peers, where, _MASKS_LOST.get(name, ()))


@pytest.mark.slow
@pytest.mark.parametrize("name", _COMPARED)
def test_metrics_of_a_network_that_does_not_move_are_those_of_keras_evaluate(name: str) -> None:
    network, options, peer, peer_options, data = _pair(name)
    peer.compile(**peer_options)
    x, y, *weights = data
    expected = peer.evaluate(x, y, BATCH, verbose=0, sample_weight=weights[0] if weights else None, return_dict=True)
    given = dict(options)
    model = mixtrain.Model(
        network, given.pop("loss"), keras.optimizers.SGD(0.0), **given, sample_weight=bool(weights)
    )
    history = model.train(1, _batches(data), verbose=0)
    _assert_same({key: values[0] for key, values in history.items()}, expected, name)


_PLANTED_FEEDS = ("steps", "groups", "sink of an epoch")
_PLANTED = [(name, feed) for name in ("two outputs", "objects and functions") for feed in _PLANTED_FEEDS]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "feed"), _PLANTED)
def test_with_a_planted_overflow_values_equal_a_run_without_that_batch(name: str, feed: str) -> None:
    how = dict(FEEDS[feed])
    watch = how.pop("watch")
    results = []
    for planted in (True, False):
        network, options, _, _, data = _pair(name)
        batches = _batches(data)
        if planted:
            batches.insert(2, (np.full_like(batches[0][0], np.inf), *batches[1][1:]))
        logs_here = Logs()
        manager = mixtrain.FixedLossScaleManager(8.0)
        model = _model(network, options, amp_level="O0", loss_scale_manager=manager)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Model: in epoch 1, 1 of 6 steps were skipped")
            history = dict(model.train(1, batches, [logs_here] if watch else [], verbose=0, **how))
        assert history.pop("skipped_steps") == [int(planted)]
        kept = [logs for where, logs in logs_here.calls if where.startswith("batch") and not logs["overflow"]]
        results.append((history, [{key: logs[key] for key in logs if key != "skipped_steps"} for logs in kept]))
    assert results[0] == results[1]
    assert len(results[0][1]) == (5 if watch else 0)


@pytest.mark.slow
def test_a_metric_inside_a_layer_is_told_from_epoch_to_epoch() -> None:
    network = _with_a_metric_inside()
    hidden = keras.ops.convert_to_numpy(network.layers[0](X))
    model = mixtrain.Model(network, "mse", keras.optimizers.SGD(0.0))
    history = model.fit(2, _batches((X, TARGET)), _batches((X, TARGET))[:2], verbose=0)
    expected = float(np.mean(np.abs(hidden)))
    assert history["activity"] == [pytest.approx(expected, rel=1e-5)] * 2
    assert history["val_activity"] == [pytest.approx(float(np.mean(np.abs(hidden[: 2 * BATCH]))), rel=1e-5)] * 2


@pytest.mark.slow
def test_a_validation_between_epochs_leaves_training_metrics_alone() -> None:
    results = []
    for valid in (None, _batches((X, CLASSES))[:1]):
        network, options, *_ = _pair("accuracy of classes")
        results.append(_model(network, options).fit(3, _batches((X, CLASSES)), valid, verbose=0))
    assert results[0]["accuracy"] == results[1]["accuracy"]
    assert len(set(results[1]["val_accuracy"])) >= 1
    assert set(results[1]) == {"loss", "accuracy", "val_loss", "val_accuracy"}


@pytest.mark.slow
@pytest.mark.parametrize("callback", [keras.callbacks.EarlyStopping, mixtrain.EarlyStopping], ids=["keras", "mixtrain"])
def test_training_stops_early_by_a_metric_of_training(callback: Any) -> None:
    network, options, *_ = _pair("accuracy of classes")
    given = dict(options)
    model = mixtrain.Model(network, given.pop("loss"), keras.optimizers.SGD(0.0), **given)
    history = model.train(9, _batches((X, CLASSES)), [callback(monitor="accuracy", mode="max", patience=1)], verbose=0)
    assert len(history["accuracy"]) <= 3


class _Looks(keras.metrics.Metric):
    """Looks at values, which a compiled step has none of."""

    def __init__(self) -> None:
        super().__init__(name="looks")
        self.total = 0.0

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self.total += float(np.asarray(y_pred).sum())

    def result(self) -> Any:
        return keras.ops.convert_to_tensor(self.total)

    def reset_state(self) -> None:
        self.total = 0.0


@pytest.mark.slow
def test_a_metric_that_looks_at_values_is_left_out_of_training_and_evaluated_all_the_same() -> None:
    model = mixtrain.Model(_softmax(), LOGITS, keras.optimizers.SGD(0.1), metrics=["accuracy", _Looks()])
    with pytest.warns(UserWarning, match=r"the metric 'looks' must be one that can be compiled.*Write it"):
        history = model.train(1, _batches((X, CLASSES)), verbose=0)
    assert set(history) == {"loss", "accuracy"}
    assert model.eval(_batches((X, CLASSES)))["looks"] == pytest.approx(ROWS, rel=1e-5)


def test_metrics_of_mindspore_are_evaluated_alone() -> None:
    loss = mixtrain.nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = mixtrain.Model(_dense(), loss, keras.optimizers.SGD(0.1), metrics={"acc": mixtrain.nn.Accuracy()})
    history = model.fit(1, _batches((X, CLASSES)), _batches((X, CLASSES)), verbose=0)
    assert set(history) == {"loss", "val_acc", "val_loss"}


@pytest.mark.slow
def test_a_cell_with_a_keras_metric_has_it_in_training() -> None:
    cell = mixtrain.nn.Dense(6, 1)
    optimizer = mixtrain.nn.SGD(cell.trainable_params(), 0.0)
    metrics = {"theirs": keras.metrics.MeanSquaredError()}
    model = mixtrain.Model(cell, mixtrain.nn.MSELoss(), optimizer, metrics=metrics)
    history = model.fit(2, _batches((X, TARGET)), _batches((X, TARGET)), verbose=0)
    assert history["theirs"] == [pytest.approx(value, rel=1e-5) for value in history["val_theirs"]]


@pytest.mark.slow
def test_the_line_of_an_epoch_and_the_bar_show_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    for verbose in (2, 1):
        network, options, *_ = _pair("accuracy of classes")
        history = _model(network, options).train(1, _batches((X, CLASSES)), verbose=verbose)
        shown = capsys.readouterr().out
        assert f"accuracy {history['accuracy'][0]:.6g}" in shown or f"accuracy: {history['accuracy'][0]:.4f}" in shown


def test_records_have_the_running_value_of_each_step() -> None:
    network, options, *_ = _pair("accuracy of classes")
    seen: list[float] = []

    class Watch(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            seen.extend(run_context.original_args().step_results.metrics["accuracy"].tolist())

    history = _model(network, options).train(1, _batches((X, CLASSES)), [Watch()], verbose=0)
    assert len(seen) == ROWS // BATCH and seen[-1] == history["accuracy"][0]
