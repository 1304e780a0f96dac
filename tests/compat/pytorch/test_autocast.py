"""`amp.autocast`: where it reaches and where not, what it leaves behind, and which rules beat it."""

from __future__ import annotations

import threading
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
import mixtrain.ops as ops
from mixtrain import Tensor, amp, backend
from tests.backends import gradient_of

X = Tensor(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))
Y = Tensor(np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3))


def places() -> dict[str, Any]:
    """Return all that stands where an autocast puts itself."""
    result = {
        f"{module.__name__}.{name}": value
        for module in (keras.ops, keras.ops.nn, keras.ops.numpy, keras.ops.linalg, keras.activations, keras.losses)
        for name, value in vars(module).items()
    }
    for owner in (keras.Layer, keras.Operation, keras.Variable, *backend.TENSOR_TYPES, type(X)):
        result |= {
            f"{owner.__name__}.{name}": value for name, value in vars(owner).items() if name != "__annotations__"
        }
    return result


class Attention(nn.Cell):
    """A cell of a user's, with operators between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Dense(4, 4), nn.Dense(4, 4)
        self.seen: dict[str, str] = {}

    def construct(self, x: Any) -> Any:
        query, key = self.query(x), self.key(x)
        scores = ops.matmul(query, key.T)
        weights = ops.softmax(scores)
        outputs = weights @ x
        self.seen = {
            name: value.dtype.name
            for name, value in (("query", query), ("scores", scores), ("weights", weights), ("outputs", outputs))
        }
        return outputs


class KerasAttention(keras.Layer):
    """The same as a layer of Keras's."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.scale = keras.layers.Dense(4), None
        self.seen: dict[str, str] = {}

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(4,), initializer="ones", name="scale")

    def call(self, x: Any) -> Any:
        query = self.query(x)
        scores = keras.ops.matmul(query, keras.ops.transpose(query))
        weights = keras.ops.softmax(scores)
        scaled = query * self.scale
        self.seen = {
            name: value.dtype.name
            for name, value in (("query", query), ("scores", scores), ("weights", weights), ("scaled", scaled))
        }
        return scaled


def test_everything_is_the_very_same_object_again_after_the_last_has_left() -> None:
    before = places()
    scope = amp.autocast()
    with scope, scope, amp.autocast(half=["gelu"]):
        assert keras.ops.matmul is not before["keras.ops.matmul"]
        inside = keras.ops.gelu
    after = places()
    assert inside is not after["keras.ops.gelu"]
    assert before.keys() == after.keys() and all(before[name] is after[name] for name in before)


def test_an_exception_inside_leaves_nothing_behind() -> None:
    before = places()
    with pytest.raises(ZeroDivisionError), amp.autocast(), amp.autocast(enabled=False):
        keras.layers.LayerNormalization()(X)
        raise ZeroDivisionError
    with pytest.raises(ValueError), amp.autocast():
        keras.layers.Dense(3)(Tensor(np.ones(4, np.float32)))
    assert all(before[name] is value for name, value in places().items())
    assert not amp.is_autocast_enabled() and (X @ Y).dtype == mixtrain.float32


def test_another_thread_is_not_reached_and_has_an_autocast_of_its_own() -> None:
    entered, seen, errors = threading.Barrier(2, timeout=30), {}, []
    layer = keras.layers.Dense(3)
    layer.build((None, 4))

    def formats() -> tuple[str, ...]:
        return tuple(
            value.dtype.name
            for value in (X @ Y, keras.ops.matmul(X, Y), ops.matmul(X, Y), layer(X), nn.Dense(4, 3)(X))
        )

    def other() -> None:
        try:
            entered.wait()
            seen["outside"] = formats()
            with amp.autocast("bfloat16"):
                seen["own"] = formats()
                entered.wait()
                entered.wait()  # The first thread has left meanwhile.
                seen["alone"] = formats()
        except BaseException as error:  # noqa: B902
            errors.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    with amp.autocast():
        entered.wait()
        seen["first"] = formats()
        entered.wait()
    seen["after"] = formats()
    entered.wait()
    thread.join(30)
    assert not errors
    assert seen == {
        "outside": ("float32",) * 5, "own": ("bfloat16",) * 5, "alone": ("bfloat16",) * 5, "first": ("float16",) * 5,
        "after": ("float32",) * 5,
    }


