"""Every kind of dataset feeds the same numbers, from the host and through a compiled loop; bad ones are refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, backend, nn
from mixtrain.dataset import GeneratorDataset, NumpySlicesDataset
from mixtrain.train.feed import Feed
from tests.backends import quick_every
from tests.train.planted import Trace

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

TF_DATA = pytest.mark.tensorflow
FEEDS = pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])

_draw = np.random.default_rng(0)
X = _draw.standard_normal((36, 6)).astype(np.float32)
Y = X @ _draw.standard_normal((6, 1)).astype(np.float32)
SLICES = [slice(start, start + 8) for start in range(0, 36, 8)]  # the last batch holds 4


class Sequence(keras.utils.PyDataset):
    """The batches as a PyDataset."""

    def __len__(self) -> int:
        return len(SLICES)

    def __getitem__(self, index: int) -> Any:
        return X[SLICES[index]], Y[SLICES[index]]


class Sized:
    """An iterable of one's own; it may say another size than it has, and fail on the way."""

    def __init__(self, size: int | None = None, error: Exception | None = None) -> None:
        self.size, self.error = size, error

    def __len__(self) -> int:
        if self.size is None:
            raise TypeError("no length")
        return self.size

    def __iter__(self) -> Iterator[Any]:
        for count, rows in enumerate(SLICES):
            if self.error is not None and count == 2:
                raise self.error
            yield X[rows], Y[rows]


class Resettable:
    """An iterator over itself with MindSpore's methods of a dataset."""

    def __init__(self) -> None:
        self.position = 0

    def get_dataset_size(self) -> int:
        return len(SLICES)

    def reset(self) -> None:
        self.position = 0

    def __iter__(self) -> Resettable:
        return self

    def __next__(self) -> tuple[Any, ...]:
        if self.position == len(SLICES):
            raise StopIteration
        self.position += 1
        return mixtrain.Tensor(X[SLICES[self.position - 1]]), mixtrain.Tensor(Y[SLICES[self.position - 1]])


SOURCES: dict[str, Callable[[], Any]] = {
    "resettable iterator": Resettable,
    "list": lambda: [(X[rows], Y[rows]) for rows in SLICES],
    "list of lists": lambda: [[X[rows], Y[rows]] for rows in SLICES],
    "dicts": lambda: [{"data": X[rows], "label": Y[rows]} for rows in SLICES],
    "tensors": lambda: [(backend.to_tensor(X[rows]), backend.to_tensor(Y[rows])) for rows in SLICES],
    "numbers": lambda: [(X[rows].tolist(), Y[rows].tolist()) for rows in SLICES],
    "iterable": lambda: Sized(5),
    "PyDataset": Sequence,
    "tf.data": lambda: tf.data.Dataset.from_tensor_slices((X, Y)).batch(8),
    "tf.data of dicts": lambda: tf.data.Dataset.from_tensor_slices({"data": X, "label": Y}).batch(8),
    "NumpySlicesDataset": lambda: NumpySlicesDataset((X, Y), ["data", "label"], shuffle=False).batch(8),
    "GeneratorDataset": lambda: GeneratorDataset(
        list(zip(X, Y, strict=True)), ["data", "label"], shuffle=False
    ).batch(8),
}


def _model() -> Model:
    mixtrain.set_seed(3)
    net = nn.SequentialCell(nn.Dense(6, 5), nn.ReLU(), nn.Dense(5, 1))
    optimizer = nn.Momentum(net.trainable_params(), 0.02, 0.9)
    return Model(net, nn.MSELoss(), optimizer, loss_scale_manager=DynamicLossScaleManager(16, 2, 3))


def _train(dataset: Any, *, sink: bool = False, epochs: int = 2, **options: Any) -> Trace:
    trace = Trace()
    _model().train(epochs, dataset, callbacks=trace, dataset_sink_mode=sink, verbose=0, **options)
    return trace


@pytest.fixture(scope="module")
def reference() -> Trace:
    return _train(SOURCES["list"]())


def _marked(names: Iterable[str]) -> list[Any]:
    """Return the names of cases, those of tf.data marked."""
    return [pytest.param(name, marks=TF_DATA) if "tf.data" in name else name for name in names]


