"""Every neural-network-like operation, and its gradient, is the reference's."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import backend, ops
from mixtrain.dtype import is_float
from tests.backends import held_as, quick_every
from tests.data.ops_nn_cases import cases

CASES = cases()
REFERENCE = dict(np.load(pathlib.Path(__file__).parents[1] / "data" / "ops_nn_reference.npz"))
# Where the reference on the CPU is wrong, or differentiates something else.
WRONG_OUTPUT = {"MaxPoolWithArgmax_same": "its windows start at the first row and column; those of MaxPool do not"}
WRONG_GRADIENT = {
    **WRONG_OUTPUT,
    "selu": "the gradient for negative inputs is negative, though the function rises",
    "SeLU": "as selu",
    "ROIAlign_0": "the gradient is that of roi_end_mode=1",
    "SparseCE_grad": "the second derivative has another shape than the input",
    "CheckValid": "there are no floats to differentiate",
}


def outputs_of(name: str, *tensors: Any) -> tuple[Any, ...]:
    result = CASES[name][0](ops, *tensors)
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


@quick_every(8)
@pytest.mark.parametrize("name", [name for name in CASES if name not in WRONG_OUTPUT])
def test_outputs_are_those_of_mindspore(name: str) -> None:
    outputs = outputs_of(name, *map(mixtrain.Tensor, CASES[name][1]))
    expected = [REFERENCE[f"{name}/y{index}"] for index in range(len(outputs))]
    assert f"{name}/y{len(outputs)}" not in REFERENCE
    for output, wanted in zip(outputs, expected, strict=True):
        assert output.dtype.name == held_as(wanted.dtype.name)
        np.testing.assert_allclose(backend.to_numpy(output), wanted, rtol=1e-5, atol=1e-5)


@quick_every(13)
@pytest.mark.parametrize("name", [name for name in CASES if f"{name}/g" in REFERENCE and name not in WRONG_GRADIENT])
def test_gradients_are_those_of_mindspore(name: str) -> None:
    first, *rest = map(mixtrain.Tensor, CASES[name][1])

    def total(x: Any) -> Any:
        return sum(value.sum() for value in outputs_of(name, x, *rest) if is_float(value.dtype))

    gradient = mixtrain.grad(total)(first)
    np.testing.assert_allclose(backend.to_numpy(gradient), REFERENCE[f"{name}/g"], rtol=1e-4, atol=1e-5)


def test_max_pool_with_argmax_pads_as_max_pool_does() -> None:
    (x,) = map(mixtrain.Tensor, CASES["MaxPool_same"][1])
    largest, places = ops.MaxPoolWithArgmax(3, 2, "same")(x)
    assert backend.to_numpy(largest).tolist() == backend.to_numpy(ops.MaxPool(3, 2, "same")(x)).tolist()
    flat = backend.to_numpy(x).reshape(len(x), -1)
    assert np.take_along_axis(flat, backend.to_numpy(places).reshape(len(x), -1), 1).tolist() == (
        backend.to_numpy(largest).reshape(len(x), -1).tolist()
    )


def test_the_gradient_of_selu_is_its_slope() -> None:
    slope = mixtrain.grad(ops.selu)(mixtrain.Tensor([-1.0, 2.0]))
    assert backend.to_numpy(slope).tolist() == pytest.approx([1.7580993 * np.exp(-1.0), 1.0507010], rel=1e-6)


def test_the_gradient_of_roi_align_is_the_weight_of_each_place() -> None:
    rois, x = mixtrain.Tensor([[0.0, 1.0, 1.0, 1.0, 1.0]]), mixtrain.Tensor(np.zeros((1, 1, 3, 3), np.float32))
    weights = mixtrain.grad(lambda x: ops.ROIAlign(1, 1, 1.0, 2, 0)(x, rois))(x)
    assert backend.to_numpy(weights)[0, 0].tolist() == [[0, 0, 0], [0, 0.25, 0.25], [0, 0.25, 0.25]]
