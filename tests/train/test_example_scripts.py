"""What Keras's public examples do beside the usual: each here as small as it shows, with the numbers of `fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import Model
from tests.backends import ON_TENSORFLOW, quick_only_some

layers = keras.layers
DRAW = np.random.default_rng(2)
X = DRAW.standard_normal((16, 4)).astype(np.float32)
Y = X.sum(1, keepdims=True)


def trained(wrap: Callable[[keras.Model], Any], network: keras.Model, x: Any = X, y: Any = Y) -> list[float]:
    network.compile("sgd", "mse", auto_scale_loss=False)
    history = wrap(network).fit(x, y, epochs=2, batch_size=8, shuffle=False, verbose=0)
    return history.history["loss"]  # type: ignore[no-any-return]


class Silent(keras.Model):
    """Its `call` does not take `training`."""

    def __init__(self) -> None:
        super().__init__()
        self.body = keras.Sequential([layers.BatchNormalization(), layers.Dropout(0.5), layers.Dense(1)])

    def call(self, x: Any) -> Any:
        return self.body(x)


class Forwarding(Silent):
    """Its `call` takes `training`, and hands it on."""

    def call(self, x: Any, training: bool = False) -> Any:  # type: ignore[override]
        return self.body(x, training=training)


def made(kind: type[keras.Model]) -> keras.Model:
    keras.utils.set_random_seed(0)
    return kind()


@pytest.mark.parametrize("kind", quick_only_some([Silent, Forwarding]))
def test_a_call_is_told_that_it_trains_only_where_keras_tells_it(kind: type[keras.Model]) -> None:
    expected = trained(lambda network: network, made(kind))
    assert trained(Model, made(kind)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(not ON_TENSORFLOW, reason="Keras 3.15 on JAX does not pass it on in fit: docs/from_keras.md")
def test_layers_train_where_their_model_is_told_to_and_does_not_say_so() -> None:
    class Keeping(Silent):
        def call(self, x: Any, training: bool = False) -> Any:  # type: ignore[override]
            return self.body(x)

    assert trained(Model, made(Keeping)) == pytest.approx(trained(lambda network: network, made(Keeping)), rel=1e-6)


def combined(*, by_key: bool = False) -> keras.Model:
    """Return a generator before a discriminator of two outputs, which both have its name, as an ACGAN is written.

    `by_key`: Whether the outputs are a dict.
    """
    keras.utils.set_random_seed(0)
    entry = keras.Input((3,))
    outputs = [layers.Dense(1, "sigmoid")(entry), layers.Dense(5, "softmax")(entry)]
    discriminator = keras.Model(entry, outputs, name="discriminator")
    noise = keras.Input((4,))
    made: Any = discriminator(layers.Dense(3)(noise))
    losses: Any = ["binary_crossentropy", "sparse_categorical_crossentropy"]
    weights: Any = [1.0, 0.5]
    if by_key:
        made, losses, weights = (dict(zip(("real", "kind"), values, strict=True)) for values in (made, losses, weights))
    network = keras.Model(noise, made)
    network.compile("sgd", losses, loss_weights=weights)
    return network


@pytest.mark.slow
@pytest.mark.parametrize("by_key", [False, True])
def test_outputs_of_one_name_have_the_losses_in_their_order_or_by_key(by_key: bool) -> None:
    labels: Any = [np.ones((16, 1), np.float32), DRAW.integers(0, 5, (16, 1))]
    labels = dict(zip(("real", "kind"), labels, strict=True)) if by_key else labels
    options: dict[str, Any] = {"epochs": 2, "batch_size": 8, "shuffle": False, "verbose": 0}
    theirs, ours = combined(by_key=by_key), Model(combined(by_key=by_key))
    expected = theirs.fit(X, labels, **options).history["loss"]
    assert ours.fit(X, labels, **options)["loss"] == pytest.approx(expected, rel=1e-6)
    assert ours.evaluate(X, labels, verbose=0)[0] == pytest.approx(theirs.evaluate(X, labels, verbose=0)[0], rel=1e-6)
    assert ours.train_on_batch(X, labels)[0] == pytest.approx(theirs.train_on_batch(X, labels)[0], rel=1e-6)


def test_the_input_of_predict_has_a_name() -> None:
    network = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    expected = network.predict(X, verbose=0)
    np.testing.assert_allclose(Model(network).predict(x=X, batch_size=8, verbose=0), expected, rtol=1e-6)


class Tokens(layers.Layer):
    """Looks up tokens that its network gets as floats, as `keras.Input` has them by default."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.embedding = layers.Embedding(words, 2)

    def call(self, x: Any) -> Any:
        return self.embedding(x)


