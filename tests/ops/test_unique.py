"""Tests of unique elements: compiled with known sizes, and with the dtypes of MindSpore's indices."""

from __future__ import annotations

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, ops
from tests.backends import held_as

X = np.random.RandomState(0).randint(0, 5, 12).astype(np.int32)


@pytest.mark.parametrize("compiled", [False, True])
def test_unique_elements_are_padded_in_their_order_of_appearance(compiled: bool) -> None:
    def pad(x: Tensor) -> tuple[Tensor, Tensor]:
        return ops.UniqueWithPad()(x, -1)

    values, indices = (mixtrain.jit(pad) if compiled else pad)(Tensor(X))
    seen = list(dict.fromkeys(X.tolist()))
    assert values.asnumpy().tolist() == seen + [-1] * (len(X) - len(seen))
    assert indices.asnumpy().tolist() == [seen.index(value) for value in X]


def test_each_row_has_its_own_under_vmap() -> None:
    values, indices = ops.vmap(lambda x: ops.UniqueWithPad()(x, 0))(Tensor([[1, 2, 5, 2], [3, 3, 3, 1]]))
    assert values.asnumpy().tolist() == [[1, 2, 5, 0], [3, 1, 0, 0]]
    assert indices.asnumpy().tolist() == [[0, 1, 2, 1], [0, 0, 0, 1]]


@pytest.mark.parametrize(("dtype", "expected"), [("int64", "int64"), ("int32", "int32"), ("float16", "int32")])
def test_indices_are_int64_for_elements_of_int64(dtype: str, expected: str) -> None:
    x = Tensor(np.array([3, 1, 3], dtype))
    assert ops.unique(x)[1].dtype.name == ops.UniqueWithPad()(x, 0)[1].dtype.name == held_as(expected)


def test_more_axes_than_one_are_refused() -> None:
    with pytest.raises(ValueError, match="x must have one axis"):
        ops.UniqueWithPad()(Tensor([[1, 2]]), 0)
