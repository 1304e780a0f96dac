"""MindSpore's primitives of derivatives: recorded calls of MindSpore 2.10, and what it computes on no CPU."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import GRAPH_MODE, Tensor, nn, ops
from mixtrain.ops.operations import _grad_ops
from tests.backends import quick_every

RECORDED = np.load(pathlib.Path(__file__).parents[1] / "data/derivative_reference.npz")
CALLS = json.loads(str(RECORDED["calls"]))


def given(value: dict[str, Any]) -> Any:
    if "tuple" in value:
        return tuple(map(given, value["tuple"]))
    if "array" in value:
        return Tensor(RECORDED[value["array"]])
    return tuple(value["value"]) if isinstance(value["value"], list) else value["value"]


@quick_every(4)
@pytest.mark.parametrize("name", CALLS)
def test_a_primitive_computes_the_recorded_gradients(name: str) -> None:
    call = CALLS[name]
    settings = [tuple(value) if isinstance(value, list) else value for value in call["settings"]]
    result = getattr(_grad_ops, name.split()[0])(*settings)(*map(given, call["inputs"]))
    results = result if isinstance(result, tuple) else (result,)
    for value, key in zip(results, call["expected"], strict=True):
        np.testing.assert_allclose(value.asnumpy(), RECORDED[key], rtol=1e-4, atol=1e-5)
        assert value.asnumpy().dtype == RECORDED[key].dtype


@pytest.mark.parametrize(
    ("name", "inputs", "function"),
    [
        ("LogSigmoidGrad", ("dy", "x", "x"), ops.logsigmoid),
        ("SoftMarginLossGrad", ("x", "label", "dy"), lambda x: ops.soft_margin_loss(x, Tensor([1.0, -1.0]), "none")),
        ("SoftmaxGrad", ("y", "dy"), ops.softmax),
    ],
)
def test_a_primitive_without_a_kernel_on_cpus_there_computes_the_gradient(
    name: str, inputs: tuple[str, ...], function: Any
) -> None:
    x, dy = Tensor([0.3, -0.6]), Tensor([2.0, 0.5])
    values = {"x": x, "dy": dy, "y": function(x), "label": Tensor([1.0, -1.0])}
    settings = {"reduction": "none"} if name == "SoftMarginLossGrad" else {}
    result = getattr(_grad_ops, name)(**settings)(*(values[key] for key in inputs))
    (expected,) = ops.GradOperation(get_all=True, sens_param=True)(function)(x, dy)
    np.testing.assert_allclose(result.asnumpy(), expected.asnumpy(), rtol=1e-5)


def test_a_layer_normalization_in_half_is_differentiated_from_its_own_statistics() -> None:
    x = Tensor(np.random.default_rng(0).normal(size=(2, 3)) * 3e-3, mixtrain.float16)
    scale, shift = Tensor(np.ones(3), mixtrain.float16), Tensor(np.zeros(3), mixtrain.float16)
    output, mean, variance = ops.LayerNorm()(x, scale, shift)
    gradients = _grad_ops.LayerNormGrad()(x, output, variance, mean, scale)
    expected = ops.GradOperation(get_all=True, sens_param=True)(lambda *inputs: ops.LayerNorm()(*inputs)[0])(
        x, scale, shift, output
    )
    for value, other in zip(gradients, expected, strict=True):
        assert value.dtype == mixtrain.float16
        np.testing.assert_allclose(value.asnumpy(), other.asnumpy(), rtol=2e-2, atol=0.5)


def test_the_bprop_of_a_cell_uses_one_in_a_compiled_call() -> None:
    class Clipped(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.relu, self.of_relu = ops.ReLU(), _grad_ops.ReluGrad()

        def construct(self, x: Any) -> Any:
            return self.relu(x)

        def bprop(self, x: Any, out: Any, dout: Any) -> Any:
            return (10 * self.of_relu(dout, out),)

    mixtrain.set_context(mode=GRAPH_MODE)
    np.testing.assert_array_equal(mixtrain.grad(Clipped())(Tensor([-1.0, 2.0])).asnumpy(), [0, 10])


@pytest.mark.parametrize("place", [mixtrain.ops.functional, mixtrain.ops])
def test_shapes_outside_of_compiled_functions_are_known(place: Any) -> None:
    assert not place.is_sequence_value_unknown(Tensor([[1.0]]).shape)
    assert not place.is_sequence_shape_unknown(Tensor([[1.0]]).shape) and place.is_sequence_value_unknown((None, 2))


@pytest.mark.parametrize("dtype", ["float32", "bool_", "int32"])
def test_the_gradient_of_a_slice_takes_any_dtype_and_a_shape_of_as_many_elements(dtype: str) -> None:
    dy = Tensor([1, 1, 1], getattr(mixtrain, dtype))
    result = _grad_ops.StridedSliceGrad()(dy, (3, 2, 3), (1, 0, 0), (2, 1, 3), (1, 1, 1))
    expected = np.zeros((3, 2, 3))
    expected[1, 0] = 1
    assert result.dtype == dy.dtype
    np.testing.assert_array_equal(result.asnumpy(), expected)
