"""`partial`, `depend` and `Print`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import ops
from tests.backends import held_as


def test_partial_gives_the_first_arguments() -> None:
    assert ops.partial(pow, 2)(5) == 32
    assert ops.Partial()(pow, 2)(5) == 32
    with pytest.raises(TypeError, match="partial: func must be a function"):
        ops.partial(3)  # type: ignore[arg-type]


def test_depend_returns_its_first_argument_after_the_effect_of_the_second() -> None:
    weight = mixtrain.Parameter(np.zeros(2, np.float32), name="w")

    @mixtrain.jit
    def step(x: Any) -> Any:
        return ops.depend(x, weight.assign(x * 2))

    assert step(mixtrain.Tensor([1.0, 2.0])).asnumpy().tolist() == [1.0, 2.0]
    assert weight.asnumpy().tolist() == [2.0, 4.0]
    assert ops.Depend()(3, None) == 3


def test_print_shows_values_eagerly_and_at_each_compiled_call(capsys: Any) -> None:
    x = mixtrain.Tensor([[1, 2]])
    ops.Print()("x is", x, (2, mixtrain.Parameter(1.5, name="p")))
    held = held_as("int64").capitalize()
    shown = f"x is\nTensor(shape=[1, 2], dtype={held}, value=[[1 2]])\n2\nTensor(shape=[], dtype=Float32, value=1.5)\n"
    assert capsys.readouterr().out == shown

    @mixtrain.jit
    def step(x: Any) -> Any:
        ops.Print()("x", x)
        return x

    for value in (1.0, 2.0):
        step(mixtrain.Tensor([value]))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [line for v in ("1.", "2.") for line in ("x", f"Tensor(shape=[1], dtype=Float32, value=[{v}])")]
