"""A dtype that a user gave a Keras layer beats the level, and is told from what Keras gives every layer of a clone."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import amp, nn
from tests.backends import quick_every

L = keras.layers
X = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32)
HALF_LEVELS = ["O1", "O2", "O3"]


@pytest.fixture
def mixed_float16() -> Iterator[None]:
    keras.config.set_dtype_policy("mixed_float16")
    yield
    keras.config.set_dtype_policy("float32")


def network(**head: Any) -> keras.Model:
    """Return the network of Keras's mixed-precision guide: its last layer is given a dtype."""
    layers = [L.Dense(5, activation="relu", name="body"), L.BatchNormalization(name="norm")]
    return keras.Sequential([keras.Input((6,)), *layers, L.Dense(3, name="head", **head)])


def formats(of: Any, level: str = "O2", **options: Any) -> dict[str, str]:
    return {row.path: row.compute_dtype.name for row in amp.plan_precision(of, level, **options).rows}


# ---- the user's dtype is the user's rule --------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("level", HALF_LEVELS)
def test_a_dtype_of_the_users_beats_the_level_and_the_table_says_so(level: str, dtype: str) -> None:
    for given in (dtype, keras.DTypePolicy(dtype)):
        net = network(dtype=given)
        row = amp.plan_precision(net, level).row("head")
        assert (row.rule, row.why) == ("dtype policy", f'the layer has dtype="{dtype}"')
        assert row.compute_dtype == dtype.removeprefix("mixed_")
        assert formats(net, level)["body"] == "float16"


@pytest.mark.slow
@pytest.mark.parametrize("level", HALF_LEVELS)
def test_a_step_computes_a_layer_as_its_user_wrote_and_undo_leaves_the_policy_itself(level: str) -> None:
    net = network(dtype="float32")
    policy, seen = net.get_layer("head").dtype_policy, []
    model = mixtrain.Model(net, "mse", keras.optimizers.SGD(0.01), amp_level=level, loss_scale_manager=None)
    net.get_layer("head").activation = lambda x: seen.append(x.dtype) or x
    model.train(1, [(X, X[:, :3])], verbose=0)
    assert seen and {keras.backend.standardize_dtype(dtype) for dtype in seen} == {"float32"}
    assert net.get_layer("head").compute_dtype == "float32"
    del model
    assert net.get_layer("head").dtype_policy is policy


def test_o0_leaves_every_layer_as_it_is() -> None:
    net = network(dtype="mixed_bfloat16")
    assert {row.rule for row in amp.plan_precision(net, "O0").rows} == {"O0"}
    assert formats(net, "O0")["head"] == "bfloat16"


@pytest.mark.parametrize("level", HALF_LEVELS)
def test_keras_s_idiom_under_a_global_mixed_policy_is_kept(level: str, mixed_float16: None) -> None:
    net = network(dtype="float32")
    assert formats(net, level, cast_model_type="bfloat16") == {
        "": "float32" if level == "O1" else "bfloat16", "body": "bfloat16", "norm": "float32", "head": "float32",
    }
    assert amp.plan_precision(net, "O0").row("head").output_dtype == "float32"


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_policy_that_is_assigned_later_counts_too(dtype: str) -> None:
    net = network()
    net.get_layer("head").dtype_policy = dtype
    assert formats(net)["head"] == dtype.removeprefix("mixed_") and formats(net)["body"] == "float16"


def test_a_keras_layer_in_a_cell_keeps_its_dtype() -> None:
    net = nn.SequentialCell(nn.Dense(6, 6), L.Dense(3, dtype="float32"), L.Dense(3))
    assert formats(net) == {"": "float16", "0": "float16", "1": "float32", "2": "float16"}


def test_a_later_to_float_beats_a_dtype() -> None:
    net = network(dtype="float32")
    mixtrain.to_float(net.get_layer("head"), mixtrain.float16)
    row = amp.plan_precision(net, "O2").row("head")
    assert (row.rule, row.compute_dtype) == ("to_float", "float16")


def test_a_normalization_with_a_dtype_gives_it_too() -> None:
    net = keras.Sequential([keras.Input((6,)), L.BatchNormalization(name="norm", dtype="float32"), L.Dense(3)])
    row = amp.plan_precision(net, "O2").row("norm")
    assert (row.rule, row.output_dtype) == ("dtype policy", "float32")


# ---- lists --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("lists", [
    {"white_list": amp.get_white_list()}, {"white_list": [L.Dense]}, {"white_list": ["*"]},
    {"black_list": amp.get_black_list()},
], ids=["O1's classes", "class", "pattern", "O2's classes"])
def test_a_list_of_classes_or_patterns_leaves_a_layer_with_a_dtype_alone(lists: Any) -> None:
    row = amp.plan_precision(network(dtype="float32"), **lists).row("head")
    assert (row.rule, row.compute_dtype) == ("dtype policy", "float32")