@pytest.mark.parametrize(("half", "whole"), [("bfloat16", 256), ("float16", 2048)])
def test_tokens_that_a_cast_to_half_would_round_are_refused(half: Any, whole: int) -> None:
    def looked_up(words: int, dtype: str) -> np.ndarray:
        network = keras.Sequential([keras.Input((3,), dtype=dtype), Tokens(words)])
        ids = np.array([[0, words // 2, words - 1]], dtype)
        return np.asarray(Model(network, amp_level="O2", cast_model_type=half).predict(ids, verbose=0))

    assert looked_up(whole + 1, "float32").shape == looked_up(whole + 2, "int32").shape == (1, 3, 2)
    with pytest.raises(ValueError, match=f"indices up to {whole + 1} must not be rounded.*up to {whole}; got '{half}'"):
        looked_up(whole + 2, "float32")


class Batches(keras.utils.PyDataset):
    """Four batches of four rows."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        rows = slice(4 * index, 4 * index + 4)
        return X[rows], Y[rows]


def pipeline() -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)


@pytest.mark.parametrize("make", [Batches, pytest.param(pipeline, marks=(pytest.mark.tensorflow, pytest.mark.slow))])
def test_a_batch_size_beside_batches_is_ignored_as_in_keras(make: Callable[[], Any]) -> None:
    data = make()
    losses = []
    for wrap in (lambda network: network, Model):
        keras.utils.set_random_seed(0)
        network = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
        network.compile("sgd", "mse")
        history = wrap(network).fit(data, batch_size=16, shuffle=False, verbose=0)
        losses.append(history.history["loss"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-6)


def test_a_network_without_weights_to_train_is_told() -> None:
    entry = keras.Input((4,))
    network = keras.Model(entry, layers.Rescaling(2.0)(entry))
    network.compile("adam", "mse")
    with pytest.raises(ValueError, match=r"the network must have trainable weights; got \[\]"):
        Model(network).fit(X, X)


class OfOneGraph(keras.Model):
    """Adds up the nodes along edges that are known, so that it cannot run on one row; another mode has a layer too."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.of_another_mode = keras.layers.Dense(4), keras.layers.Dense(4)

    def call(self, x: Any) -> Any:
        sources, targets = np.array([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]], np.int32)
        gathered = keras.ops.take(self.used(x), sources, axis=0)
        return keras.ops.segment_sum(gathered, targets, num_segments=keras.ops.shape(x)[0])


@pytest.mark.filterwarnings("ignore:.*looks like it has unbuilt state")
@pytest.mark.parametrize("called", quick_only_some([False, True]))
def test_a_network_whose_rows_belong_together_is_built_by_all_of_them(called: bool) -> None:
    x = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)
    losses = []
    for ours in (False, True):
        keras.utils.set_random_seed(0)
        network = OfOneGraph()
        if called:
            network(x)
        network.compile(keras.optimizers.SGD(0.1), "mse")
        trains: Any = Model(network) if ours else network
        history = trains.fit(x, np.zeros((6, 4), np.float32), batch_size=6, epochs=2, shuffle=False, verbose=0)
        losses.append(history.history["loss"])
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)
