"""Activations give the reference's numbers and keep shape and format."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mixtrain import backend
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16, int32
from mixtrain.nn.layer import GELU, Identity, LeakyReLU, LogSoftmax, ReLU, ReLU6, Sigmoid, Softmax, Tanh
from mixtrain.precision.probabilities import probability_of
from tests.backends import held_as, quick_every
from tests.nn.reference import case

CASES = {
    "gelu_tanh": GELU(True), "gelu_erf": GELU(False), "relu": ReLU(), "relu6": ReLU6(), "sigmoid": Sigmoid(),
    "tanh": Tanh(), "softmax": Softmax(), "softmax_axis0": Softmax(0),
}


@pytest.mark.parametrize("name", CASES)
def test_output_is_the_references(name: str) -> None:
    expected = case(name)
    # The reference's tanh is an approximation; ours is compared with NumPy's below.
    tolerance = 1e-4 if name == "tanh" else 1e-5
    assert np.abs(backend.to_numpy(CASES[name](Tensor(expected["x"]))) - expected["y"]).max() < tolerance


def test_tanh_is_accurate() -> None:
    x = case("tanh")["x"]
    assert np.abs(backend.to_numpy(Tanh()(Tensor(x))) - np.tanh(x.astype(np.float64))).max() < 1e-6


@quick_every(3)
@pytest.mark.parametrize("cell", [*CASES.values(), LeakyReLU(), LogSoftmax(), Identity()])
@pytest.mark.parametrize("half", [float16, bfloat16])
def test_format_stays(cell: Any, half: Any) -> None:
    assert cell(Tensor(np.ones((2, 3)), half)).dtype == half


def test_leaky_relu_has_the_references_slope() -> None:
    assert backend.to_numpy(LeakyReLU()(Tensor([-5.0, 5.0]))).tolist() == [-1.0, 5.0]


def test_log_softmax_does_not_overflow() -> None:
    y = backend.to_numpy(LogSoftmax()(Tensor([[1000.0, 0.0], [0.0, 0.0]])))
    assert y == pytest.approx(np.array([[0.0, -1000.0], [-math.log(2), -math.log(2)]]))


def test_relu_takes_integers() -> None:
    assert ReLU()(Tensor([-1, 1], int32)).dtype == int32


def test_which_activations_give_probabilities() -> None:
    kinds = [probability_of(layer) for layer in (Softmax(), LogSoftmax(), Sigmoid(), ReLU(), Tanh())]
    assert kinds == ["softmax", "log_softmax", "sigmoid", None, None]


def test_gelu_stores_its_formula_as_the_reference_does() -> None:
    assert (GELU().approximate, GELU(False).approximate) == ("tanh", "none")


def test_bad_arguments_and_inputs_are_refused() -> None:
    with pytest.raises(TypeError, match="GELU: approximate must be True or False"):
        GELU("tanh")
    with pytest.raises(TypeError, match="Softmax: axis must be an int"):
        Softmax((0, 1))
    with pytest.raises(ValueError, match="Softmax: axis must be one of the 2 of the input; got 2"):
        Softmax(2)(Tensor([[1.0]]))
    with pytest.raises(TypeError, match=f"Sigmoid: expected a floating-point input; got {held_as('int64')}"):
        Sigmoid()(Tensor([1]))


def test_representations_are_the_references() -> None:
    assert (repr(ReLU()), repr(Softmax())) == ("ReLU()", "Softmax()")