@pytest.mark.slow
@FEEDS
@pytest.mark.parametrize("source", _marked(SOURCES))
def test_every_source_trains_the_same_run(source: str, sink: bool, reference: Trace) -> None:
    trace = _train(SOURCES[source](), sink=sink)
    assert len(trace.losses) == 10
    np.testing.assert_allclose(trace.losses, reference.losses, rtol=1e-5)
    assert (trace.scales, trace.overflows) == (reference.scales, reference.overflows)


@pytest.mark.slow
def test_a_source_of_unknown_size_trains_from_the_host(reference: Trace) -> None:
    assert _train(Sized()).losses == reference.losses
    rows = GeneratorDataset(lambda: iter(list(zip(X, Y, strict=True))), ["data", "label"]).batch(8)
    assert _train(rows).losses == reference.losses


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_tf_dataset_of_unknown_size_trains_from_the_host(reference: Trace) -> None:
    assert _train(tf.data.Dataset.from_generator(
        lambda: iter(list(zip(X, Y, strict=True))),
        output_signature=(tf.TensorSpec((6,), tf.float32), tf.TensorSpec((1,), tf.float32)),
    ).batch(8)).losses == reference.losses


@pytest.mark.parametrize("sink_size", [-1, 3])
def test_a_source_of_unknown_size_is_refused_for_a_compiled_loop(sink_size: int) -> None:
    message = "with dataset_sink_mode=True the dataset must know its size; got one of unknown size. Write dataset_sink"
    with pytest.raises(ValueError, match=message):
        _train(Sized(), sink=True, sink_size=sink_size)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "empty list": (list, ValueError, "Model.train: the dataset must have at least one batch; got none"),
    "empty pipeline": (
        lambda: NumpySlicesDataset((X, Y), ["a", "b"]).batch(64, drop_remainder=True), ValueError, "at least one .*none"
    ),
    "empty tf.data": (
        lambda: tf.data.Dataset.from_tensor_slices((X, Y)).batch(64, drop_remainder=True), ValueError, "got none. Look"
    ),
    "generator": (lambda: (batch for batch in [(X, Y)]), TypeError, "must be readable again in each epoch; got genera"),
    "iterator": (lambda: iter([(X, Y)]), TypeError, "must be readable again in each epoch; got list_iterator"),
    "number": (lambda: 5, TypeError, "must be a mixtrain dataset, tf.data.Dataset, keras.utils.PyDataset or an iter"),
    "nothing": (lambda: None, TypeError, "got NoneType None"),
    "three columns": (lambda: [(X, Y, Y)], ValueError, "a batch must have 2 columns, data and label; got 3"),
    "one column": (lambda: [(X,)], ValueError, "a batch must have 2 columns, data and label; got 1"),
    "an array": (lambda: [X], ValueError, "must have 2 columns, data and label; an array is not batches; got 1"),
    "three columns of a pipeline": (
        lambda: NumpySlicesDataset((X, Y, Y), ["a", "b", "c"]).batch(8), ValueError, "data and label; got 3"
    ),
}


@quick_every(3)
@FEEDS
@pytest.mark.parametrize("kind", _marked(REFUSED))
def test_a_dataset_that_cannot_be_trained_on_is_refused(kind: str, sink: bool) -> None:
    make, error, message = REFUSED[kind]
    with pytest.raises(error, match=message):
        _train(make(), sink=sink)


@pytest.mark.slow
@pytest.mark.parametrize(("sink", "error"), [(False, RuntimeError), (True, ValueError)])
def test_a_dataset_that_ends_before_its_size_is_an_error_that_counts(sink: bool, error: type[Exception]) -> None:
    with pytest.raises(error, match="(must give the|expected) 7 .* (after|got) 5"):
        _train(Sized(7), sink=sink)


@pytest.mark.slow
@FEEDS
def test_what_a_dataset_raises_comes_as_itself_with_the_place_and_the_weights_stay_usable(sink: bool) -> None:
    model, trace = _model(), Trace()
    with pytest.raises(KeyError, match="broken") as caught:
        model.train(1, Sized(5, KeyError("broken")), callbacks=trace, dataset_sink_mode=sink, verbose=0)
    assert any("Raised by the training dataset in epoch 1" in note for note in caught.value.__notes__)
    assert np.isfinite(model.predict(X)).all()
    assert len(model.train(1, SOURCES["list"](), dataset_sink_mode=sink, verbose=0)["loss"]) == 1


STRUCTURES: dict[str, Callable[[np.ndarray], Any]] = {
    "dict": lambda x: {"one": x, "other": 2 * x},
    "tuple": lambda x: (x, 2 * x),
    "list": lambda x: [x, 2 * x],
}


