"""A batch that is a dict is the inputs of a Keras network by name, as in Keras; a Cell takes its columns in order."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, nn
from mixtrain.dataset import NumpySlicesDataset

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

# Keras warns of a dict for a network that is not made of one, as of most in these tests.
pytestmark = pytest.mark.filterwarnings("ignore:The structure of `inputs`")

_draw = np.random.default_rng(0)
X = _draw.standard_normal((64, 6)).astype(np.float32)
Y = (X @ _draw.standard_normal((6, 1)).astype(np.float32)).astype(np.float32)
WEIGHT = np.linspace(0.1, 2, 64, dtype=np.float32)
SLICES = [slice(start, start + 16) for start in range(0, 64, 16)]


class Batches(keras.utils.PyDataset):
    """The batches of a function of rows as a PyDataset."""

    def __init__(self, make: Callable[[slice], Any]) -> None:
        super().__init__()
        self._make = make

    def __len__(self) -> int:
        return len(SLICES)

    def __getitem__(self, index: int) -> Any:
        return self._make(SLICES[index])


def _endless(make: Callable[[slice], Any]) -> Iterator[Any]:
    while True:
        yield from map(make, SLICES)


SOURCES: dict[str, Callable[[Callable[[slice], Any]], Any]] = {
    "PyDataset": Batches,
    "generator": _endless,
    "tf.data": lambda make: tf.data.Dataset.from_tensor_slices(make(slice(None))).batch(16),
}
KINDS = pytest.mark.parametrize(
    "kind", [pytest.param(name, marks=pytest.mark.tensorflow) if name == "tf.data" else name for name in SOURCES]
)


def noise_and_x(rows: slice) -> dict[str, Any]:
    return {"noise": 0 * X[rows], "x": X[rows]}


def one_input() -> keras.Model:
    keras.utils.set_random_seed(3)
    x = keras.Input((6,), name="x")
    return keras.Model(x, keras.layers.Dense(1)(keras.layers.Dense(4, activation="tanh")(x)))


class Endpoint(keras.layers.Layer):
    """The loss as a layer, as in the example of endpoint layers."""

    def call(self, label: Any, output: Any) -> Any:
        self.add_loss(keras.ops.mean((keras.ops.cast(label, "float32") - keras.ops.cast(output, "float32")) ** 2))
        return output


def with_endpoint() -> keras.Model:
    keras.utils.set_random_seed(3)
    image, label = keras.Input((6,), name="image"), keras.Input((1,), name="label")
    hidden = keras.layers.Dense(8, activation="relu")(image)
    return keras.Model([image, label], Endpoint()(label, keras.layers.Dense(1)(hidden)))


def image_and_label(rows: slice) -> dict[str, Any]:
    return {"label": Y[rows], "image": X[rows], "unused": WEIGHT[rows, None]}


def _options(kind: str) -> dict[str, Any]:
    return {"verbose": 0, "epochs": 2, "shuffle": False} | ({"steps_per_epoch": 4} if kind == "generator" else {})


def test_predict_takes_the_input_by_its_name() -> None:
    network = one_input()
    expected = network.predict(X, verbose=0)
    np.testing.assert_allclose(Model(network, "mse", "sgd").predict(Batches(noise_and_x)), expected, atol=1e-6)


@pytest.mark.slow
@KINDS
def test_predict_of_every_kind_of_dataset_takes_the_input_by_its_name(kind: str) -> None:
    network, source = one_input(), SOURCES[kind](noise_and_x)
    steps = {"steps": 4} if kind == "generator" else {}
    expected = network.predict(X, verbose=0)
    for level in ("O0", "O2"):
        outputs = Model(network, "mse", "sgd", amp_level=level).predict(source, **steps)
        np.testing.assert_allclose(outputs, expected, atol=1e-6 if level == "O0" else 5e-3)


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("columns", ["x, y", "x, y, weight", "list"])
def test_inputs_by_name_with_labels_train_and_evaluate_to_keras_numbers(kind: str, columns: str) -> None:
    def batch(rows: slice) -> Any:
        parts = (noise_and_x(rows), Y[rows], WEIGHT[rows])[: 3 if columns == "x, y, weight" else 2]
        return list(parts) if columns == "list" and kind != "tf.data" else parts

    theirs = one_input()
    theirs.compile(keras.optimizers.SGD(0.05, momentum=0.9), "mse", weighted_metrics=["mae"])
    expected = theirs.fit(Batches(batch), **_options("PyDataset")).history
    evaluated = theirs.evaluate(Batches(batch), verbose=0)
    mine = Model(one_input(), "mse", keras.optimizers.SGD(0.05, momentum=0.9), weighted_metrics=["mae"])
    history = mine.fit(SOURCES[kind](batch), **_options(kind))
    for name in ("loss", "mae"):
        np.testing.assert_allclose(history[name], expected[name], rtol=1e-5)
    np.testing.assert_allclose(mine.evaluate(Batches(batch)), evaluated, rtol=1e-5)


@pytest.mark.slow
@KINDS
def test_a_network_that_adds_its_loss_takes_its_inputs_by_name(kind: str) -> None:
    theirs = with_endpoint()
    theirs.compile(keras.optimizers.SGD(0.05))
    expected = theirs.fit(Batches(image_and_label), **_options("PyDataset")).history["loss"]
    evaluated, outputs = theirs.evaluate(Batches(image_and_label), verbose=0), theirs.predict(Batches(image_and_label))
    mine = Model(with_endpoint(), optimizer=keras.optimizers.SGD(0.05))
    np.testing.assert_allclose(mine.fit(SOURCES[kind](image_and_label), **_options(kind))["loss"], expected, rtol=1e-5)
    np.testing.assert_allclose(mine.evaluate(Batches(image_and_label)), evaluated, rtol=1e-5)
    np.testing.assert_allclose(mine.eval(Batches(image_and_label))["loss"], evaluated, rtol=1e-5)
    np.testing.assert_allclose(mine.predict(Batches(image_and_label)), outputs, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_a_network_that_adds_its_loss_trains_at_every_level_in_every_feed(level: Any, feed: dict[str, Any]) -> None:
    theirs = with_endpoint()
    theirs.compile(keras.optimizers.SGD(0.05))
    expected = theirs.fit(Batches(image_and_label), epochs=2, shuffle=False, verbose=0).history["loss"]
    model = Model(with_endpoint(), optimizer=keras.optimizers.SGD(0.05), amp_level=level, loss_scale_manager=None)
    history = model.train(2, [image_and_label(rows) for rows in SLICES], **feed)
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-5 if level == "O0" else 1e-2)


class CTC(keras.layers.Layer):
    """The connectionist temporal classification loss as a layer, as in the example of optical character recognition."""

    def call(self, label: Any, output: Any) -> Any:
        rows, steps, size = keras.ops.shape(output)[0], output.shape[1], label.shape[1]
        lengths = [keras.ops.full((rows,), length, dtype="int32") for length in (size, steps)]
        output = keras.ops.log(keras.ops.cast(output, "float32") + 1e-7)
        self.add_loss(keras.ops.mean(keras.ops.ctc_loss(label, output, *lengths, mask_index=9)))
        return output


def reader() -> keras.Model:
    keras.utils.set_random_seed(3)
    image, label = keras.Input((8, 6), name="image"), keras.Input((3,), dtype="int32", name="label")
    hidden = keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True))(image)
    output = keras.layers.Dense(10, activation="softmax", name="dense")(hidden)
    return keras.Model([image, label], CTC(name="ctc")(label, output))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3"])
def test_a_reader_of_characters_trains_on_dicts(level: Any) -> None:
    images = _draw.standard_normal((64, 8, 6)).astype(np.float32)
    labels = _draw.integers(0, 9, (64, 3)).astype(np.int32)
    batches = Batches(lambda rows: {"image": images[rows], "label": labels[rows]})
    theirs = reader()
    theirs.compile(keras.optimizers.SGD(0.01))
    expected = theirs.fit(batches, epochs=2, shuffle=False, verbose=0).history["loss"]
    model = Model(reader(), optimizer=keras.optimizers.SGD(0.01), amp_level=level, loss_scale_manager=None)
    history = model.fit(batches, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-5 if level == "O0" else 1e-2)


class Subclassed(keras.Model):
    """Takes the label too, and returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, image: Any, label: Any) -> Any:
        return keras.ops.mean((self.dense(image) - label) ** 2)


