"""Which layers a plan multiplies in float8, what it says of the others, and that undoing it leaves nothing."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model, nn
from mixtrain.amp import auto_mixed_precision, custom_mixed_precision
from mixtrain.network.marks import HISTORIES
from mixtrain.precision.apply import apply_plan
from mixtrain.precision.planner import plan_precision

L = keras.layers


def mlp(*units: int, inputs: int = 32) -> keras.Model:
    keras.utils.set_random_seed(0)
    layers = [L.Dense(size, "relu", name=f"d{number}") for number, size in enumerate(units, 1)]
    return keras.Sequential([keras.Input((inputs,)), *layers])


def rules(plan: Any) -> dict[str, str]:
    """Return the layers that multiply in float8, by path, with their rule."""
    return {row.path: row.float8.name for row in plan.rows if row.float8 is not None}


def why(plan: Any, path: str) -> str:
    return plan.row(path).why.partition("not in float8: ")[2]


@pytest.mark.parametrize("level", ["O1", "O2", "O3"])
def test_dense_layers_between_the_first_and_the_last_multiply_in_float8(level: str) -> None:
    plan = plan_precision(mlp(64, 48, 60, 32, 10), level, cast_model_type="float8")
    assert rules(plan) == {"d2": "float8"}
    assert [why(plan, f"d{number}") for number in (1, 5)] == ["it is the first layer", "it is the last layer"]
    assert why(plan, "d3") == "its sizes, 48 and 60, are not multiples of 16"
    assert plan.half == mixtrain.bfloat16 and plan.row("d2").compute_dtype == mixtrain.bfloat16
    text = str(plan)
    assert "float8 (e4m3, gradients e5m2)" in text and text.splitlines()[-1].endswith("products of 1 in float8")
    assert not plan.scales_loss


def test_convolutions_and_recurrent_layers_stay_in_half_and_the_plan_says_so() -> None:
    keras.utils.set_random_seed(0)
    network = keras.Sequential([
        keras.Input((8, 8, 3)), L.Conv2D(16, 3, name="conv1"), L.Conv2D(16, 3, name="conv2"),
        L.BatchNormalization(name="norm"), L.Reshape((16, 16)), L.LSTM(16, name="lstm"), L.Dense(16, name="d"),
        L.Dense(2, name="head"),
    ])
    plan = plan_precision(network, "O2", cast_model_type="float8")
    assert rules(plan) == {"d": "float8"}
    for path in ("conv2", "lstm"):
        assert why(plan, path) == "only the products of dense layers are"
    assert "float8" not in plan.row("norm").why


def test_attention_of_keras_and_of_cells_multiplies_its_projections_in_float8() -> None:
    tokens = keras.Input((16,), dtype="int32")
    x = L.Embedding(50, 32, name="embed")(tokens)
    x = L.MultiHeadAttention(2, 16, name="attention")(x, x)
    network = keras.Model(tokens, L.Dense(4, name="head")(x))
    found = rules(plan_precision(network, "O2", cast_model_type="float8"))
    assert {path.rpartition("/")[2].rpartition(".")[2] for path in found} == {
        "query", "key", "value", "attention_output"
    }

    class Block(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.attention = nn.Embedding(50, 32), nn.MultiheadAttention(32, 2, batch_first=True)
            self.head = nn.Dense(32, 4)

        def construct(self, tokens: Any) -> Any:
            x = self.embed(tokens)
            return self.head(self.attention(x, x, x)[0])

    assert set(rules(plan_precision(Block(), "O2", cast_model_type="float8"))) == {"attention", "attention.out_proj"}


def test_to_float_is_a_rule_for_products_and_leaves_the_rest_to_the_level() -> None:
    network = mlp(64, 30, 10)
    mixtrain.to_float(network, mixtrain.float8)
    for level, dtype in (("O0", "float32"), ("O2", "float16")):
        plan = plan_precision(network, level)
        # A user's rule holds for the first, the last and odd sizes too.
        assert rules(plan) == dict.fromkeys(("d1", "d2", "d3"), "float8")
        assert plan.row("d2").compute_dtype.name == dtype
    mixtrain.to_float(network.get_layer("d2"), mixtrain.float32)
    assert set(rules(plan_precision(network, "O2"))) == {"d1", "d3"}
    mixtrain.to_float(network.get_layer("d2"), mixtrain.float8_delayed)
    plan = plan_precision(network, "O2")
    assert rules(plan)["d2"] == "float8_delayed" and plan.row("d2").compute_dtype == mixtrain.float32


def test_lists_take_patterns_of_paths() -> None:
    network = custom_mixed_precision(mlp(64, 64, 10), white_list=["d[12]"], dtype="float8")
    plan = Model(network).precision_report()
    assert rules(plan) == {"d1": "float8", "d2": "float8"}
    assert plan.row("d3").compute_dtype == mixtrain.float32


def test_layers_whose_products_are_not_keras_s_are_left_out_with_the_reason() -> None:
    class Own(L.Dense):
        def call(self, inputs: Any, training: Any = None) -> Any:
            return super().call(inputs) * 2

    keras.utils.set_random_seed(0)
    layers = [L.Dense(16, name="a"), Own(16, name="own"), L.Dense(16, name="int8"), L.Dense(16, name="set")]
    network = keras.Sequential([keras.Input((16,)), *layers])
    layers[2].quantize("int8")
    layers[3].call = lambda inputs: inputs
    mixtrain.to_float(network, "float8")
    plan = plan_precision(network, "O2")
    assert set(rules(plan)) == {"a"}
    assert why(plan, "own") == why(plan, "set") == "its own code multiplies"
    assert why(plan, "int8") == "it is quantized"


@pytest.mark.parametrize("rule", ["float8", "float8_delayed"])
@pytest.mark.parametrize("of_cells", [False, True])
def test_undoing_a_plan_leaves_the_network_as_it_was(of_cells: bool, rule: str) -> None:
    mixtrain.set_seed(0)
    network: Any = nn.SequentialCell(*[nn.Dense(16, 16) for _ in range(3)]) if of_cells else mlp(16, 16, 16, inputs=16)
    layers = list(network) if of_cells else network.layers
    before = [dict(vars(layer)) for layer in layers]
    names = [weight.path for weight in network.weights] if not of_cells else network.parameters_dict().keys()
    x = np.random.default_rng(0).standard_normal((4, 16)).astype(np.float32)
    x = mixtrain.Tensor(x) if of_cells else x
    plain = np.array(network(x))
    applied = apply_plan(network, plan_precision(network, "O2", cast_model_type=rule))
    assert (HISTORIES.of(layers[1]) is not None) == (rule == "float8_delayed")
    narrow = np.array(network(x))
    assert list(names) == list(network.parameters_dict() if of_cells else [item.path for item in network.weights])
    applied.undo()
    assert 1e-4 < np.abs(narrow - plain).max() < 0.3
    np.testing.assert_array_equal(np.array(network(x)), plain)
    for layer, attributes in zip(layers, before, strict=True):
        added = {name for name in vars(layer).keys() - attributes.keys() if not name.endswith("version")}
        assert added == set() and "multiply" not in vars(layer)


@pytest.mark.parametrize("make", [
    lambda network: auto_mixed_precision(network, "O2", cast_model_type="float8_delayed"),
    lambda network: mixtrain.keras.prepare(
        network, keras.optimizers.SGD(0.1), "O2", cast_model_type="float8_delayed"
    ),
    lambda network: mixtrain.amp.initialize(
        mixtrain.to_float(network, "float8_delayed"), keras.optimizers.SGD(0.1), opt_level="O2"
    ),
], ids=["auto_mixed_precision", "prepare", "initialize"])
def test_scales_of_earlier_steps_are_refused_where_nothing_would_update_them(make: Any) -> None:
    network = mlp(16, 16, 16, inputs=16)
    with pytest.raises(ValueError, match=r"need a train step that updates them; got 'float8_delayed'\. Write mixtrain"):
        make(network)
    assert all("call" not in vars(layer) for layer in network.layers)


@pytest.mark.parametrize("name", ["fp8", "mixed_float8"])
def test_other_names_of_float8_say_what_to_write(name: str) -> None:
    with pytest.raises(ValueError, match='Write amp_level="O2", cast_model_type="float8"'):
        plan_precision(mlp(16, 16), name)  # type: ignore[arg-type]
