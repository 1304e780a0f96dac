"""A label that is no class number is an error before its step: of what value, of how many classes, in which step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, nn, ops
from mixtrain.dataset import NumpySlicesDataset
from mixtrain.nn import metrics
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import on_jax_only_some

CLASSES, ROWS, STEPS, BAD_STEP = 3, 4, 5, 4
_draw = np.random.default_rng(3)
X = _draw.standard_normal((ROWS * STEPS, 6)).astype(np.float32)
Y = _draw.integers(0, CLASSES, ROWS * STEPS).astype(np.int32)

LOSSES: dict[str, Callable[[], Any]] = {
    "Keras object": lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    "Keras name": lambda: "sparse_categorical_crossentropy",
    "Keras function": lambda: keras.losses.sparse_categorical_crossentropy,
    "crossentropy": lambda: "crossentropy",
    "sparse": lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
    "CrossEntropyLoss": nn.CrossEntropyLoss,
    "NLLLoss": nn.NLLLoss,
    "ops.cross_entropy": lambda: ops.cross_entropy,
    "a function": lambda: lambda logits, labels: ops.nll_loss(ops.log_softmax(logits), labels),
}


class Own(keras.losses.Loss):
    """A loss that reads no labels."""

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return keras.ops.mean(y_pred, axis=-1)


def network(softmax: bool = False) -> keras.Model:
    """Return a network with statistics that a step moves."""
    layers = keras.layers
    last = layers.Dense(CLASSES, activation="softmax" if softmax else None)
    return keras.Sequential([keras.Input((6,)), layers.Dense(5), layers.BatchNormalization(), last])


def labels(bad: int, step: int = BAD_STEP) -> np.ndarray:
    """Return the labels with a bad one in one step."""
    result = Y.copy()
    result[(step - 1) * ROWS + 2] = bad
    return result


def batches(y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(X[at : at + ROWS], y[at : at + ROWS]) for at in range(0, len(y), ROWS)]


def model(loss: Any = "sparse_categorical_crossentropy", **options: Any) -> Model:
    keras.utils.set_random_seed(1)
    return Model(network(), loss, keras.optimizers.SGD(0.1, momentum=0.9), **options)


def state(trained: Model) -> list[np.ndarray]:
    networks = trained._networks
    return [np.asarray(value) for value in (*networks.network.get_weights(), *networks.optimizer.variables)]


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))


@pytest.fixture
def four_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a call run four steps."""
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOSSES)
def test_each_sparse_loss_names_the_label_the_classes_and_the_step(name: str) -> None:
    trained = model(LOSSES[name]())
    with pytest.raises(ValueError) as caught:
        trained.train(1, batches(labels(7)), verbose=0)
    assert str(caught.value) == (
        "Model.train: labels must be from 0 to 2; got 7 in step 4, epoch 1, where there are 3 classes. "
        "Write labels in that range, or a network with an output for each class."
    )


@pytest.mark.slow
def test_the_epoch_is_named() -> None:
    y = Y.copy()

    class Spoiling(mixtrain.Callback):
        def on_train_epoch_end(self, run_context: Any) -> None:
            y[(BAD_STEP - 1) * ROWS] = -1

    with pytest.raises(ValueError, match=r"labels must be from 0 to 2; got -1 in step 9, epoch 2, where"):
        model().train(2, batches(y), callbacks=Spoiling(), verbose=0)


