"""`_Function`: gradients that a class computes, as MindSpore 2.10 has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import GRAPH_MODE, PYNATIVE_MODE, Tensor, _Function, nn, ops


class Power(_Function):
    @staticmethod
    def forward(ctx: Any, x: Any, exponent: float) -> Any:
        result = x**exponent
        ctx.exponent = exponent
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, result = ctx.saved_tensors
        return 10 * gradient * ctx.exponent * result / x, None


class Pair(_Function):
    @staticmethod
    def forward(x: Any, y: Any = 2.0) -> Any:
        return x * y, 4, x + y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.inputs, ctx.count = inputs, len(output)

    @staticmethod
    def backward(ctx: Any, first: Any, none: Any, second: Any) -> Any:
        x, _ = ctx.inputs
        assert none is None and ctx.count == 3 and ctx.needs_input_grad == (True, False)
        return 3 * first + x * second, None


class Returning(_Function):
    """Returns as gradients what it was given for them."""

    returned: Any = ()

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        return x * y

    @classmethod
    def backward(cls, ctx: Any, gradient: Any) -> Any:
        return cls.returned


def test_backward_computes_the_gradients_from_what_forward_saved() -> None:
    x = Tensor([2.0, 3.0])
    np.testing.assert_array_equal(Power.apply(x, 2.0).asnumpy(), [4, 9])
    np.testing.assert_array_equal(mixtrain.grad(Power.apply)(x, 2.0).asnumpy(), [40, 60])
    np.testing.assert_array_equal(mixtrain.grad(lambda x: Power.apply(3 * x, 2.0))(x).asnumpy(), [360, 540])


def test_outputs_that_are_no_tensors_have_no_gradient_and_setup_context_sees_the_defaults() -> None:
    outputs = Pair.apply(Tensor([1.0, 5.0]))
    assert outputs[1] == 4 and outputs[2].asnumpy().tolist() == [3, 7]
    gradient = mixtrain.grad(lambda x: Pair.apply(x)[0] + 2 * Pair.apply(x)[2])(Tensor([1.0, 5.0]))
    np.testing.assert_array_equal(gradient.asnumpy(), [5, 13])


@pytest.mark.parametrize("mode", [GRAPH_MODE, PYNATIVE_MODE])
def test_a_network_trains_with_it(mode: int) -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = mixtrain.Parameter(Tensor([2.0]), name="w")

        def construct(self, x: Any) -> Any:
            return Power.apply(self.w * x, 2.0)

    mixtrain.set_context(mode=mode)
    net = Net()
    step = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), learning_rate=0.01))
    step.set_train()
    assert [round(float(step(Tensor([1.0])).asnumpy()[0]), 4) for _ in range(2)] == [4.0, 2.56]


def test_outputs_marked_non_differentiable_have_gradients_of_zero() -> None:
    class Marked(_Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            doubled = 2 * x
            ctx.mark_non_differentiable(doubled)
            return x * x, doubled

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return first + 100 * second

    gradient = mixtrain.grad(lambda x: Marked.apply(x)[0] + Marked.apply(x)[1])(Tensor([2.0]))
    np.testing.assert_array_equal(gradient.asnumpy(), [1])


def test_a_tensor_that_is_written_in_place_is_an_output_and_stays_the_same_tensor() -> None:
    class Dirty(_Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            x.add_(1)
            ctx.mark_dirty(x)
            return x + y, x

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return first, first * 2 + second

    def function(x: Any, y: Any) -> Any:
        x = x + 1
        total, written = Dirty.apply(x, y)
        return total + x + 0 * written

    first, second = mixtrain.grad(function, grad_position=(0, 1))(Tensor([2.0]), Tensor([3.0]))
    assert (float(first), float(second)) == (1, 3)
    x = Tensor([2.0])
    Dirty.apply(x, Tensor([3.0]))
    assert float(x) == 3


@pytest.mark.parametrize(
    ("returned", "y", "message"),
    [
        ((Tensor([1.0]),), Tensor([1.0]), "Returning: Function backward return a wrong number of gradients"),
        ((Tensor([1.0]), Tensor([1.0])), 3, "Returning: Input is not tensor, but gradient is not none"),
        ((Tensor([1.0]), 4), Tensor([1.0]), "Returning: Gradient should be none or tensor"),
    ],
)
def test_gradients_that_do_not_fit_are_refused(returned: Any, y: Any, message: str) -> None:
    Returning.returned = returned
    with pytest.raises(RuntimeError, match=message):
        ops.GradOperation(get_all=True)(Returning.apply)(Tensor([1.0]), y)


def test_forward_and_backward_must_be_defined() -> None:
    with pytest.raises(NotImplementedError, match="a subclass must define forward"):
        _Function.apply(Tensor([1.0]))


class Exponential(_Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        result = ops.exp(x)
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        x, result = ctx.saved_tensors
        return 10 * gradient * result * x


class ExponentialCell(nn.Cell):
    def construct(self, x: Any) -> Any:
        return ops.exp(x)

    def bprop(self, x: Any, out: Any, dout: Any) -> Any:
        return (10 * dout * out * x,)


@pytest.mark.parametrize("function", [Exponential.apply, ExponentialCell()])
def test_second_derivatives_go_through_what_was_saved_and_through_the_outputs(function: Any) -> None:
    x = Tensor([1.5])
    once = mixtrain.grad(lambda x: mixtrain.grad(function)(x))(x)
    # The derivative of 10 x exp(x), where that of the function itself is 10 x exp(x), too.
    np.testing.assert_allclose(once.asnumpy(), 10 * np.exp(1.5) * (1 + 15 * 1.5), rtol=1e-5)
    of_product = mixtrain.grad(lambda x: mixtrain.grad(lambda x: function(x) * x)(x))(x)
    np.testing.assert_allclose(of_product.asnumpy(), np.exp(1.5) * (10 * 1.5 + 20 * 1.5 + 10 * 1.5**2 * 15), rtol=1e-5)


def test_gradients_of_defaults_may_be_none() -> None:
    class Scaled(_Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float = 2.0) -> Any:
            ctx.factor = factor
            return factor * x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return 10 * ctx.factor * gradient, None

    assert float(mixtrain.grad(lambda x: Scaled.apply(x))(Tensor(3.0))) == 20


def test_vmap_keeps_the_gradients() -> None:
    def function(x: Any) -> Any:
        return ops.vmap(lambda row: Power.apply(row, 2.0) * row)(x).sum()

    for each in (function, mixtrain.jit(function)):
        gradient = mixtrain.grad(each)(Tensor([[1.0, 2.0], [3.0, 4.0]]))
        # x**2, and x times ten times 2 x.
        np.testing.assert_allclose(gradient.asnumpy(), [[21, 84], [189, 336]], rtol=1e-6)
