"""Softmax, sigmoid and kin that end a network compute in float32 at every level, and the table says why."""

from __future__ import annotations

import functools
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp, backend, nn
from tests.backends import on_jax_only_some, quick_every
from tests.precision.zoo_trace import contradicted, recording, uncalled

L, ops = keras.layers, keras.ops
F32 = mixtrain.float32
LEVELS = ["O1", "O2", "O3"]
X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


def sequence(*layers: Any) -> keras.Model:
    return keras.Sequential([keras.Input((6,)), L.Dense(6, activation="relu", name="body"), *layers])


def graph(*ends: Any) -> keras.Model:
    """Return a model whose outputs are what `ends` make of one hidden layer."""
    inputs = keras.Input((6,))
    hidden = L.Dense(6, activation="relu", name="body")(inputs)
    outputs = [end(hidden) for end in ends]
    return keras.Model(inputs, outputs if len(outputs) > 1 else outputs[0])


def kept(network: Any, level: str) -> dict[str, str]:
    """Return why layers compute in float32 because of probabilities, by path."""
    rows = amp.plan_precision(network, level).rows
    assert all(row.compute_dtype == row.output_dtype == F32 for row in rows if "that ends the network" in row.why)
    return {row.path: row.why for row in rows if "that ends the network" in row.why}


def _first(x: Any) -> Any:
    return x[:, :1]


def ends(word: str) -> str:
    return f"a {word} that ends the network"


def passes(word: str) -> str:
    return f"passes on the {word} that ends the network"


# ---- which layers compute probabilities ---------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "sigmoid", "log_sigmoid", "hard_sigmoid", "sparsemax",
                                  "sparse_sigmoid"])
def test_an_activation_by_name_function_layer_and_operation(name: str, level: str) -> None:
    function = getattr(keras.activations, name)
    for activation in (name, function, getattr(ops, name), functools.partial(function)):
        assert kept(sequence(L.Dense(3, activation=activation, name="end")), level) == {"end": ends(name)}
    result = kept(sequence(L.Dense(3), L.Activation(name, name="end")), level)
    assert result == {"end": ends(name)}
    result = kept(graph(lambda hidden: getattr(ops, name)(L.Dense(3)(hidden))), level)
    assert list(result.values()) == [ends(name)]


@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
def test_layers_whose_work_it_is(level: str) -> None:
    assert kept(sequence(L.Dense(3), L.Softmax(name="end")), level) == {"end": ends("softmax")}
    activation = L.Softmax(name="inside")
    assert kept(sequence(L.Dense(3, activation=activation, name="end")), level)["end"] == ends("softmax")
    image = keras.Sequential([keras.Input((4, 4, 2)), L.Conv2D(1, 1, activation="sigmoid", name="end")])
    assert kept(image, level) == {"end": ends("sigmoid")}


@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
@pytest.mark.parametrize(("cell", "word"), [
    (nn.Sigmoid, "sigmoid"), (nn.LogSigmoid, "log_sigmoid"), (nn.HSigmoid, "hard_sigmoid"), (nn.Softmax, "softmax"),
    (nn.LogSoftmax, "log_softmax"), (nn.Softmin, "softmin"),
], ids=lambda value: getattr(value, "__name__", value))
def test_cells(cell: Any, word: str, level: str) -> None:
    assert kept(nn.SequentialCell(nn.Dense(6, 3), cell()), level) == {"1": ends(word)}
    net = nn.SequentialCell(nn.Dense(6, 6), nn.Dense(6, 3, activation=cell()))
    assert kept(net, level) == {"1": ends(word), "1.activation": ends(word)}


# ---- where a network ends -----------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
def test_what_passes_probabilities_on_is_float32_too(level: str) -> None:
    for last in (
        L.Reshape((3, 1)), L.Identity(), L.Flatten(), L.Permute((1,)), L.Dropout(0.1), L.Activation("linear"),
        L.RepeatVector(2), L.Lambda(_first), nn.CellLayer(nn.Flatten()),
    ):
        result = kept(sequence(L.Dense(3, activation="sigmoid", name="end"), last), level)
        assert result.pop("end") == ends("sigmoid") and set(result.values()) == {passes("sigmoid")}


