"""Layers and losses have MindSpore's outputs, gradients, and shapes and order of parameters."""

from __future__ import annotations

import pytest

from mixtrain import backend, nn
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from tests.backends import quick_every
from tests.nn.by_case import build, case, flat, gradients, max_difference
from tests.nn.cases import CASES

# MindSpore's tanh is an approximation; tests/nn/layer/test_recurrent.py compares ours with NumPy's.
TOLERANCE = {
    "mish": 2e-5, "tanhshrink": 1e-4, "rnn": 3e-4, "gru": 2e-4, "gru_cell": 5e-5, "gru_deep_both": 5e-5,
    "gru_lengths": 5e-5, "lstm_lengths": 5e-5,
}
COMPILED = ["conv1d_pad", "back2d_pad_k4_s2", "back2d_more", "conv3d_s2", "groupnorm", "embedding"]


@quick_every(11)
@pytest.mark.parametrize("name", CASES)
def test_outputs_are_the_references(name: str) -> None:
    cell, inputs, reference = build(name, CASES[name])
    assert max_difference(cell(*inputs), reference, "y") < TOLERANCE.get(name, 1e-5)
    if CASES[name].training:
        assert max_difference(list(cell.get_parameters()), reference, "q") < 1e-5


@quick_every(18)
@pytest.mark.parametrize("name", [name for name, spec in CASES.items() if spec.gradient])
def test_gradients_are_the_references(name: str) -> None:
    cell, inputs, reference = build(name, CASES[name])
    floats = "gx" in reference
    input_gradient, parameter_gradients = gradients(cell, inputs, floats)
    # Sums of many products, of which float32 keeps about six digits.
    scale = max(1.0, *(abs(reference[key]).max() for key in reference if key.startswith("g")))
    tolerance = TOLERANCE.get(name, 1e-5) * scale
    if floats:
        assert abs(backend.to_numpy(input_gradient) - reference["gx"]).max() < tolerance
    if parameter_gradients:
        assert max_difference(parameter_gradients, reference, "gp") < tolerance


@quick_every(5)
@pytest.mark.parametrize("name", [*COMPILED, pytest.param("lstm_lengths", marks=pytest.mark.slow)])
@pytest.mark.parametrize("jit", [False, True])
def test_compiled_outputs_are_the_references(name: str, jit: bool) -> None:
    cell, inputs, reference = build(name, CASES[name])
    run = backend.compile_function(lambda *values: tuple(flat(cell(*values))), choice=JitChoice(jit, "test"))
    assert max_difference(run(*inputs), reference, "y") < TOLERANCE.get(name, 1e-5)


@pytest.mark.parametrize("rule", ["edges", "corners", "centers"])
@pytest.mark.parametrize("size", [(5, 7), (2, 3)])
def test_resized_images_are_the_references(rule: str, size: tuple[int, int]) -> None:
    reference = case(f"resize_{rule}_{size[0]}")
    resize = nn.ResizeBilinear(half_pixel_centers=rule == "centers")
    y = resize(Tensor(reference["x0"]), size=size, align_corners=rule == "corners")
    assert max_difference(y, reference, "y") < 1e-5