def test_the_innermost_autocast_counts_and_an_island_computes_in_what_it_is_given() -> None:
    with amp.autocast():
        half = X @ Y
        with amp.autocast("bfloat16"):
            assert (X @ Y).dtype == mixtrain.bfloat16
        with amp.autocast(enabled=False):
            assert not amp.is_autocast_enabled()
            assert (X @ Y).dtype == mixtrain.float32 and ops.exp(half).dtype == mixtrain.float16
            assert keras.layers.Dense(3)(X).dtype == mixtrain.float32
            assert keras.ops.softmax(half).dtype == mixtrain.float16
            with amp.autocast():
                assert ops.exp(half).dtype == mixtrain.float32
        assert (X @ Y).dtype == mixtrain.float16


def test_functions_methods_and_the_call_of_a_layer_can_be_decorated() -> None:
    @amp.autocast("bfloat16")
    def product(x: Any, y: Any) -> Any:
        """Multiply."""
        return x @ y

    class Layer(keras.Layer):
        @amp.autocast()
        def call(self, x: Any) -> Any:
            return keras.ops.matmul(x, keras.ops.transpose(x))

    assert product(X, Y).dtype == mixtrain.bfloat16 and (product.__name__, product.__doc__) == ("product", "Multiply.")
    assert Layer()(X).dtype == mixtrain.float16
    assert not amp.is_autocast_enabled()
    with pytest.raises(TypeError, match="with amp.autocast"):
        @amp.autocast()
        def numbers() -> Any:
            yield 1
    with pytest.raises(TypeError, match="@amp.autocast()"):
        amp.autocast()(Layer)


def test_lists_of_the_users_come_before_the_table_in_any_spelling() -> None:
    with amp.autocast(half=["gelu", "log_softmax"], float32=["MatMul"], inputs=["sum"], promote=["mean"]):
        assert ops.matmul(X, Y).dtype == (X @ Y).dtype == keras.ops.matmul(X, Y).dtype == mixtrain.float32
        assert ops.gelu(X).dtype == keras.ops.gelu(X).dtype == ops.GeLU()(X).dtype == mixtrain.float16
        assert ops.LogSoftmax()(X).dtype == nn.LogSoftmax()(X).dtype == mixtrain.float16
        half = ops.cast(X, mixtrain.float16)
        assert ops.sum(half).dtype == ops.mean(half).dtype == mixtrain.float16
        table = amp.list_operators()
        assert (table["gelu"], table["matmul"], table["einsum"]) == ("half", "float32", "half")
    assert amp.list_operators()["gelu"] == "inputs"


def test_what_keras_and_its_backend_compute_with_inside_of_a_function_is_theirs() -> None:
    half = ops.cast(X, mixtrain.float16)
    with amp.autocast("bfloat16"):
        assert keras.ops.gelu(half).dtype == keras.ops.gelu(half + 0).dtype == mixtrain.float16
    assert keras.ops.gelu(half).dtype == mixtrain.float16  # Nothing is kept of what was traced there.


def test_a_row_in_another_spelling_reaches_the_functions_of_keras_and_leaves_its_classes_alone() -> None:
    huber = keras.losses.Huber
    with amp.autocast(float32=["Huber", "ReLU"]):
        assert keras.ops.relu(ops.cast(X, mixtrain.float16)).dtype == mixtrain.float32
        assert keras.losses.Huber is huber
        relu = keras.ops.relu
        with amp.autocast(float32=["ReLU"]):
            assert keras.ops.relu is relu  # Replaced once.


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"half": ["matmull"]}, 'Write "matmul"'),
        ({"half": ["exp"], "float32": ["Exp"]}, "must be in one list; exp is in half"),
        ({"dtype": "float32"}, "dtype must be float16 or bfloat16"),
        ({"dtype": "cuda"}, "dtype must be float16 or bfloat16"),
    ],
)
def test_bad_values_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        amp.autocast(**arguments)


@pytest.mark.parametrize("arguments", [{"half": "matmul"}, {"float32": [1]}, {"enabled": 1}])
def test_bad_types_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="Write "):
        amp.autocast(**arguments)