@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
def test_nested_networks_and_wrappers(level: str) -> None:
    inner = keras.Sequential([L.Dense(3), L.Activation("softmax", name="soft"), L.Dropout(0.1, name="drop")], name="in")
    middle = keras.Model(inputs := keras.Input((6,)), inner(inputs), name="mid")
    assert kept(sequence(middle, L.Identity(name="same")), level) == {
        "mid/in/soft": ends("softmax"), "mid/in/drop": passes("softmax"), "same": passes("softmax"),
    }
    steps = keras.Sequential([keras.Input((4, 6)), L.TimeDistributed(L.Dense(2, activation="softmax"), name="each")])
    assert kept(steps, level)["each"] == ends("softmax")
    cells = keras.Sequential([keras.Input((6,)), nn.CellLayer(nn.SequentialCell(nn.Dense(6, 1), nn.Sigmoid()))])
    assert list(kept(cells, level).values()) == [ends("sigmoid")]
    mixed = nn.SequentialCell(nn.Dense(6, 6), L.Dense(1, activation="sigmoid", name="keras"), nn.Flatten())
    assert kept(mixed, level) == {"1": ends("sigmoid"), "2": passes("sigmoid")}


@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
def test_every_output_of_a_functional_model_is_followed(level: str) -> None:
    both = L.Dense(3, activation="softmax", name="both")
    network = graph(
        lambda hidden: L.Reshape((1, 1), name="shape")(L.Dense(1, activation="sigmoid", name="one")(hidden)),
        lambda hidden: L.Dense(2, name="logits")(hidden),
        lambda hidden: L.Average(name="mean")([both(hidden), both(L.Dense(6, activation="sigmoid", name="h")(hidden))]),
    )
    assert kept(network, level) == {
        "one": ends("sigmoid"), "shape": passes("sigmoid"), "both": ends("softmax"), "mean": passes("softmax"),
    }


@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
def test_probabilities_inside_a_network_follow_the_level(level: str) -> None:
    gate = L.Dense(6, activation="sigmoid", name="gate")
    assert kept(graph(lambda hidden: L.Multiply()([hidden, gate(hidden)])), level) == {}
    assert kept(sequence(L.Dense(6, activation="sigmoid"), L.Dense(1)), level) == {}
    assert kept(nn.SequentialCell(nn.Dense(6, 6, activation="sigmoid"), nn.Dense(6, 1)), level) == {}


class Heads(keras.Model):
    """A policy and a value, as agents have them."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = L.Dense(3, activation="softmax", name="policy")
        self.body = L.Dense(6, activation="sigmoid", name="body")
        self.value = L.Dense(1, name="value")

    def call(self, inputs: Any) -> Any:
        hidden = self.body(inputs)
        return {"policy": self.policy(hidden), "value": self.value(hidden)}


class Classifier(nn.Cell):
    """A Cell whose activations are assigned before its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.sigmoid = nn.ReLU(), nn.Sigmoid()
        self.first, self.second = nn.Dense(6, 6), nn.Dense(6, 1)

    def construct(self, x: Any) -> Any:
        x = self.relu(self.first(x))
        return self.sigmoid(self.second(x)).squeeze(-1)


@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
def test_networks_with_a_method_of_their_own_end_where_it_returns(level: str) -> None:
    assert kept(Heads(), level) == {"policy": ends("softmax")}
    assert kept(Classifier(), level) == {"sigmoid": ends("sigmoid")}


def test_rules_of_the_users_and_o0_go_before() -> None:
    network = sequence(L.Dense(3, activation="softmax", name="end"))
    assert kept(network, "O0") == {}
    mixtrain.to_float(network.get_layer("end"), mixtrain.float16)
    assert amp.plan_precision(network, "O2").row("end").compute_dtype == "float16"
    network = sequence(L.Dense(3, activation="softmax", name="end", dtype="mixed_bfloat16"))
    assert amp.plan_precision(network, "O2").row("end").compute_dtype == "bfloat16"


