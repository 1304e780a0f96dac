"""Forms of methods that MindSpore 2.10 tells apart by position, by keyword and by whether code is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, nn, ops

X = Tensor(np.arange(6.0, dtype=np.float32).reshape(1, 2, 3))


def shapes(value: Any) -> Any:
    return [tuple(part.shape) for part in value] if isinstance(value, tuple) else tuple(value.shape)


@pytest.mark.parametrize(("call", "eager", "compiled"), [
    (lambda x: x.max(-2), [(1, 3)] * 2, (1, 3)), (lambda x: x.min(1), [(1, 3)] * 2, (1, 3)),
    (lambda x: x.max(-1, True), [(1, 2, 1)] * 2, (1, 2, 1)), (lambda x: x.max(dim=1), [(1, 3)] * 2, [(1, 3)] * 2),
    (lambda x: x.max(-1, keepdim=True), [(1, 2, 1)] * 2, [(1, 2, 1)] * 2), (lambda x: x.max(axis=-2), (1, 3), (1, 3)),
    (lambda x: x.max(axis=1, return_indices=True), [(1, 3)] * 2, [(1, 3)] * 2),
])
def test_compiled_code_takes_the_form_of_max_that_returns_values_alone(
    call: Callable[[Any], Any], eager: Any, compiled: Any
) -> None:
    assert (shapes(call(X)), shapes(mixtrain.jit(call)(X))) == (eager, compiled)


def test_the_axis_may_be_called_dim() -> None:
    assert X.index_select(dim=2, index=Tensor([0])).asnumpy().tolist() == [[[0], [3]]]
    assert X.repeat_interleave(2, dim=1).shape == X.repeat_interleave(2, axis=1).shape == (1, 4, 3)


def test_the_device_is_the_first() -> None:
    assert mixtrain.get_context("device_id") == 0


class Weighted(nn.Cell):
    """Takes a pair, of which the second part is a number."""

    def construct(self, x: Any, pair: Any) -> Any:
        """Return the sum, and what no slice changes."""
        return x + pair[0] * 2 + pair[1], Tensor([5.0])


def test_axes_of_vmap_may_be_those_of_parts_and_of_no_axis() -> None:
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    result, same = ops.vmap(Weighted(), in_axes=(1, [-1, None]), out_axes=(0, None))(x, (x, 1))
    assert result.asnumpy().tolist() == [[4, 13], [7, 16], [10, 19]]
    assert same.asnumpy().tolist() == [5]
