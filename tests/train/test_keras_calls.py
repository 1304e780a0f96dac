"""Keras's call style: `fit(x, y, ...)`, `evaluate` and `predict` with Keras's arguments give Keras's numbers."""

from __future__ import annotations

import inspect
import pydoc
from collections.abc import Callable, Iterator
from typing import Any, get_overloads

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import backend

ROWS = 20
DRAW = np.random.default_rng(5)
X = DRAW.normal(size=(ROWS, 3))
Y = DRAW.integers(0, 4, size=(ROWS,))
WEIGHTS = DRAW.uniform(0.5, 2.0, size=(ROWS,))


def network() -> keras.Model:
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(4)])


LOSS = "sparse_categorical_crossentropy"


def _loss() -> Any:
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def pair() -> tuple[mixtrain.Model, keras.Model]:
    """Return a Model, and a compiled Keras model of the same weights."""
    peer = network()
    peer.compile("sgd", _loss(), metrics=["accuracy"])
    return mixtrain.Model(network(), _loss(), keras.optimizers.SGD(), metrics=["accuracy"]), peer


def values(variables: list[Any]) -> list[np.ndarray]:
    return [backend.to_numpy(variable) for variable in variables]


class _Batches(keras.utils.PyDataset):
    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        rows = slice(4 * index, 4 * index + 4)
        return X[rows].astype("float32"), Y[rows]


def _endless() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    batches = _Batches()
    while True:
        for index in range(5):
            yield batches[index]


ARGUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "arrays": lambda: {"x": X, "y": Y, "batch_size": 8, "epochs": 3, "shuffle": False},
    "the default batch size": lambda: {"x": X, "y": Y, "epochs": 2, "shuffle": False},
    "sample weights": lambda: {"x": X, "y": Y, "sample_weight": WEIGHTS, "batch_size": 8, "shuffle": False},
    "class weights": lambda: {"x": X, "y": Y, "class_weight": {0: 2.0, 3: 0.5}, "batch_size": 8, "shuffle": False},
    "class weights of batches": lambda: {"x": _Batches(), "class_weight": {0: 2.0, 3: 0.5}, "shuffle": False},
    "a validation split": lambda: {
        "x": X, "y": Y, "validation_split": 0.3, "batch_size": 4, "epochs": 2, "shuffle": False,
    },
    "validation data": lambda: {
        "x": X, "y": Y, "validation_data": (X[:7], Y[:7], WEIGHTS[:7]), "validation_batch_size": 3, "shuffle": False,
    },
    "validation at times": lambda: {
        "x": X, "y": Y, "validation_data": _Batches(), "validation_freq": 2, "epochs": 4, "shuffle": False,
        "validation_steps": 2,
    },
    "a PyDataset": lambda: {"x": _Batches(), "epochs": 2, "shuffle": False},
    "a generator": lambda: {"x": _endless(), "steps_per_epoch": 3, "epochs": 3, "shuffle": False},
    "later epochs": lambda: {"x": X, "y": Y, "initial_epoch": 2, "epochs": 4, "shuffle": False},
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ARGUMENTS)
def test_fit_gives_the_losses_and_weights_of_keras(case: str) -> None:
    model, peer = pair()
    history = model.fit(**ARGUMENTS[case](), verbose=0)
    expected = peer.fit(**ARGUMENTS[case](), verbose=0)
    for name in ("loss", "val_loss", "val_accuracy"):
        assert (name in history) == (name in expected.history)
        np.testing.assert_allclose(history.get(name, []), expected.history.get(name, []), rtol=2e-6, atol=1e-7)
    for value, other in zip(model.get_weights(), peer.get_weights(), strict=True):
        np.testing.assert_allclose(value, other, rtol=2e-6, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["arrays", "later epochs"])
def test_epochs_of_a_call_in_keras_style_count_as_in_keras(case: str) -> None:
    model, peer = pair()
    look, theirs = keras.callbacks.Callback(), keras.callbacks.Callback()
    history = model.fit(**ARGUMENTS[case](), callbacks=look, verbose=0)
    expected = peer.fit(**ARGUMENTS[case](), callbacks=theirs, verbose=0)
    assert (history.epoch, history.params) == (expected.epoch, expected.params)
    assert look.params == theirs.params
    batches = [(X[:8], Y[:8])]
    assert model.fit(2, batches, verbose=0).epoch == model.train(2, batches, verbose=0).epoch == [1, 2]
    later = model.fit(4, batches, initial_epoch=2, verbose=0)
    assert (later.epoch, later.params["epochs"]) == ([3, 4], 2)