@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
def test_layers_take_and_give_what_the_table_says(level: str) -> None:
    inner = keras.Sequential([L.Dense(3), L.Softmax(), L.Dropout(0.1)], name="inner")
    network = graph(
        inner, lambda hidden: L.Reshape((1, 1))(L.Dense(1, activation="sigmoid")(hidden)),
        lambda hidden: ops.sigmoid(L.Dense(2)(hidden)), L.Dense(2, dtype="mixed_bfloat16"), L.Dense(2),
    )
    model = mixtrain.Model(network, amp_level=level)
    with recording(model.precision_report()) as seen:
        model.predict(X)
    assert uncalled(seen) == set() and contradicted(model.precision_report(), seen) == []


# ---- the numbers --------------------------------------------------------------------------------------------------
@quick_every(15)
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("level", on_jax_only_some(LEVELS, [1]))
@pytest.mark.parametrize("kind", ["activation", "layer", "operation", "cell"])
def test_confident_errors_keep_their_loss_and_gradient(kind: str, level: str, half: str) -> None:
    make: dict[str, Any] = {
        "activation": lambda: keras.Sequential([keras.Input((1,)), L.Dense(1, activation="sigmoid")]),
        "layer": lambda: keras.Sequential([keras.Input((1,)), L.Dense(1), L.Activation("sigmoid"), L.Reshape((1,))]),
        "operation": lambda: keras.Model(inputs := keras.Input((1,)), ops.sigmoid(L.Dense(1)(inputs))),
        "cell": lambda: nn.SequentialCell(nn.Dense(1, 1), nn.Sigmoid()),
    }
    network, optimizer = make[kind](), keras.optimizers.SGD(1.0)
    weight, bias = list(network.get_parameters()) if kind == "cell" else network.weights
    weight.assign(np.ones((1, 1), np.float32))
    bias.assign(np.zeros((1,), np.float32))
    model = mixtrain.Model(
        network, "binary_crossentropy", optimizer, amp_level=level, cast_model_type=half, loss_scale_manager=None
    )
    # A logit of 12 for a label of 0: in half the probability is 1, and its gradient 0.
    history = model.train(1, [(np.full((1, 1), 12.0, np.float32), np.zeros((1, 1), np.float32))], verbose=0)
    np.testing.assert_allclose(history["loss"], [12.0], rtol=1e-2)
    np.testing.assert_allclose(backend.to_numpy(bias), [-1.0], rtol=2e-2)


@pytest.mark.slow
@pytest.mark.parametrize(("half", "sink"), on_jax_only_some([("bfloat16", False), ("float16", True)]))
def test_training_on_noisy_labels_ends_where_keras_s_mixed_policies_end(half: str, sink: bool) -> None:
    rng = np.random.default_rng(0)
    x = 3 * rng.standard_normal((256, 8)).astype(np.float32)
    clean = x @ rng.standard_normal((8, 1)) > 0
    y = np.where(rng.random((256, 1)) < 0.08, ~clean, clean).astype(np.float32)

    def network(**last: Any) -> keras.Model:
        keras.utils.set_random_seed(1)
        hidden = L.Dense(16, activation="relu")
        return keras.Sequential([keras.Input((8,)), hidden, L.Dense(1, activation="sigmoid", **last)])

    keras.config.set_dtype_policy(f"mixed_{half}")
    theirs = network(dtype="float32")
    keras.config.set_dtype_policy("float32")
    theirs.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", jit_compile=False)
    expected = theirs.fit(x, y, batch_size=32, epochs=15, shuffle=False, verbose=0).history["loss"]
    scaling = mixtrain.FixedLossScaleManager(128.0) if half == "float16" else None
    model = mixtrain.Model(
        network(), "binary_crossentropy", keras.optimizers.Adam(0.01), amp_level="O2", cast_model_type=half,
        loss_scale_manager=scaling,
    )
    batches = [(x[start : start + 32], y[start : start + 32]) for start in range(0, 256, 32)]
    result = model.train(15, batches, dataset_sink_mode=sink, verbose=0)["loss"]
    np.testing.assert_allclose(result, expected, rtol=2e-2)