@pytest.mark.parametrize("entry", ["head", "the layer"])
def test_a_list_that_names_the_layer_and_its_dtype_contradict_each_other(entry: str) -> None:
    net = network(dtype="float32")
    named = net.get_layer("head") if entry == "the layer" else entry
    contradiction = 'means float16, dtype="float32" means float32.*remove dtype='
    with pytest.raises(mixtrain.PrecisionRuleError, match=contradiction):
        amp.plan_precision(net, white_list=[named])
    assert amp.plan_precision(net, black_list=[named]).row("head").compute_dtype == "float32"


# ---- layers of layers ---------------------------------------------------------------------------------------------
def planned(layer: Any, level: str = "O2") -> dict[str, str]:
    inputs = keras.Input((4, 6))
    outputs = layer(inputs, inputs) if isinstance(layer, L.MultiHeadAttention) else layer(inputs)
    return formats(keras.Model(inputs, L.Flatten(name="flat")(outputs)), level)


@pytest.mark.slow
@pytest.mark.parametrize("level", HALF_LEVELS)
@pytest.mark.parametrize("make", [
    lambda **own: L.MultiHeadAttention(2, 3, name="it", **own), lambda **own: L.LSTM(3, name="it", **own),
    lambda **own: L.Bidirectional(L.GRU(3), name="it", **own), lambda **own: L.RNN(L.GRUCell(3), name="it", **own),
], ids=["attention", "lstm", "bidirectional", "rnn"])
def test_what_a_layer_holds_follows_its_dtype(make: Any, level: str) -> None:
    given = planned(make(dtype="float32"), level)
    assert {dtype for path, dtype in given.items() if path.startswith("it")} == {"float32"}
    assert "float16" in {dtype for path, dtype in planned(make(), level).items() if path.startswith("it")}


@pytest.mark.parametrize("layer", [
    lambda: L.TimeDistributed(L.Dense(3, dtype="float32"), name="it"),
    lambda: L.RNN(L.LSTMCell(3, dtype="float32"), name="it"),
], ids=["time distributed", "cell"])
def test_what_runs_a_layer_as_its_own_part_follows_that_layer_s_dtype(layer: Any) -> None:
    assert planned(layer())["it"] == "float32"