@pytest.mark.slow
def test_arguments_by_position_are_those_of_keras() -> None:
    (model, _), (other, _) = pair(), pair()
    first = model.fit(X, Y, 8, 3, shuffle=False, verbose=0)
    second = other.fit(x=X, y=Y, batch_size=8, epochs=3, shuffle=False, verbose=0)
    assert first["loss"] == second["loss"] and len(first["loss"]) == 3


def test_both_forms_of_fit_are_shown_and_have_the_arguments_that_are_read() -> None:
    ours, theirs = (set(inspect.signature(form).parameters) for form in get_overloads(mixtrain.Model.fit))
    shown = pydoc.plain(pydoc.render_doc(mixtrain.Model.fit))
    assert all(name in shown for name in ours | theirs)
    read = set(inspect.signature(mixtrain.train.keras_calls.epochs_and_data).parameters) - {"networks"}
    assert read == theirs - ours and read <= set(inspect.signature(keras.Model.fit).parameters)


@pytest.mark.slow
def test_sink_feed_takes_arrays_too() -> None:
    (model, _), (other, _) = pair(), pair()
    arguments = {"x": X, "y": Y, "batch_size": 4, "epochs": 2, "shuffle": False, "verbose": 0}
    assert model.fit(**arguments, dataset_sink_mode=True)["loss"] == other.fit(**arguments)["loss"]


def test_shuffled_rows_come_in_another_order_in_each_epoch_and_a_seed_repeats_them() -> None:
    orders = []
    for _ in range(2):
        keras.utils.set_random_seed(7)
        data = mixtrain.train.keras_data.ArrayBatches((np.arange(ROWS),), 6, shuffle=True)
        passes = []
        for _ in range(2):
            data.on_epoch_begin()
            passes.append(np.concatenate([data[index][0] for index in range(len(data))]).tolist())
        assert passes[0] != passes[1] and sorted(passes[0]) == sorted(passes[1]) == list(range(ROWS))
        orders.append(passes)
    assert orders[0] == orders[1]


@pytest.mark.slow
def test_a_generator_goes_on_where_an_epoch_ended() -> None:
    taken: list[int] = []

    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for number, batch in enumerate(_endless()):
            taken.append(number)
            yield batch

    model, _ = pair()
    model.fit(batches(), steps_per_epoch=3, epochs=2, verbose=0)
    assert taken == list(range(6))


@pytest.mark.slow
def test_a_generator_validates_on_the_same_batches_each_epoch() -> None:
    def batches_of(count: int) -> Any:
        return ((X[8 * index : 8 * index + 8], Y[8 * index : 8 * index + 8]) for index in range(count))

    rows = {"epochs": 3, "batch_size": 8, "shuffle": False, "verbose": 0}
    kept = {
        name: pair()[0].fit(X, Y, **rows, validation_data=data, validation_steps=2)["val_loss"]
        for name, data in (("generator", batches_of(3)), ("list", (X[:16], Y[:16])))
    }
    assert kept["generator"] == pytest.approx(kept["list"], rel=1e-6)


def test_a_generator_that_ends_says_after_how_many_batches() -> None:
    model, _ = pair()
    few = iter([_Batches()[0]] * 4)
    with pytest.raises(ValueError, match="data for 3 batches an epoch; they ended after 4"):
        model.fit(few, steps_per_epoch=3, epochs=2, verbose=0)


@pytest.mark.slow
def test_several_inputs_are_a_dict_or_a_list_of_arrays() -> None:
    left, right = keras.Input((3,), name="left"), keras.Input((3,), name="right")
    outputs = keras.layers.Dense(1)(keras.layers.concatenate([left, right]))
    labels = X.sum(axis=1, keepdims=True)
    for arrays in ({"left": X, "right": X}, [X, X]):
        models = []
        for _ in range(2):
            keras.utils.set_random_seed(1)
            models.append(keras.models.clone_model(keras.Model([left, right], outputs)))
        models[1].set_weights(models[0].get_weights())
        models[1].compile("sgd", "mse")
        model = mixtrain.Model(models[0], "mse", "sgd")
        history = model.fit(arrays, labels, batch_size=8, shuffle=False, verbose=0)
        expected = models[1].fit(arrays, labels, batch_size=8, shuffle=False, verbose=0)
        np.testing.assert_allclose(history["loss"], expected.history["loss"], rtol=2e-6)
        np.testing.assert_allclose(
            model.predict(arrays, batch_size=6), models[1].predict(arrays, batch_size=6, verbose=0), atol=1e-6
        )


