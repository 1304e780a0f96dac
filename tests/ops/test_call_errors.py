"""Errors that only the backend finds: they name the operator or cell and its arguments, on both backends."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import mixtrain
from mixtrain import nn, numpy as mnp, ops

SQUARE = mixtrain.Tensor(np.ones((3, 3), np.float32))
OBLONG = mixtrain.Tensor(np.ones((4, 5), np.float32))
EMPTY = mixtrain.Tensor(np.ones((0, 3), np.float32))
SHAPES = r"got .*Tensor of shape \(3, 3\) and dtype float32, Tensor of shape \(4, 5\) and dtype float32.* Write a call"


@pytest.mark.parametrize("call, message", [
    (lambda: ops.einsum("ij,jk->ik", SQUARE, OBLONG), r"^ops.einsum: expected arguments .*" + SHAPES),
    (lambda: ops.inverse(OBLONG), r"^ops.inverse: .*\(4, 5\).*square matrix.*help\(mixtrain.ops.inverse\)\.$"),
    (lambda: ops.max(EMPTY, 0), r"^ops.max: .*Tensor of shape \(0, 3\) and dtype float32, 0 \("),
    (lambda: EMPTY.argmax(0), r"^Tensor.argmax: .*Tensor of shape \(0, 3\).*help\(mixtrain.Tensor.argmax\)\.$"),
    (lambda: ops.ArgMaxWithValue(0)(EMPTY), r"^ops.ArgMaxWithValue: .*Tensor of shape \(0, 3\)"),
    (lambda: ops.grid_sample(SQUARE, OBLONG), r"^ops.grid_sample: input and grid must have axes .*got \(\(3, 3\), \(4"),
    (lambda: ops.strided_slice(SQUARE, (0,), (1, 1), (1,)), r"^ops.strided_slice: .* equally long; got \[1, 2, 1\]"),
    (lambda: ops.adaptive_avg_pool2d(SQUARE[None, None], (1, 1, 1)), r"^ops.adaptive_avg_pool2d: output_size must"),
    (lambda: ops.adaptive_avg_pool3d(SQUARE, 1), r"^ops.adaptive_avg_pool3d: input must have 5 axes"),
    (lambda: mnp.split(SQUARE, 2), r"^numpy.split: "),
])
def test_the_error_names_the_operator_and_what_it_got(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_an_error_in_construct_names_the_operator_too() -> None:
    class Product(nn.Cell):
        def construct(self, x: mixtrain.Tensor) -> mixtrain.Tensor:
            return ops.einsum("ij,jk->ik", x, OBLONG)

    with pytest.raises(ValueError, match="ops.einsum: expected arguments .*" + SHAPES):
        Product()(SQUARE)


def test_an_error_of_the_users_function_passes_unchanged() -> None:
    def fails(x: mixtrain.Tensor) -> mixtrain.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="^'mine'$"):
        ops.WhileLoop()(lambda x: x.sum() < 3, fails, mixtrain.Tensor(1.0))


def test_the_backends_error_stays_as_the_cause() -> None:
    with pytest.raises(ValueError, match="ops.inverse") as raised:
        ops.inverse(OBLONG)
    assert "square" in str(raised.value.__cause__)


class Stack(nn.Cell):
    """A recurrent cell below two other cells, called with a state of another batch."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.SequentialCell(nn.ReLU(), nn.LSTMCell(3, 4))

    def construct(self, x: mixtrain.Tensor) -> tuple[mixtrain.Tensor, mixtrain.Tensor]:
        return self.body[1](self.body[0](x), (ops.ones((5, 4)), ops.ones((5, 4))))


def test_an_error_in_nested_cells_says_in_which_one_and_with_what() -> None:
    note = "Raised in LSTMCell body.1, called with Tensor of shape (3, 3) and dtype float32, tuple of 2, the first "
    with pytest.raises(Exception, match="ncompatible shapes") as raised:
        Stack()(SQUARE)
    assert [text.startswith(note) for text in raised.value.__notes__ if "called with" in text] == [True]


def test_an_error_of_the_users_construct_keeps_its_class_and_message() -> None:
    class Fails(nn.Cell):
        def construct(self, x: mixtrain.Tensor) -> mixtrain.Tensor:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="^'mine'\n") as raised:
        nn.SequentialCell(Fails())(SQUARE)
    assert "Raised in Fails 0, called with Tensor of shape (3, 3) and dtype float32." in raised.value.__notes__


def test_the_reason_in_a_traced_function_has_no_node_of_its_graph() -> None:
    mask = mixtrain.Tensor(np.ones(7, bool))
    with pytest.raises(ValueError, match=r"^ops.where: .*Tensor of shape \(3, 3\)") as raised:
        mixtrain.jit(lambda x: ops.where(mask, x, 0.0))(SQUARE)
    assert "node" not in str(raised.value) and "[" in str(raised.value)
