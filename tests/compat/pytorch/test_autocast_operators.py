"""Every operator of the table, in each of its spellings: the formats in the graph that is traced from it."""

from __future__ import annotations

import functools
import re
from types import SimpleNamespace
from typing import Any

import keras
import pytest

from mixtrain import amp, boundary
from mixtrain.autocast.operator_lists import RECURRENT, normal
from tests.backends import ON_TENSORFLOW, quick_only_some
from tests.compat.pytorch.autocast_cases import CASES
from tests.compat.pytorch.autocast_values import KNOWN, modules, names_for

if not ON_TENSORFLOW:
    pytest.skip("it reads graphs; test_autocast_jaxpr.py reads what JAX traces", allow_module_level=True)
tf = pytest.importorskip("tensorflow")

FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)
PRODUCTS = {
    "MatMul", "BatchMatMulV2", "Einsum", "Conv2D", "Conv3D", "Conv2DBackpropInput", "Conv3DBackpropInputV2",
    "DepthwiseConv2dNative", "Tensordot",
}
# These only move numbers, or make or change formats; what they move says nothing of where it is computed.
MOVES = {
    "Cast", "Const", "Identity", "IdentityN", "ReadVariableOp", "Reshape", "Transpose", "ConcatV2", "Pack", "Unpack",
    "StridedSlice", "ExpandDims", "Squeeze", "GatherV2", "Shape", "ConjugateTranspose", "ResourceGather", "Slice",
    "Split", "SplitV",
}


@functools.cache
def layer_of(expression: str) -> Any:
    """Return the layer that an expression builds."""
    layer = eval(expression.split(" << ")[0], modules())
    if hasattr(layer, "set_train"):
        layer.set_train()
    return layer


def traced(half: str, kind: str) -> dict[str, SimpleNamespace]:
    """Trace every expression of a kind once under an autocast, all into one graph; nothing is computed."""
    names = names_for("float32" if kind == "half" else half)
    results: dict[str, Any] = {}

    def everything() -> None:
        for number, expression in enumerate(KNOWN[kind]):
            if " << " in expression:
                with tf.init_scope():
                    layer_of(expression)
            with tf.name_scope(f"{kind}_{number}"), amp.autocast(half):
                results[expression] = run(expression)

    def run(expression: str) -> Any:
        _, arrow, arguments = expression.rpartition(" << ")
        given = eval(arguments, modules() | names)
        if arrow:
            given = layer_of(expression)(*(given if isinstance(given, tuple) else (given,)))
        return boundary.to_backend_tensors(given)

    # As tf.function traces, but once: it would trace again, as the layers make their variables at their first call.
    graph = tf.__internal__.FuncGraph("everything")
    with graph.as_default():
        everything()
    operations: dict[str, list[Any]] = {}
    for operation in graph.get_operations():
        operations.setdefault(operation.name.partition("/")[0], []).append(operation)
    return {
        f"{kind}: {expression}": SimpleNamespace(
            outputs=results[expression], operations=operations.get(f"{kind}_{number}", [])
        )
        for number, expression in enumerate(KNOWN[kind])
    }


class Traced(dict[str, SimpleNamespace]):
    """What is traced of each expression, a kind at a time as it is asked for."""

    def __init__(self, half: str) -> None:
        super().__init__()
        self.half = half

    def __missing__(self, key: str) -> SimpleNamespace:
        self.update(traced(self.half, key.partition(": ")[0]))
        return self[key]


@pytest.fixture(scope="module", params=quick_only_some(["float16", "bfloat16"]))
def trace(request: pytest.FixtureRequest) -> SimpleNamespace:
    return SimpleNamespace(half=request.param, found=Traced(request.param))


def computed_in(operations: list[Any]) -> set[str]:
    """Return the float formats of the inputs of the operations that compute."""
    return {
        tensor.dtype.name
        for operation in operations if operation.type not in MOVES
        for tensor in operation.inputs if tensor.dtype in FLOATS
    }


def multiplied_in(operations: list[Any]) -> set[str]:
    """Return the formats of the values that are multiplied in matrix products and convolutions."""
    return {
        rounded_to(tensor)
        for operation in operations if operation.type in PRODUCTS
        for tensor in operation.inputs if tensor.dtype in FLOATS
    }


def rounded_to(tensor: Any) -> str:
    """Return the format of a tensor's values: half too for a float32 copy of half, given to a float32 kernel.

    Where a device has no kernels for half, the backend computes products of half values so.
    """
    while tensor.op.type in MOVES and tensor.op.inputs and tensor.op.inputs[0].dtype in FLOATS:
        if tensor.op.type == "Cast":
            from_half = tensor.op.inputs[0].dtype in (tf.float16, tf.bfloat16)
            return (tensor.op.inputs[0] if from_half else tensor).dtype.name
        tensor = tensor.op.inputs[tensor.value_index if tensor.op.type == "IdentityN" else 0]
    return tensor.dtype.name


def out_formats(outputs: Any) -> set[str]:
    """Return the float formats of a structure of tensors."""
    return {value.dtype.name for value in keras.tree.flatten(outputs) if value.dtype in FLOATS}


@pytest.mark.slow
def test_products_and_convolutions_are_traced_in_half(trace: SimpleNamespace) -> None:
    for expression in KNOWN["half"]:
        result = trace.found[f"half: {expression}"]
        assert out_formats(result.outputs) == {trace.half}, expression
        products = multiplied_in(result.operations)
        assert products <= {trace.half}, expression


@pytest.mark.slow
def test_products_and_convolutions_have_products_in_their_graph(trace: SimpleNamespace) -> None:
    without = [
        expression for expression in KNOWN["half"]
        if not multiplied_in(trace.found[f"half: {expression}"].operations)
    ]
    assert all(re.search("inner|outer|bias_add|BiasAdd|prelu|PReLU|LSTM|GRU|RNN", name) for name in without), without


@pytest.mark.slow
def test_what_leaves_the_range_of_half_is_traced_in_float32(trace: SimpleNamespace) -> None:
    for expression in KNOWN["float32"]:
        result = trace.found[f"float32: {expression}"]
        assert out_formats(result.outputs) == {"float32"} or "K.eig(" in expression, expression  # It gives complex64.
        if "Dense(4, 4" not in expression:  # Its product is in half, its softmax in float32.
            assert computed_in(result.operations) == {"float32"}, expression


def test_what_brings_tensors_together_is_traced_in_the_widest_format(trace: SimpleNamespace) -> None:
    for expression in KNOWN["promote"]:
        assert out_formats(trace.found[f"promote: {expression}"].outputs) == {"float32"}, expression


def test_everything_else_is_traced_in_what_it_is_given(trace: SimpleNamespace) -> None:
    for expression in KNOWN["inputs"]:
        assert out_formats(trace.found[f"inputs: {expression}"].outputs) == {trace.half}, expression


def test_no_row_of_the_table_is_without_a_case() -> None:
    text = {kind: normal("\n".join(CASES[kind])) for kind in CASES}
    hidden = {normal(name) for name in (
        "loss_base",  # The base of nn.MSELoss and all other losses.
        "ctc", "ctc_loss", "matrix_rank", "group_norm", "batch_normalization", "embedding", "cast", "max_pool",
        "avg_pool", "std_mean", "StackedRNNCells", "grouped_query_attention",
    )}
    for name, kind in amp.list_operators().items():
        assert normal(name) in text[kind] or normal(name) in hidden, f"{name} ({kind})"
    assert {normal(name) for name in RECURRENT} <= {normal(name) for name in amp.list_operators()}
