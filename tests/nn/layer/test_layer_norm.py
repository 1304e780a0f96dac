"""LayerNorm gives the reference's numbers, computes in float32, and refuses what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain import backend
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16
from mixtrain.nn.layer import LayerNorm
from tests.nn.reference import case


@pytest.mark.parametrize(("name", "shape", "axis"), [("last", (4,), -1), ("last2", (3, 4), 1)])
def test_output_is_the_references(name: str, shape: tuple[int, ...], axis: int) -> None:
    expected = case(f"layernorm_{name}")
    norm = LayerNorm(shape, axis, axis)
    norm.gamma.set_data(expected["gamma"])
    norm.beta.set_data(expected["beta"])
    assert np.abs(backend.to_numpy(norm(Tensor(expected["x"]))) - expected["y"]).max() < 1e-5


def test_norm_axes_may_be_more_than_those_of_the_parameters() -> None:
    y = backend.to_numpy(LayerNorm((2,), 1, -1, gamma_init=2.0)(Tensor([[[0.0, 0.0], [2.0, 2.0]]])))
    assert y.ravel() == pytest.approx([-2, -2, 2, 2], abs=1e-4)


def test_parameters_have_the_references_names() -> None:
    assert [(p.name, tuple(p.shape)) for p in LayerNorm([3, 4]).get_parameters()] == [
        ("gamma", (3, 4)), ("beta", (3, 4)),
    ]


@pytest.mark.parametrize("half", [float16, bfloat16])
def test_half_comes_back_as_half_computed_in_float32(half: Any) -> None:
    # The squares overflow float16.
    y = LayerNorm((2,))(Tensor([[-512.0, 512.0]], half))
    assert y.dtype == half
    assert backend.to_numpy(y).tolist() == [[-1.0, 1.0]]


def test_wrong_shape_says_what_to_write() -> None:
    with pytest.raises(ValueError, match=r"LayerNorm: expected the axes from -1 on to be \(3, 4\); got \(4,\) .*"
                                         r"begin_norm_axis=-2, begin_params_axis=-2"):
        LayerNorm((3, 4))(Tensor(np.ones((2, 3, 4), np.float32)))
    with pytest.raises(ValueError, match="begin_norm_axis must be an axis of the input"):
        LayerNorm((4,), begin_norm_axis=2)(Tensor(np.ones((2, 4), np.float32)))


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"normalized_shape": 4}, TypeError), ({"normalized_shape": ()}, ValueError), ({"epsilon": 0.0}, ValueError),
     ({"begin_norm_axis": 1.0}, TypeError), ({"normalized_shape": (0,)}, ValueError)],
)
def test_bad_argument_is_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=f"LayerNorm: {next(iter(arguments))} must"):
        LayerNorm(**{"normalized_shape": (4,), **arguments})