@FEEDS
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("kind", _marked(["list", "tf.data"]))
def test_columns_of_several_parts_come_arranged_as_they_were_given(kind: str, structure: str, sink: bool) -> None:
    arranged = STRUCTURES[structure]
    data: Any = [(arranged(X[rows]), {"b": Y[rows], "a": -Y[rows]}) for rows in SLICES]
    if kind == "tf.data":
        whole = (keras.tree.lists_to_tuples(arranged(X)), {"b": Y, "a": -Y})
        data = tf.data.Dataset.from_tensor_slices(whole).batch(8)
    feed = Feed(data, "test")
    result = feed.graph_iterator(2) if sink else feed.batches()
    for rows in [*SLICES, SLICES[0]] if sink else SLICES:
        parts, label = next(result)
        expected = keras.tree.lists_to_tuples(arranged(X[rows]))
        keras.tree.assert_same_structure(parts, expected)
        keras.tree.map_structure(np.testing.assert_array_equal, parts, expected)
        np.testing.assert_array_equal(label["a"], -Y[rows])


@pytest.mark.tensorflow
def test_an_epoch_of_sink_feed_begins_with_the_stream_that_was_made_for_the_last(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(tf.data.Dataset.from_tensor_slices((X, Y)).batch(8), "Model.train")
    assert [len(x) for x, _ in feed.graph_iterator()] == [8, 8, 8, 8, 4]
    made: list[Any] = []
    monkeypatch.setattr(tf.data.Dataset, "with_options", lambda dataset, options: made.append(dataset) or dataset)
    assert [len(x) for x, _ in feed.graph_iterator()] == [8, 8, 8, 8, 4]
    assert not made
    assert len(list(feed.graph_iterator(2))) == 10
    assert len(made) == 1


@pytest.mark.tensorflow
def test_a_column_that_is_no_tensor_is_refused_for_a_compiled_loop() -> None:
    ragged = tf.data.Dataset.from_tensor_slices((tf.ragged.constant([[1.0], [1.0, 2.0]]), [[1.0], [2.0]])).batch(2)
    with pytest.raises(ValueError, match="each column of a batch must be a tensor, or a tuple or dict.*RaggedTensor"):
        Feed(ragged, "test").graph_iterator()


def _two_by_two() -> Any:
    keras.utils.set_random_seed(5)
    one, other = keras.Input((6,), name="one"), keras.Input((6,), name="other")
    joined = keras.layers.Add()([keras.layers.Dense(4)(one), keras.layers.Dense(4, activation="tanh")(other)])
    a, b = keras.layers.Dense(1, name="a")(joined), keras.layers.Dense(1, activation="sigmoid", name="b")(joined)
    return keras.Model({"one": one, "other": other}, {"a": a, "b": b})


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_two_inputs_two_outputs_and_sample_weights_train_the_same_from_host_and_loop(level: Any) -> None:
    data = [
        (
            STRUCTURES["dict"](X[rows]),
            {"a": Y[rows], "b": (Y[rows] > 0).astype(np.float32)},
            {"a": np.abs(X[rows, 0]), "b": np.abs(X[rows, 1])},
        )
        for rows in SLICES[:2]
    ]
    ends = []
    for sink in (False, True):
        net, trace = _two_by_two(), Trace()
        loss = {"a": "mse", "b": "binary_crossentropy"}
        model = Model(net, loss, keras.optimizers.Adam(0.01), amp_level=level, sample_weight=True)
        model.train(2, data, callbacks=trace, dataset_sink_mode=sink, verbose=0)
        ends.append((trace, net.get_weights()))
    (host, weights), (loop, sunk) = ends
    assert len(host.losses) == len(loop.losses) == 4
    np.testing.assert_allclose(loop.losses, host.losses, rtol=1e-6 if level == "O0" else 1e-3)
    assert (loop.overflows, loop.scales) == (host.overflows, host.scales)
    for mine, theirs in zip(sunk, weights, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6 if level == "O0" else 1e-4)


@pytest.mark.slow
def test_columns_go_to_a_network_that_returns_its_own_loss() -> None:
    class Own(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.dense = nn.Dense(6, 1)

        def construct(self, x: Any, label: Any, weight: Any) -> Any:
            return keras.ops.mean(weight * (self.dense(x) - label) ** 2)

    net = Own()
    data = [(X[rows], Y[rows], np.ones_like(Y[rows])) for rows in SLICES]
    history = Model(net, optimizer=nn.SGD(net.trainable_params(), 0.05)).train(3, data, verbose=0)
    assert history["loss"][-1] < history["loss"][0]


@pytest.mark.slow
def test_a_feed_can_be_read_again_and_knows_its_size_and_first_batch() -> None:
    for name, make in SOURCES.items():
        if "tf.data" in name and keras.backend.backend() != "tensorflow":
            continue
        feed = Feed(make(), "test")
        assert feed.size == 5
        assert [tuple(column.shape) for column in feed.first()] == [(8, 6), (8, 1)]
        for _ in range(2):
            assert [len(batch[0]) for batch in feed.batches()] == [8, 8, 8, 8, 4]
        iterator = feed.graph_iterator(2)
        assert [len(next(iterator)[0]) for _ in range(6)] == [8, 8, 8, 8, 4, 8]


@pytest.mark.slow
@TF_DATA
@FEEDS
@pytest.mark.parametrize(("shape", "before"), [((6,), 0), ((None,), 1)], ids=["known shapes", "open shapes"])
def test_a_shuffled_tf_dataset_is_read_once_an_epoch_so_that_its_order_is_tensorflows(
    sink: bool, shape: tuple[int | None], before: int
) -> None:
    passes = []

    def rows() -> Iterator[Any]:
        passes.append("begin")
        yield from zip(X, Y, strict=True)

    def shuffled() -> Any:
        spec = tf.TensorSpec(shape, tf.float32), tf.TensorSpec((1,), tf.float32)
        counted = tf.data.experimental.assert_cardinality(len(X))
        dataset = tf.data.Dataset.from_generator(rows, output_signature=spec).apply(counted)
        return dataset.shuffle(36, seed=4).batch(12)

    def model() -> Model:
        keras.utils.set_random_seed(0)
        return Model(keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)]), "mse", keras.optimizers.SGD(0.1))

    plain, reference = shuffled(), model()
    orders = [list(plain) for _ in range(2 + before)]
    expected = [reference.train(1, order, verbose=0)["loss"][0] for order in orders[before:]]
    passes.clear()
    history = model().train(2, shuffled(), dataset_sink_mode=sink, verbose=0)
    np.testing.assert_allclose(history["loss"], expected, rtol=1e-6)
    # Where shapes are not known, an element is read before the first pass.
    assert len(passes) == 2 + before