@pytest.mark.slow
def test_evaluate_returns_the_loss_and_the_metrics_of_keras() -> None:
    model, peer = pair()
    for arguments in ({}, {"sample_weight": WEIGHTS}, {"batch_size": 3, "steps": 2}):
        result = model.evaluate(X, Y, **arguments)
        np.testing.assert_allclose(result, peer.evaluate(X, Y, verbose=0, **arguments), rtol=1e-6)
        by_name = model.evaluate(X, Y, **arguments, return_dict=True)
        assert by_name == dict(zip(("loss", "accuracy"), result, strict=True))
    np.testing.assert_allclose(model.evaluate(_Batches()), peer.evaluate(_Batches(), verbose=0), rtol=1e-6)
    assert isinstance(mixtrain.Model(network(), _loss()).evaluate(X, Y), float)


@pytest.mark.slow
def test_predict_of_a_keras_network_gives_numpy_arrays_batch_by_batch() -> None:
    model, peer = pair()
    many = np.tile(X, (5, 1))
    for data, options in ((many, {}), (X, {"batch_size": 3}), (X.tolist(), {}), (_Batches(), {}), (X, {"steps": 1})):
        data = np.asarray(data) if isinstance(data, list) else data
        result = model.predict(data, **options)
        assert type(result) is np.ndarray
        np.testing.assert_allclose(result, peer.predict(data, verbose=0, **options), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(3,), (3, 0), (None, 0, 1), (6, "auto", 2, [])], ids=str)
def test_what_follows_the_only_input_of_predict_is_what_it_is_in_keras(arguments: tuple[Any, ...]) -> None:
    model, peer = pair()
    result = model.predict(X, *arguments)
    np.testing.assert_allclose(result, peer.predict(X, *arguments), rtol=1e-5, atol=1e-6)