def test_the_table_reads_as_one() -> None:
    table = amp.list_operators()
    assert str(table).startswith("half: computes in half\n    matmul bmm ")
    assert table["LogSoftmax"] == table["log_softmax"] == "float32" and "no_such" not in table
    assert len(table) == len(list(table)) == len(set(table))


def test_float64_is_never_narrowed_and_integers_never_cast() -> None:
    with backend.double_precision(), amp.autocast():
        wide = ops.cast(X, "float64")
        assert ops.matmul(wide, Y).dtype == (wide @ Y).dtype == ops.exp(wide).dtype == mixtrain.float64
        assert nn.Dense(4, 3)(wide).dtype == mixtrain.float64
    whole = Tensor(np.ones((4, 3), np.int32))
    with amp.autocast():
        assert ops.matmul(whole.T, whole).dtype == ops.maximum(whole, whole).dtype == mixtrain.int32
        assert keras.ops.sum(whole).dtype == mixtrain.int32
        assert ops.matmul(np.ones((2, 4)), Y).dtype == mixtrain.float16  # Arrays of NumPy's mean float32 there.


def test_gradients_of_float32_parameters_arrive_in_float32() -> None:
    net, layer = nn.Dense(4, 3), keras.layers.Dense(3)
    layer.build((None, 3))
    formats = []

    def forward() -> Any:
        with amp.autocast():
            outputs = layer(net(X))
            loss = ops.mean(outputs * outputs)
        formats.append((outputs.dtype.name, loss.dtype.name))
        return loss

    gradients = gradient_of(forward, *net.trainable_params(), *layer.trainable_variables)
    assert set(formats) == {("float16", "float32")}
    assert [gradient.dtype.name for gradient in gradients] == ["float32"] * 4
    assert all(np.any(backend.to_numpy(gradient)) for gradient in gradients)


def test_operators_between_layers_are_cast_in_a_cell_and_in_a_keras_layer() -> None:
    cell, layer = Attention(), KerasAttention()
    with amp.autocast():
        cell(X)
        layer(X)
    assert cell.seen == {"query": "float16", "scores": "float16", "weights": "float32", "outputs": "float16"}
    assert layer.seen == {"query": "float16", "scores": "float16", "weights": "float32", "scaled": "float32"}


def test_a_users_to_float_beats_autocast_for_all_that_is_inside() -> None:
    cell, layer = Attention().to_float(mixtrain.float32), mixtrain.to_float(KerasAttention(), mixtrain.float32)
    leaf = mixtrain.to_float(nn.Dense(4, 3), "bfloat16")
    mixed = Attention()
    mixed.key.to_float(mixtrain.float32)
    with amp.autocast():
        cell(X)
        layer(X)
        mixed(X)
        assert leaf(X).dtype == mixtrain.bfloat16
    assert set(cell.seen.values()) == {"float32"} and layer.seen["scores"] == "float32"
    assert mixed.seen["query"] == "float16"


@pytest.mark.parametrize(
    "level, expected",
    [
        # O1 says that Dense computes in half and returns float32; the products between are autocast's.
        ("O1", {"query": "float32", "scores": "bfloat16", "weights": "float32", "outputs": "bfloat16"}),
        ("O2", {"query": "float16", "scores": "bfloat16", "weights": "float32", "outputs": "bfloat16"}),
        ("O3", {"query": "float16", "scores": "bfloat16", "weights": "float32", "outputs": "bfloat16"}),
        ("O0", {"query": "bfloat16", "scores": "bfloat16", "weights": "float32", "outputs": "bfloat16"}),
    ],
)
def test_a_plan_beats_autocast_for_its_layers_and_autocast_decides_between_them(
    level: str, expected: dict[str, str]
) -> None:
    net = Attention()
    applied = amp.apply_plan(net, amp.plan_precision(net, level))
    with amp.autocast("bfloat16"):
        net(X)
    assert net.seen == expected
    applied.undo()
    with amp.autocast("bfloat16"):
        net(X)
    assert net.seen["query"] == "bfloat16"


def test_a_black_list_covers_the_operators_inside_its_layers() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.head = Attention(), nn.Dense(4, 2)

        def construct(self, x: Any) -> Any:
            return self.head(self.attention(x))

    net = amp.custom_mixed_precision(Net(), black_list=[Attention])
    with amp.autocast():
        net(X)
    assert set(net.attention.seen.values()) == {"float32"}


