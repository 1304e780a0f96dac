"""`Custom`: a function of NumPy arrays as an operation, eager, compiled and in training, as in MindSpore on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.dataset as ds
from mixtrain import Model, Tensor, nn, ops
from mixtrain.ops.operations import PyFunc
from tests.backends import quick_every

X = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)


def _same(x: Any, *_: Any) -> Any:
    return x


def _leaky(x: np.ndarray) -> np.ndarray:
    x[x < 0] *= 0.5  # Of a copy.
    return x


def _back(x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor, ...]:
    return (ops.select(x < 0, dout * 0.5, dout),)


@pytest.mark.parametrize("compiled", [False, True])
def test_results_have_the_shapes_and_dtypes_that_are_said(compiled: bool) -> None:
    x = Tensor(X)

    def run(func: Any, *arguments: Any, inputs: Any = (x,)) -> Any:
        custom = ops.Custom(func, *arguments)
        return (mixtrain.jit(custom) if compiled else custom)(*inputs)

    added = run(np.add, _same, _same, inputs=(x, x))
    assert added.dtype == mixtrain.float32 and (added.asnumpy() == 2 * X).all()
    twice, total = run(lambda x: (2 * x, x.sum(1)), lambda x: (x, x[:1]), lambda x: (x, x))
    assert (twice.asnumpy() == 2 * X).all() and total.asnumpy().tolist() == [2.0, 3.0]
    (one,) = run(np.negative, ([2, 3],), (mixtrain.float32,))
    assert (one.asnumpy() == -X).all()
    assert run(lambda x: float(x.sum()), (), mixtrain.float32).asnumpy().tolist() == [5.0]
    half = run(lambda x: x.astype(np.float16), [3, 2], mixtrain.float16)  # In the order of memory, as in MindSpore.
    assert half.dtype == mixtrain.float16 and half.asnumpy().tolist() == X.reshape(3, 2).tolist()
    assert run(_leaky, _same, _same).asnumpy().min() == -3.0 and x.asnumpy().min() == -6.0


def test_numbers_come_as_they_are() -> None:
    kinds: list[type] = []

    def scaled(x: np.ndarray, factor: int) -> np.ndarray:
        kinds.append(type(factor))
        return x * factor

    assert (ops.Custom(scaled, _same, _same)(Tensor(X), 3).asnumpy() == 3 * X).all() and kinds == [int]


def test_gradients_are_those_of_bprop() -> None:
    leaky = ops.Custom(_leaky, _same, _same, bprop=_back)
    expected = np.where(X < 0, 0.5, 1.0)
    for gradient in (mixtrain.grad(leaky), mixtrain.jit(mixtrain.grad(leaky))):
        assert (gradient(Tensor(X)).asnumpy() == expected).all()
    by_custom = ops.Custom(np.square, _same, _same, bprop=lambda x, out, dout: (leaky(dout) * x * 2,))
    np.testing.assert_allclose(mixtrain.grad(by_custom)(Tensor(X)).asnumpy(), 2 * X)
    with pytest.raises(RuntimeError, match="the gradient of the function is not known"):
        mixtrain.grad(ops.Custom(np.square, _same, _same))(Tensor(X))


@quick_every(2)
@pytest.mark.parametrize("level", ["O0", "O2"])
def test_networks_with_one_train_as_without(level: str) -> None:
    trained = []
    for activation in (ops.Custom(_leaky, _same, _same, bprop=_back), nn.LeakyReLU(0.5)):
        weights = Tensor(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
        net = nn.SequentialCell(nn.Dense(3, 2, weights, bias_init="zeros"), _Calling(activation))
        model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.01), amp_level=level)
        model.train(2, ds.NumpySlicesDataset((X, X[:, :2]), shuffle=False).batch(2))
        trained.append(net[0].weight.asnumpy())
    np.testing.assert_allclose(*trained, atol=1e-6 if level == "O0" else 1e-3)


class _Calling(nn.Cell):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def construct(self, x: Tensor) -> Tensor:
        return self.function(x)


@pytest.mark.parametrize(("func", "shape", "dtype", "message"), [
    (lambda x: x.astype(np.float64), (2, 3), mixtrain.float32, "must return float32, the out_dtype; got float64"),
    (lambda x: x[:1], (2, 3), mixtrain.float32, r"an array of the out_shape \(2, 3\); got \(1, 3\)"),
    (lambda x: [x, x], ((2, 3),) * 2, (mixtrain.float32,) * 2, "must return a tuple of 2; got list"),
])
def test_results_that_are_others_are_an_error(func: Any, shape: Any, dtype: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        ops.Custom(func, shape, dtype)(Tensor(X))


@pytest.mark.parametrize(("arguments", "error", "message"), [
    ((abs, None, mixtrain.float32), TypeError, "out_shape must be given"),
    ((abs, (2, 3), None), TypeError, "out_dtype must be given"),
    ((abs, (), ()), TypeError, "out_dtype must be given"),
    ((3, (2, 3), mixtrain.float32), TypeError, "func must be a function"),
    ((abs, (2, 3), mixtrain.float32, "python"), ValueError, "func_type must be one of"),
    (("a.so:f", (2, 3), mixtrain.float32, "aot"), NotImplementedError, 'Write a function .* func_type="pyfunc"'),
])
def test_what_does_not_fit_is_refused(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ops.Custom(*arguments)
    with pytest.raises(TypeError, match="an input must be a tensor or a number"):
        ops.Custom(np.negative, _same, _same)((Tensor(X), Tensor(X)))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_py_func_returns_a_tuple_in_the_shapes_that_are_said(compiled: bool) -> None:
    both = PyFunc(lambda x: (2 * x, x.sum()), [mixtrain.float32], [(2, 3)], [mixtrain.float32] * 2, [(2, 3), ()])
    for inputs in ((Tensor(X),), ((Tensor(X),),)):
        doubled, total = (mixtrain.jit(both) if compiled else both)(*inputs)
        assert (doubled.asnumpy() == 2 * X).all() and total.shape == () and float(total) == X.sum()
    with pytest.raises(ValueError, match="PyFunc: out_shapes must be 1; got 2"):
        PyFunc(abs, [], [], [mixtrain.float32], [(1,), (2,)])