@pytest.mark.slow
def test_a_call_of_several_tensors_takes_them_by_the_names_of_its_parameters() -> None:
    losses = []
    for batch in (image_and_label, lambda rows: (X[rows], Y[rows])):
        keras.utils.set_random_seed(3)
        losses.append(Model(Subclassed(), optimizer="sgd").train(2, [*map(batch, SLICES)], verbose=0)["loss"])
    assert losses[0] == losses[1]
    with pytest.raises(ValueError, match=r"by name, image, label; got \['x', 'y'\]. Write batches with those names"):
        Model(Subclassed(), optimizer="sgd").train(1, [{"x": X, "y": Y}], verbose=0)


def test_a_dict_alone_is_not_data_label_and_sample_weight() -> None:
    network = one_input()
    model, before = Model(network, "mse", "sgd"), network.get_weights()
    batches = [{"x": X, "label": Y, "weight": WEIGHT}]
    message = r"a batch must be \(inputs, label\), and a dict is the inputs.*keys 'x', 'label', 'weight'. Write dataset"
    for call in (
        lambda: model.fit(Batches(lambda rows: batches[0]), verbose=0), lambda: model.train(1, batches, verbose=0),
        lambda: model.eval(batches), lambda: model.evaluate(Batches(lambda rows: batches[0])),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert all(map(np.array_equal, network.get_weights(), before))


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
def test_the_columns_of_a_cell_and_of_a_pipeline_are_taken_in_their_order(sink: bool) -> None:
    def losses(network: Any, data: Any) -> Any:
        mixtrain.set_seed(3)
        net = network()
        cell = isinstance(net, nn.Cell)
        optimizer = nn.SGD(net.trainable_params(), 0.05) if cell else keras.optimizers.SGD(0.05)
        model = Model(net, nn.MSELoss() if cell else "mse", optimizer)
        return model.train(1, data, dataset_sink_mode=sink, verbose=0)["loss"]

    dicts = [{"x": X[rows], "label": Y[rows]} for rows in SLICES]
    pairs = [(X[rows], Y[rows]) for rows in SLICES]
    pipeline = NumpySlicesDataset({"x": X, "label": Y}, shuffle=False).batch(16)
    for network in (lambda: nn.Dense(6, 1), one_input):
        assert losses(network, pipeline) == pytest.approx(losses(network, pairs), rel=1e-6)
    assert losses(lambda: nn.Dense(6, 1), dicts) == losses(lambda: nn.Dense(6, 1), pairs)


@pytest.mark.slow
def test_mappings_that_are_not_dicts_are_fed_by_name_too() -> None:
    losses = []
    for kind in (dict, UserDict):
        model = Model(one_input(), "mse", "sgd")
        losses.append(model.train(1, [(kind(noise_and_x(rows)), Y[rows]) for rows in SLICES], verbose=0)["loss"])
        outputs = model.predict(Batches(lambda rows, kind=kind: kind(noise_and_x(rows))))  # type: ignore[misc]
        assert outputs.shape == (64, 1)
    assert losses[0] == losses[1]


def two_outputs() -> keras.Model:
    keras.utils.set_random_seed(3)
    x = keras.Input((6,), name="x")
    outputs = {"a": keras.layers.Dense(1, name="a")(x), "b": keras.layers.Dense(1, name="b")(x)}
    return keras.Model({"x": x}, outputs)


@pytest.mark.slow
@KINDS
def test_outputs_by_name_with_inputs_by_name_train_to_keras_numbers(kind: str) -> None:
    def batch(rows: slice) -> Any:
        return noise_and_x(rows), {"a": Y[rows], "b": -Y[rows]}

    loss = {"a": "mse", "b": "mae"}
    theirs = two_outputs()
    theirs.compile(keras.optimizers.SGD(0.05), loss)
    expected = theirs.fit(Batches(batch), **_options("PyDataset")).history["loss"]
    history = Model(two_outputs(), loss, keras.optimizers.SGD(0.05)).fit(SOURCES[kind](batch), **_options(kind))
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-5)