def test_a_keras_layer_keeps_what_its_plan_or_its_own_policy_says() -> None:
    own = keras.layers.Dense(3, dtype="mixed_bfloat16")
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3), keras.layers.Dense(2)])
    with amp.autocast():
        assert own(X).dtype == mixtrain.bfloat16 and model(X).dtype == mixtrain.float16
    amp.apply_plan(model, amp.plan_precision(model, "O2", cast_model_type="bfloat16"))
    with amp.autocast():
        assert model.layers[0](X).dtype == mixtrain.bfloat16


def test_a_model_that_is_built_inside_is_as_one_built_outside() -> None:
    with amp.autocast():
        inputs = keras.Input((4,))
        hidden = KerasAttention()(keras.layers.Dense(4)(inputs))
        model = keras.Model(inputs, keras.ops.exp(keras.ops.matmul(hidden, np.ones((4, 3), np.float32))))
        assert {layer.compute_dtype for layer in (model, model.layers[0])} == {"float32"}
        seen: list[str] = []
        outputs = keras.Model(inputs, model.output)(X)
        seen.append(outputs.dtype.name)
    assert hidden.dtype == model.output.dtype == "float32" and seen == ["float32"]
    assert all(weight.dtype == "float32" for weight in model.weights)


def test_a_mask_passes_layers_that_cast() -> None:
    tokens = np.array([[1, 2, 0], [3, 0, 0]])
    embed, lstm = keras.layers.Embedding(4, 3, mask_zero=True), keras.layers.LSTM(2)
    expected = lstm(embed(tokens))
    with amp.autocast("bfloat16"):
        result = lstm(embed(tokens))
    assert result.dtype == mixtrain.bfloat16
    np.testing.assert_allclose(ops.cast(result, "float32"), expected, atol=0.02)


@pytest.mark.tensorflow
def test_the_keras_that_comes_with_tensorflow_is_reached_too() -> None:
    tf = pytest.importorskip("tensorflow")
    with amp.autocast():
        assert tf.keras.ops.matmul(X, Y).dtype == mixtrain.float16


def test_what_mixtrain_compiles_is_compiled_anew_under_another_autocast() -> None:
    product = mixtrain.jit(lambda x, y: ops.matmul(x, y))
    seen = [product(X, Y).dtype.name]
    for scope in (amp.autocast("bfloat16"), amp.autocast("bfloat16", float32=["matmul"]), amp.autocast(enabled=False)):
        with scope:
            seen.append(product(X, Y).dtype.name)
    assert seen == ["float32", "bfloat16", "float32", "float32"]


@pytest.mark.tensorflow
def test_a_tf_function_keeps_the_casts_of_its_trace() -> None:
    tf = pytest.importorskip("tensorflow")

    @tf.function
    def product(x: Any, y: Any) -> Any:
        with amp.autocast("bfloat16"):
            return keras.ops.matmul(x, y)

    assert product(X, Y).dtype == mixtrain.bfloat16
    graph = product.get_concrete_function(X, Y).graph
    assert [op.get_attr("T").name for op in graph.get_operations() if op.type == "MatMul"] == ["bfloat16"]


def test_a_train_cell_inside_learns_and_computes_its_products_in_half() -> None:
    rng = np.random.default_rng(0)
    data = Tensor(rng.standard_normal((32, 4), np.float32))
    label = Tensor(np.asarray(data.asnumpy() @ rng.standard_normal((4, 1)), np.float32))
    net = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))
    step = nn.TrainOneStepCell(
        nn.WithLossCell(net, nn.MSELoss()), nn.Momentum(net.trainable_params(), 0.05, 0.9)
    ).set_train()
    seen: list[str] = []
    net.register_forward_hook(lambda cell, inputs, output: seen.append(output.dtype.name))
    with amp.autocast("bfloat16"):
        losses = [float(step(data, label)) for _ in range(30)]
    assert losses[-1] < 0.1 * losses[0] and set(seen) == {"bfloat16"}
    assert all(parameter.dtype == mixtrain.float32 for parameter in net.trainable_params())
    step(data, label)
    assert seen[-1] == "float32"
