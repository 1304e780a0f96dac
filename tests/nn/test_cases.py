"""Layers and losses give MindSpore's outputs and gradients, and keep its parameters' shapes and order."""

from __future__ import annotations

import pytest

from mixtrain import backend, nn
from mixtrain.backend.info import JitChoice
from mixtrain.common.tensor import Tensor
from tests.nn.by_case import build, case, flat, gradients, worst
from tests.nn.cases import CASES

# The reference's tanh is a coarse one; tests/nn/layer/test_recurrent.py holds ours against NumPy's.
TOLERANCE = {
    "mish": 2e-5, "tanhshrink": 1e-4, "rnn": 3e-4, "gru": 2e-4, "gru_cell": 5e-5, "gru_deep_both": 5e-5,
    "gru_lengths": 5e-5, "lstm_lengths": 5e-5,
}
COMPILED = ["conv1d_pad", "back2d_pad_k4_s2", "back2d_more", "conv3d_s2", "groupnorm", "embedding"]


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_the_references(name: str) -> None:
    cell, inputs, known = build(name, CASES[name])
    assert worst(cell(*inputs), known, "y") < TOLERANCE.get(name, 1e-5)
    if CASES[name].training:
        assert worst(list(cell.get_parameters()), known, "q") < 1e-5


@pytest.mark.parametrize("name", [name for name, spec in CASES.items() if spec.gradient])
def test_gradients_are_the_references(name: str) -> None:
    cell, inputs, known = build(name, CASES[name])
    floats = "gx" in known
    by_x, by_parameters = gradients(cell, inputs, floats)
    # Sums of many products, of which float32 keeps about six digits.
    scale = max(1.0, *(abs(known[key]).max() for key in known if key.startswith("g")))
    tolerance = TOLERANCE.get(name, 1e-5) * scale
    if floats:
        assert abs(backend.to_numpy(by_x) - known["gx"]).max() < tolerance
    if by_parameters:
        assert worst(by_parameters, known, "gp") < tolerance


@pytest.mark.parametrize("name", [*COMPILED, pytest.param("lstm_lengths", marks=pytest.mark.slow)])
@pytest.mark.parametrize("jit", [False, True])
def test_compiled_outputs_are_the_references(name: str, jit: bool) -> None:
    cell, inputs, known = build(name, CASES[name])
    run = backend.compile_function(lambda *values: tuple(flat(cell(*values))), choice=JitChoice(jit, "test"))
    assert worst(run(*inputs), known, "y") < TOLERANCE.get(name, 1e-5)


@pytest.mark.parametrize("rule", ["edges", "corners", "centers"])
@pytest.mark.parametrize("size", [(5, 7), (2, 3)])
def test_resized_images_are_the_references(rule: str, size: tuple[int, int]) -> None:
    known = case(f"resize_{rule}_{size[0]}")
    resize = nn.ResizeBilinear(half_pixel_centers=rule == "centers")
    y = resize(Tensor(known["x0"]), size=size, align_corners=rule == "corners")
    assert worst(y, known, "y") < 1e-5
