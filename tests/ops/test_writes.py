"""What writes to a Tensor: recorded with mindspore 2.10.0 on a CPU, in PyNative mode and under `jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Parameter, Tensor, nn, ops
from tests.backends import ON_TENSORFLOW

I32 = mixtrain.int32
ROWS, AT = Tensor([[1.0, 2.0], [7.0, 8.0]]), Tensor([0, 1], I32)


def _tensor() -> Tensor:
    return Tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


# The operator, and what its first argument holds afterwards; its result is the same.
WRITTEN: dict[str, tuple[Callable[[Any], Any], list[list[float]]]] = {
    "assign": (lambda x: ops.assign(x, _tensor() * 2), [[2, 4], [6, 8], [10, 12]]),
    "Assign": (lambda x: ops.Assign()(x, _tensor() * 2), [[2, 4], [6, 8], [10, 12]]),
    "assign_add": (lambda x: ops.assign_add(x, _tensor()), [[2, 4], [6, 8], [10, 12]]),
    "AssignSub": (lambda x: ops.AssignSub()(variable=x, value=_tensor()), [[0, 0], [0, 0], [0, 0]]),
    "assign_add of half": (lambda x: ops.assign_add(x, Tensor(np.ones((3, 2), np.float16))), [[2, 3], [4, 5], [6, 7]]),
    "index_add": (lambda x: ops.index_add(x, AT, ROWS, 0), [[2, 4], [10, 12], [5, 6]]),
    "InplaceIndexAdd": (lambda x: ops.InplaceIndexAdd(0)(x, AT, ROWS), [[2, 4], [10, 12], [5, 6]]),
    "scatter_add": (lambda x: ops.scatter_add(x, AT, ROWS), [[2, 4], [10, 12], [5, 6]]),
    "ScatterAdd": (lambda x: ops.ScatterAdd()(x, AT, ROWS), [[2, 4], [10, 12], [5, 6]]),
    "scatter_update": (lambda x: ops.scatter_update(x, AT, ROWS), [[1, 2], [7, 8], [5, 6]]),
    "scatter_nd_add": (lambda x: ops.scatter_nd_add(x, Tensor([[0]], I32), ROWS[:1]), [[2, 4], [3, 4], [5, 6]]),
    "ApplyMomentum": (
        lambda x: ops.ApplyMomentum()(x, _tensor(), 0.1, _tensor(), 0.9), [[0.81, 1.62], [2.43, 3.24], [4.05, 4.86]]
    ),
    "ApplyGradientDescent": (
        lambda x: ops.ApplyGradientDescent()(x, 0.1, _tensor()), [[0.9, 1.8], [2.7, 3.6], [4.5, 5.4]]
    ),
}
COPIED: dict[str, Callable[[Any], Any]] = {
    "inplace_add": lambda x: ops.inplace_add(x, ROWS, (0, 1)),
    "inplace_sub": lambda x: ops.inplace_sub(x, ROWS, (0, 1)),
    "inplace_update": lambda x: ops.inplace_update(x, ROWS, (0, 1)),
    "masked_fill": lambda x: ops.masked_fill(x, x > 1, 1.0),
    "index_fill": lambda x: ops.index_fill(x, 0, AT, 1.0),
    "tensor_scatter_add": lambda x: ops.tensor_scatter_add(x, Tensor([[0], [1]], I32), ROWS),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_operators_write_to_a_tensor(name: str) -> None:
    operator, expected = WRITTEN[name]
    x = _tensor()
    result = operator(x)
    assert result is not x
    np.testing.assert_allclose(x.asnumpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(result.asnumpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("name", COPIED)
def test_other_operators_do_not(name: str) -> None:
    x = _tensor()
    COPIED[name](x)
    np.testing.assert_array_equal(x.asnumpy(), _tensor().asnumpy())


def test_a_write_reaches_the_tensor_that_a_view_was_taken_from() -> None:
    x = _tensor()
    ops.assign_add(x[0], Tensor([10.0, 10.0]))
    assert x.asnumpy()[0].tolist() == [11.0, 12.0]


def _add(x: Any) -> Any:
    x.add_(x)
    return x * x


def _assign(x: Any) -> Any:
    ops.assign(x, x * 3)
    return x


def _alias(x: Any) -> Any:
    y = x
    y.mul_(2.0)
    return x + y


def _index(x: Any) -> Any:
    x[0] = 5.0
    return x * x


def _reshaped(x: Any) -> Any:
    y = x.reshape(2, 1)
    y.mul_(2.0)
    return y.sum()


# The function, its result for [1, 2], and what the argument holds afterwards.
COMPILED: list[tuple[Callable[[Any], Any], Any, list[float]]] = [
    (_add, [4, 16], [2, 4]), (_assign, [3, 6], [3, 6]), (_alias, [4, 8], [2, 4]), (_index, [25, 4], [1, 2]),
    (_reshaped, 6, [1, 2]), (lambda x: x.add_(1.0), [2, 3], [2, 3]),
]


class _Calling(nn.Cell):
    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def construct(self, x: Any) -> Any:
        return self.function(x)


@pytest.mark.parametrize(("function", "result", "after"), COMPILED)
def test_a_compiled_function_writes_to_its_arguments_in_place_but_not_by_index(
    function: Callable[[Any], Any], result: Any, after: list[float]
) -> None:
    compiled = mixtrain.jit(function)
    for _ in range(2):
        x = Tensor([1.0, 2.0])
        assert compiled(x).asnumpy().tolist() == result
        assert x.asnumpy().tolist() == after
    x = Tensor([1.0, 2.0])
    assert mixtrain.jit(lambda pair: function(pair["x"]))({"x": x}).asnumpy().tolist() == result
    assert x.asnumpy().tolist() == after
    mixtrain.set_context(mode=mixtrain.GRAPH_MODE)
    x = Tensor([1.0, 2.0])
    assert _Calling(function)(x).asnumpy().tolist() == result
    assert x.asnumpy().tolist() == after


def test_compiled_writes_to_two_arguments_see_each_other() -> None:
    @mixtrain.jit
    def both(x: Any, y: Any) -> Any:
        x.add_(y)
        y.add_(x)
        return x + y

    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    assert both(x, y).asnumpy().tolist() == [11.0, 16.0]
    assert (x.asnumpy().tolist(), y.asnumpy().tolist()) == ([4.0, 6.0], [7.0, 10.0])


@pytest.mark.parametrize(("write", "expected"), [
    (ops.assign_add, [1, 2, 3, 4, 5, 6]), (ops.assign_sub, [-1, -2, -3, -4, -5, -6]),
    (lambda p, v: ops.IndexAdd(0)(p, Tensor([0, 2], mixtrain.int32), v[::2]), [1, 2, 0, 0, 5, 6]),
    (lambda p, v: ops.ScatterUpdate()(p, Tensor([0, 2], mixtrain.int32), v[::2]), [1, 2, 0, 0, 5, 6]),
    (lambda p, v: ops.ScatterNdMax()(p, Tensor([[0], [2]], mixtrain.int32), v[::2]), [1, 2, 0, 0, 5, 6]),
])
@pytest.mark.parametrize("mode", [mixtrain.PYNATIVE_MODE, mixtrain.GRAPH_MODE])
def test_what_is_written_to_a_parameter_has_its_gradient_as_in_mindspore(write: Any, expected: Any, mode: int) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.weight = Parameter(np.ones((3, 2), np.float32))

        def construct(self, value: Any) -> Any:
            return (write(self.weight, value) * Tensor(np.arange(1, 7, dtype=np.float32).reshape(3, 2))).sum()

    mixtrain.set_context(mode=mode)
    gradient = mixtrain.grad(Net())(Tensor(np.full((3, 2), 2, np.float32)))
    assert gradient.asnumpy().ravel().tolist() == expected


X, ONE = Tensor(np.ones((3, 2), np.float32)), Tensor(np.ones((1, 2), np.float32))


@pytest.mark.parametrize(("indices", "updates", "kind", "words"), [
    ([[5]], ONE, RuntimeError, "at least 0 and below"), ([[-1]], ONE, RuntimeError, "x.indices. to count"),
    ([[0, 1, 1]], Tensor([1.0]), ValueError, "1 to 2 elements"),
    ([[1]], Tensor([[1.0]]), ValueError, "must have shape .1, 2."), ([[1]], Tensor(1.0), ValueError, "must have shape"),
    ([[1.0]], ONE, TypeError, "int32 or int64"),
    pytest.param(
        [[1]], Tensor(np.ones((1, 2))), TypeError, "must fit float32",
        marks=pytest.mark.skipif(not ON_TENSORFLOW, reason="JAX has no float64 here"),
    ),
])
@pytest.mark.parametrize("primitive", [ops.TensorScatterAdd, ops.ScatterNdAdd, ops.TensorScatterMax])
def test_scattered_updates_are_checked_as_in_mindspore(
    primitive: Any, indices: Any, updates: Any, kind: Any, words: str
) -> None:
    places = Tensor(indices, None if isinstance(indices[0][0], float) else mixtrain.int32)
    x = Parameter(X) if primitive is ops.ScatterNdAdd else X
    with pytest.raises(kind, match=words):
        primitive()(x, places, updates)
    assert x.asnumpy().tolist() == [[1, 1]] * 3
    if kind is RuntimeError:
        with pytest.raises(RuntimeError, match="gather_nd"):
            ops.gather_nd(x, places)
