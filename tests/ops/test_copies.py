"""`Identity` and `deepcopy` return new tensors; `identity` returns what it is passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Parameter, Tensor, nn, ops
from mixtrain.ops import operations as P

COPIES: dict[str, Callable[[Any], Any]] = {"Identity": ops.Identity(), "deepcopy": ops.deepcopy}


def _corners(box: Any, copied: Callable[[Any], Any]) -> Any:
    """Return the corners of boxes by their centers and sizes, as detection scripts compute them."""
    y = copied(box)
    y[..., 0] = box[..., 0] - box[..., 2] / 2
    y[..., 2] = box[..., 0] + box[..., 2] / 2
    return y


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_write_to_a_copy_is_not_seen_in_what_was_copied(name: str, compiled: bool) -> None:
    function = mixtrain.jit(_corners) if compiled else _corners
    box = Tensor([[10.0, 20.0, 4.0, 6.0]])
    np.testing.assert_array_equal(function(box, COPIES[name]).asnumpy(), [[8, 20, 12, 6]])
    np.testing.assert_array_equal(box.asnumpy(), [[10, 20, 4, 6]])


@pytest.mark.slow
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_passes_gradients_on_and_is_one_of_parameters_and_channels_last_tensors_too(name: str) -> None:
    copied = COPIES[name]
    gradient = mixtrain.grad(lambda x: (copied(x) ** 2).sum())(Tensor([3.0]))
    assert gradient.asnumpy().tolist() == [6.0]
    weight = Parameter(Tensor([1.0, 2.0]), name="w")
    values = copied(weight)
    values[0] = 9.0
    weight.set_data(Tensor([5.0, 6.0]))
    assert values.asnumpy().tolist() == [9.0, 2.0] and not isinstance(values, Parameter)
    maps = nn.Conv2d(1, 2, 3)(Tensor(np.ones((1, 1, 4, 4), np.float32)))
    np.testing.assert_array_equal(copied(maps).asnumpy(), maps.asnumpy())
    assert copied(Tensor([True])).dtype == mixtrain.bool_ and tuple(copied(Tensor(np.zeros((0, 2)))).shape) == (0, 2)


def test_identity_returns_the_very_value_that_it_is_passed() -> None:
    one, two = Tensor([1.0]), Tensor([1.0, 2.0])
    for value in (one, (one, two), [two, one], {"a": one}, 1.5, None, np.ones(2)):
        assert ops.identity(value) is value and P.identity()(value) is value


class _Reduced(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.reducer = ops.identity

    def construct(self, x: Any) -> Any:
        first, second = self.reducer((x, x[0]))
        return first.sum() + second.sum()


@pytest.mark.slow
def test_a_reducer_that_is_identity_takes_a_tuple_of_gradients_inside_a_network() -> None:
    net, x = _Reduced(), Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert float(net(x)) == float(mixtrain.jit(net)(x)) == 13.0