class _Predicting(keras.callbacks.Callback):
    """Notes what it is told of, and stops after the third batch."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Any] = []

    def on_predict_begin(self, logs: Any = None) -> None:
        self.events.append((type(self.model).__name__, self.params["steps"], logs))

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.events.append((batch, logs))

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        self.events.append((batch, np.asarray(logs["outputs"]).shape))
        self.model.stop_predicting = batch == 2

    def on_predict_end(self, logs: Any = None) -> None:
        self.events.append(logs)


def test_callbacks_of_predict_are_called_as_in_keras_and_may_stop_it() -> None:
    model, peer = pair()
    here, there = _Predicting(), _Predicting()
    for _ in range(2):
        result = model.predict(X, batch_size=4, steps=5, callbacks=[here])
        np.testing.assert_allclose(
            result, peer.predict(X, batch_size=4, steps=5, callbacks=[there], verbose=0), rtol=1e-5, atol=1e-6
        )
        assert len(result) == 12
    assert here.events == there.events and len(here.events) == 2 * 8


def test_summary_layers_and_weights_are_those_of_the_network(capsys: pytest.CaptureFixture[str]) -> None:
    model, peer = pair()
    model.summary()
    assert "dense" in capsys.readouterr().out
    assert [type(layer) for layer in model.layers] == [type(layer) for layer in peer.layers]
    model.set_weights([np.ones_like(value) for value in peer.get_weights()])
    assert all((value == 1).all() for value in model.get_weights())
    assert isinstance(model.optimizer, keras.optimizers.SGD)


@pytest.mark.slow
def test_weights_that_are_set_are_those_of_half_layers_too() -> None:
    model = mixtrain.Model(
        network(), _loss(), keras.optimizers.SGD(), amp_level="O3", cast_model_type="float16", loss_scale_manager=None
    )
    model.set_weights([np.full_like(value, 0.25) for value in model.get_weights()])
    model.fit(X, Y, verbose=0, class_weight={0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0})
    assert all(np.allclose(value, 0.25) for value in model.get_weights())


REFUSED: dict[str, tuple[Callable[[mixtrain.Model], Any], type[Exception], str]] = {
    "both styles": (lambda m: m.fit(2, [], batch_size=4), TypeError, "arguments of one style"),
    "an argument twice": (lambda m: m.fit(X, Y, x=X), TypeError, "each argument once; got x by position and by name"),
    "several lengths": (lambda m: m.fit(X, Y[:5]), ValueError, "as many rows as each other"),
    "labels beside a dataset": (lambda m: m.fit(_Batches(), Y), ValueError, "y must not be given beside a dataset"),
    "a generator without steps": (lambda m: m.fit(_endless()), ValueError, "needs the number of its batches"),
    "both weights": (
        lambda m: m.fit(X, Y, class_weight={0: 1.0}, sample_weight=WEIGHTS), ValueError, "must not be given both"
    ),
    "a split of a dataset": (lambda m: m.fit(_Batches(), validation_split=0.2), ValueError, "needs arrays"),
    "a split of everything": (lambda m: m.fit(X, Y, validation_split=1.5), ValueError, "above 0 and below 1"),
    "a split of too few": (lambda m: m.fit(X[:1], Y[:1], validation_split=0.1), ValueError, "rows on both sides"),
    "odd validation data": (lambda m: m.fit(X, Y, validation_data=3), TypeError, "must be \\(x, y\\)"),
    "a batch size of 0": (lambda m: m.fit(X, Y, batch_size=0), ValueError, "batch_size must be"),
    "a batch size of text": (lambda m: m.predict(X, batch_size="8"), TypeError, "batch_size must be an int; got str"),
    "a batch size twice": (
        lambda m: m.predict(X, 8, batch_size=4), TypeError, "got 2 by position and batch_size also by name"
    ),
    "a callback of training": (
        lambda m: m.predict(X, callbacks=[mixtrain.Callback()]), TypeError, "mixtrain.Callback has no hooks of predict"
    ),
    "a number to predict": (lambda m: m.predict(np.array(1.0)), ValueError, "got shapes \\(\\)"),
    "nothing": (lambda m: m.evaluate(), TypeError, "data must be given"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused_in_a_sentence(case: str) -> None:
    call, kind, words = REFUSED[case]
    model, peer = pair()
    with pytest.raises(kind, match=words):
        call(model)
    assert all(map(np.array_equal, model.get_weights(), peer.get_weights()))


def test_a_cell_is_asked_for_in_its_own_words() -> None:
    model = mixtrain.Model(mixtrain.nn.Dense(3, 1), mixtrain.nn.MSELoss())
    with pytest.raises(TypeError, match="the network must be a keras.Model"):
        model.summary()
    with pytest.raises(TypeError, match="batches need a Keras network"):
        model.predict(np.ones((4, 3), np.float32), batch_size=2)
    for options in ({"batch_size": 0}, {"steps": 0}):
        with pytest.raises(TypeError, match="batches need a Keras network"):
            model.predict(np.ones((4, 3), np.float32), **options)


@pytest.mark.slow
def test_evaluate_lists_values_in_the_order_of_keras() -> None:
    metrics = ["sparse_top_k_categorical_accuracy", "accuracy"]
    peer = network()
    peer.compile("sgd", _loss(), metrics=metrics)
    model = mixtrain.Model(network(), _loss(), keras.optimizers.SGD(), metrics=metrics)
    np.testing.assert_allclose(model.evaluate(X, Y), peer.evaluate(X, Y, verbose=0), rtol=2e-6)


@pytest.mark.slow
def test_evaluate_lists_values_of_several_outputs_in_the_order_of_keras() -> None:
    def two_ends() -> keras.Model:
        keras.utils.set_random_seed(3)
        inputs = keras.Input((3,))
        ends = [keras.layers.Dense(4, name="kind")(inputs), keras.layers.Dense(1, name="size")(inputs)]
        return keras.Model(inputs, ends)

    options: dict[str, Any] = {"metrics": [["accuracy"], ["mse", "mae"]]}
    peer = two_ends()
    peer.compile("sgd", [_loss(), "mse"], **options)
    model = mixtrain.Model(two_ends(), [_loss(), "mse"], keras.optimizers.SGD(), **options)
    sizes = X[:, :1].astype("float32")
    result = model.evaluate(X, (Y, sizes), batch_size=ROWS)
    np.testing.assert_allclose(result, peer.evaluate(X, [Y, sizes], batch_size=ROWS, verbose=0), rtol=2e-6)