F16, BF16 = mixtrain.float16, mixtrain.bfloat16
FEEDS: list[tuple[str, Any, int]] = [
    ("host", None, 7), ("groups", None, -1), ("sink", None, 7), ("pipeline in sink", None, -1),
    *on_jax_only_some(
        [("host", F16, -1), ("sink", F16, 7), ("sink", BF16, -1), ("pipeline", None, 7), ("groups", F16, 7)], (1,)
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("feed", "half", "bad"), FEEDS)
def test_all_is_as_before_the_step(feed: str, half: Any, bad: int, request: Any) -> None:
    if feed == "groups":
        request.getfixturevalue("four_together")
    sink = feed.endswith("sink")

    def made() -> Model:
        manager = mixtrain.DynamicLossScaleManager(1024) if half == F16 else None
        return model(amp_level="O2" if half else "O0", cast_model_type=half, loss_scale_manager=manager)

    def data(y: np.ndarray, count: int = STEPS) -> Any:
        if feed.startswith("pipeline"):
            rows = count * ROWS
            return NumpySlicesDataset((X[:rows], y[:rows]), shuffle=False).batch(ROWS)
        return batches(y[: count * ROWS])

    expected = made()
    expected.train(1, data(Y, BAD_STEP - 1), verbose=0, dataset_sink_mode=sink)
    trained = made()
    with pytest.raises(ValueError, match=rf"got {bad} in step {BAD_STEP}, epoch 1, where there are 3") as caught:
        trained.train(1, data(labels(bad)), verbose=0, dataset_sink_mode=sink)
    assert caught.value.__cause__ is None
    assert same(state(trained), state(expected))
    assert np.isfinite(trained.train(1, data(Y), verbose=0, dataset_sink_mode=sink)["loss"]).all()


def test_the_first_batch_of_all_is_looked_at() -> None:
    trained = model()
    trained.build(batches(Y))
    before = state(trained)
    with pytest.raises(ValueError, match="got 3 in step 1, epoch 1"):
        trained.train(1, batches(labels(3, step=1)), verbose=0)
    assert same(state(trained), before)


@pytest.mark.slow
def test_an_ignored_label_is_no_error() -> None:
    of_keras = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    for loss in (nn.CrossEntropyLoss(ignore_index=-1), of_keras):
        trained = model(loss, metrics=[keras.metrics.SparseCategoricalAccuracy()])
        assert np.isfinite(trained.train(1, batches(labels(-1)), verbose=0)["loss"]).all()
        trained.eval(batches(labels(-1)))
        with pytest.raises(ValueError, match="got -2 in step 4"):
            trained.train(1, batches(labels(-2)), verbose=0)


def test_each_output_has_its_own_classes() -> None:
    entry = keras.Input((6,))
    outputs = {"few": keras.layers.Dense(3, name="few")(entry), "many": keras.layers.Dense(9, name="many")(entry)}
    loss = dict.fromkeys(outputs, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    trained = Model(keras.Model(entry, outputs), loss, keras.optimizers.SGD(0.1))
    data = [(X[:ROWS], {"few": Y[:ROWS], "many": Y[:ROWS] + 5})]
    trained.train(1, data, verbose=0)
    data[0][1]["many"][1] = 9
    with pytest.raises(ValueError, match="labels must be from 0 to 8; got 9 in step 1"):
        trained.train(1, data, verbose=0)


@pytest.mark.slow
@pytest.mark.parametrize("written", ["Keras object", "sparse"])
def test_an_evaluation_names_the_batch(written: str) -> None:
    trained = model(LOSSES[written](), metrics={"loss"})
    with pytest.raises(ValueError, match="Model.eval: .* got 7 in batch 4, where there are 3 classes"):
        trained.eval(batches(labels(7)))
    with pytest.raises(ValueError, match="Model.eval: .* got 7 in batch 4, where there are 3 classes"):
        trained.fit(1, batches(Y), batches(labels(7)), verbose=0)
    assert np.isfinite(trained.eval(batches(Y))["loss"])


METRICS: dict[str, Callable[[], Any]] = {
    "object": lambda: [keras.metrics.SparseCategoricalAccuracy()],
    "top k": lambda: [keras.metrics.SparseTopKCategoricalAccuracy(2)],
    "cross entropy": lambda: [keras.metrics.SparseCategoricalCrossentropy()],
    "name": lambda: ["sparse_categorical_accuracy"],
    "accuracy": lambda: ["accuracy"],
    "function": lambda: [keras.metrics.sparse_categorical_accuracy],
    "by name": lambda: {"accuracy": keras.metrics.SparseCategoricalAccuracy()},
    "MindSpore's": lambda: {"accuracy": metrics.Accuracy()},
    "top k categories": lambda: {"top": metrics.TopKCategoricalAccuracy(2)},
    "perplexity": lambda: {"perplexity": metrics.Perplexity()},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", METRICS)
def test_a_sparse_metric_refuses_such_labels_where_no_loss_does(name: str) -> None:
    keras.utils.set_random_seed(1)
    trained = Model(network(True), Own(), keras.optimizers.SGD(0.1), METRICS[name]())
    for bad in (7, -1):
        with pytest.raises(ValueError, match=rf"labels must be from 0 to 2; got {bad} in batch 4"):
            trained.eval(batches(labels(bad)))
    assert all(np.isfinite(value) for value in trained.eval(batches(Y)).values())


def test_labels_of_weight_0_count_for_nothing() -> None:
    weights = np.ones(len(Y), np.float32)
    weights[(BAD_STEP - 1) * ROWS + 2] = 0.0
    data = [(x, y, weights[at * ROWS :][:ROWS]) for at, (x, y) in enumerate(batches(labels(-1)))]
    trained = model(Own(), sample_weight=True, weighted_metrics=["sparse_categorical_accuracy"])
    trained.eval([(x, y, w) for x, y, w in data])


def test_a_train_step_of_its_own_looks_too() -> None:
    net = nn.Dense(6, CLASSES)
    with_loss = nn.WithLossCell(net, nn.CrossEntropyLoss())
    step = nn.TrainOneStepCell(with_loss, nn.SGD(net.trainable_params(), 0.1))
    x, y = mixtrain.Tensor(X[:ROWS]), mixtrain.Tensor(labels(7, step=1)[:ROWS])
    before = net.weight.asnumpy().copy()
    with pytest.raises(ValueError, match="labels must be from 0 to 2; got 7"):
        step(x, y)
    assert np.array_equal(net.weight.asnumpy(), before)
    step(x, mixtrain.Tensor(Y[:ROWS]))
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    with pytest.raises(ValueError, match="labels must be from 0 to 2; got 7"):
        step(x, y)


@pytest.mark.slow
def test_the_rule_is_learned_in_the_only_trace() -> None:
    trained = model()
    trained.train(1, batches(Y), verbose=0)
    assert trained._compiled.stepper.traces() == 1