class Block(keras.layers.Layer):
    """A layer of the user's, which hands its dtype down to one of its layers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.same = L.Dense(6, name="same", dtype=self.dtype_policy)
        self.free = L.Dense(6, name="free")

    def build(self, shape: Any) -> None:
        self.same.build(shape)
        self.free.build(shape)

    def call(self, inputs: Any) -> Any:
        return self.same(inputs) + self.free(inputs)


class Careful(Block):
    """A layer whose class chooses a dtype."""

    def __init__(self) -> None:
        super().__init__(name="it", dtype="float32")


def test_a_dtype_goes_down_as_far_as_keras_lets_it() -> None:
    for block in (Block(name="it", dtype="float32"), Careful()):
        result = planned(block)
        assert (result["it"], result["it/same"], result["it/free"]) == ("float32", "float32", "float16")
    assert set(planned(Block(name="it")).values()) == {"float16"}


def test_a_network_whose_layers_differ_shows_what_it_gives() -> None:
    inner = keras.Sequential([keras.Input((6,)), L.Dense(4), L.Dense(3, dtype="float32")], name="inner")
    outputs = L.Dense(2)(inner(inputs := keras.Input((6,))))
    net = keras.Model(inputs, outputs)
    row = amp.plan_precision(net, "O2").row("inner")
    assert (row.compute_dtype, row.output_dtype) == ("float16", "float32")
    applied = amp.apply_plan(net, amp.plan_precision(net, "O2"))
    assert inner(X).dtype == "float32"
    applied.undo()


def test_a_map_of_policies_stays() -> None:
    policies = keras.dtype_policies.DTypePolicyMap()
    policies["head"] = keras.DTypePolicy("mixed_bfloat16")
    net = network(dtype=policies)
    plan = amp.plan_precision(net, "O2")
    assert plan.row("head").rule == "own dtype"
    amp.apply_plan(net, plan).undo()
    assert net.get_layer("head").dtype_policy is policies


# ---- what is no choice --------------------------------------------------------------------------------------------
def wide() -> keras.Model:
    """Return a network of layers whose arguments Keras records, and of some whose it does not."""
    inputs = keras.Input((4, 6))
    x = L.Dense(6, kernel_initializer=keras.initializers.HeNormal(), name="objects")(inputs)
    x = L.Bidirectional(L.LSTM(3, return_sequences=True, name="lstm"), name="both")(x)
    x = L.TimeDistributed(L.Dense(6), name="each")(x)
    x = L.SpatialDropout1D(0.1, name="spatial")(x)
    x = L.MultiHeadAttention(2, 3, name="attention")(x, x)
    x = L.RNN(L.StackedRNNCells([L.GRUCell(3), L.GRUCell(3)]), name="rnn")(x)
    return keras.Model(inputs, L.Dense(3, activation="softmax", name="head")(x))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["clone", "load", "config", "new session", "new default"])
@pytest.mark.parametrize("make", [network, wide])
def test_a_network_made_again_is_planned_as_the_first_one(make: Any, how: str, tmp_path: pathlib.Path) -> None:
    first = make()
    plan = {level: amp.plan_precision(first, level) for level in HALF_LEVELS}
    if how == "clone":
        again = keras.models.clone_model(first)
    elif how == "load":
        first.save(tmp_path / "net.keras")
        again = keras.models.load_model(tmp_path / "net.keras")
    elif how == "config":
        again = type(first).from_config(first.get_config())
    else:
        again = first
        if how == "new session":
            keras.utils.clear_session(free_memory=False)
        else:
            keras.config.set_dtype_policy("float32")
    for level in HALF_LEVELS:
        assert [(row.rule, row.compute_dtype) for row in amp.plan_precision(again, level).rows] == [
            (row.rule, row.compute_dtype) for row in plan[level].rows
        ]


def test_a_loaded_base_under_a_new_head_is_planned_by_the_level_and_the_head_by_its_dtype() -> None:
    base = keras.models.clone_model(keras.Sequential([keras.Input((6,)), L.Dense(5, name="base")], name="loaded"))
    head = L.Dense(3, activation=keras.ops.tanh, name="head", dtype="float32")
    for net in (keras.Sequential([base, head]), keras.Sequential([*base.layers, head])):
        result = formats(net)
        assert result["head"] == "float32" and result[[path for path in result if "base" in path][0]] == "float16"


def test_a_clone_of_another_dtype_keeps_it_and_one_of_the_default_s_name_needs_to_float() -> None:
    kept, lost = (keras.models.clone_model(network(dtype=dtype)) for dtype in ("mixed_bfloat16", "float32"))
    assert formats(kept)["head"] == "bfloat16"
    assert formats(lost)["head"] == "float16"
    mixtrain.to_float(lost.get_layer("head"), mixtrain.float32)
    assert formats(lost)["head"] == "float32"


def test_a_planned_network_is_planned_as_its_user_left_it() -> None:
    net = network(dtype="float32")
    plain = amp.plan_precision(net, "O3")
    applied = amp.apply_plan(net, amp.plan_precision(net, "O2"))
    assert amp.plan_precision(net, "O3") == plain
    applied.undo()


# ---- every layer of Keras's ---------------------------------------------------------------------------------------
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("Dense", "LSTM", "GRU", "SimpleRNN", "LSTMCell", "GRUCell", "RepeatVector"), (2,)),
    **dict.fromkeys(("Conv1D", "Conv2D", "Conv3D", "Conv1DTranspose", "Conv2DTranspose", "Conv3DTranspose",
                     "SeparableConv1D", "SeparableConv2D", "ConvLSTM1D", "ConvLSTM2D", "MultiHeadAttention"), (2, 3)),
    **dict.fromkeys(("Dropout", "SpatialDropout1D", "SpatialDropout2D", "GaussianNoise", "AlphaDropout"), (0.5,)),
    **dict.fromkeys(("DepthwiseConv1D", "DepthwiseConv2D"), (3,)),
    **dict.fromkeys((
        "Flatten", "ReLU", "PReLU", "Softmax", "Add", "Concatenate", "BatchNormalization", "LayerNormalization",
        "GroupNormalization", "Attention", "GlobalAveragePooling2D", "UpSampling2D", "ZeroPadding2D",
    ), ()),
    "Embedding": (3, 2), "EinsumDense": ("ab,bc->ac", 2), "Activation": ("relu",), "GroupQueryAttention": (4, 2, 2),
    "Rescaling": (2.0,), "Resizing": (2, 2), "Reshape": ((2,),), "MaxPooling2D": (2,), "RandomRotation": (0.1,),
}
# Their configuration holds all that a user may write: a dtype of the default's name cannot be told from a copy's.
ALIKE = {"SpatialDropout1D", "SpatialDropout2D"}


@quick_every(2)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_keras_records_what_a_layer_was_made_with(name: str) -> None:
    kind, arguments = getattr(L, name), ARGUMENTS[name]
    chosen = {
        how: amp.plan_precision(layer, "O2").row("").rule == "dtype policy"
        for how, layer in (
            ("default", kind(*arguments)), ("given", kind(*arguments, dtype="float32")),
            ("copy", kind.from_config(kind(*arguments).get_config())),
            ("frozen", kind(*arguments, trainable=False) if name not in ALIKE else kind(*arguments)),
        )
    }
    assert chosen == {"default": False, "given": name not in ALIKE, "copy": False, "frozen": False}
