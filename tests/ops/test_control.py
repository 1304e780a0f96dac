"""`partial`, `depend` and `Print`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain as ms
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


def test_a_constant_expression_is_called_as_it_stands() -> None:
    assert ops.constexpr(len)([1, 2]) == 2 and ops.constexpr(get_instance=False)(len)([1]) == 1


def test_a_gradient_is_found_by_position_or_parameter() -> None:
    weight = ms.Parameter([2.0], name="weight")
    result = ms.grad(lambda x: (x * weight).sum(), 0, weight, return_ids=True)(ms.Tensor([3.0]))
    assert ms.get_grad(result, 0).asnumpy().tolist() == [2.0]
    assert ms.get_grad(result, weight).asnumpy().tolist() == [3.0]
    with pytest.raises(RuntimeError, match="expected an input or a Parameter that gradients were taken of; got 1"):
        ms.get_grad(result, 1)


def test_a_function_of_slices_is_mapped_over_the_axes() -> None:
    x, y = ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), ms.Tensor([10.0, 20.0])
    added = ms.vmap(lambda row, other: row + other, (0, None))(x, y)
    assert added.asnumpy().tolist() == [[11.0, 22.0], [13.0, 24.0]]
    columns = ms.vmap(lambda column: column * 2, 1, 1)(x)
    assert columns.asnumpy().tolist() == [[2.0, 4.0], [6.0, 8.0]]
    gradients = ms.vmap(ms.grad(lambda value: (value * value).sum()))(x)
    assert gradients.asnumpy().tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_vmap_of_a_list_of_cells_gives_each_its_slice() -> None:
    cells = ms.nn.CellList([ms.nn.Dense(2, 1, weight_init=value, has_bias=False) for value in ("ones", "zeros")])
    x = ms.Tensor([[[1.0, 2.0]], [[3.0, 4.0]]])
    assert ms.vmap(cells)(x).asnumpy().tolist() == [[[3.0]], [[0.0]]]
    assert ms.vmap(cells, in_axes=None)(x[1]).asnumpy().tolist() == [[[7.0]], [[0.0]]]
    with pytest.raises(ValueError, match="vmap: .* must be of size 2, that of the CellList"):
        ms.vmap(cells)(ms.ops.concat((x, x)))
    with pytest.raises(RuntimeError, match="vmap: a CellList must have several Cells; got 1"):
        ms.vmap(ms.nn.CellList([cells[0]]))
    assert ms.ops.Partial()(ms.ops.ReduceSum(), axis=2)(x=x).asnumpy().tolist() == [[3.0], [7.0]]


@pytest.mark.parametrize(
    ("in_axes", "out_axes", "message"),
    [
        (None, 0, "in_axes must not all be None"), ((None, None), 0, "in_axes must not all be None"),
        ((1.0, 1.0), 0, "in_axes must be an axis of a tensor with 2 of them; got 1.0"),
        ((0, 2), 0, "in_axes must be an axis of a tensor with 2 of them; got 2"),
        ((0, 1), 0, r"the axes that are mapped over must be of one size; got \[2, 3\]"),
        (0, 5, "out_axes must be an axis of a tensor with 2 of them; got 5"),
        ((0,), 0, "in_axes must have 2 axes, one for each"),
        (0, None, "out_axes must say where the results have the axis"),
    ],
)
def test_vmap_refuses_axes_that_do_not_fit_with_mindspore_s_error(in_axes: Any, out_axes: Any, message: str) -> None:
    x = ms.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with pytest.raises(RuntimeError, match=f"vmap: {message}"):
        ms.vmap(lambda a, b: a + b, in_axes, out_axes)(x, x)