@TF_DATA
@pytest.mark.parametrize("of_keras", [False, True], ids=["train", "fit"])
def test_a_tf_dataset_that_turns_out_to_be_empty_is_an_error_in_training_and_evaluation(of_keras: bool) -> None:
    empty = tf.data.Dataset.from_tensor_slices((X, Y)).filter(lambda x, y: x[0] > 1e6).batch(4)
    model = _model()
    with pytest.raises(ValueError, match="the dataset must have at least one batch; got none"):
        model.fit(empty, verbose=0) if of_keras else model.train(2, empty, verbose=0)
    with pytest.raises(ValueError, match="the dataset must have at least one batch; got none"):
        model.evaluate(empty) if of_keras else model.eval(empty)


@pytest.mark.slow
@FEEDS
def test_a_py_dataset_is_told_of_the_beginning_and_the_end_of_every_epoch(sink: bool) -> None:
    events = []

    class Told(Sequence):
        def on_epoch_begin(self) -> None:
            events.append("begin")

        def on_epoch_end(self) -> None:
            events.append("end")

    _train(Told(), epochs=3, sink=sink)
    for _ in range(500):  # In sink feed a thread reads on to the end.
        if events[-1] == "end":
            break
        time.sleep(0.01)
    assert events == ["begin", "end"] * 3


@pytest.mark.skipif(keras.backend.backend() == "tensorflow", reason="there it is the backend's own")
def test_a_tf_dataset_is_read_as_any_iterable_by_another_backend() -> None:
    data = pytest.importorskip("tensorflow").data.Dataset.from_tensor_slices({"data": X, "label": Y}).batch(8)
    feed = Feed(data, "test")
    assert feed.size == 5
    for _ in range(2):
        for (x, y), rows in zip(feed.batches(), SLICES, strict=True):
            np.testing.assert_array_equal(x, X[rows])
            np.testing.assert_array_equal(y, Y[rows])
    assert feed.graph_iterator().peek_chunk(5)[0][0].shape == (4, 8, 6)
