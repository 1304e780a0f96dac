"""A Cell's `bprop` gives the gradients of its inputs, as in MindSpore 2.10, whose numbers these are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Model, Parameter, Tensor, nn, ops
from mixtrain.ops.custom_backward import custom_backward
from mixtrain.train import Callback, RunContext


class Signed(nn.Cell):
    """The sign, with the gradient of the identity, as networks with quantized weights have it."""

    def construct(self, x: Tensor) -> Tensor:
        return ops.sign(x) * ops.abs(x).mean()

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout,)


class QuantizedDense(nn.Dense):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.signed = Signed()

    def construct(self, x: Tensor) -> Tensor:
        return self.bias_add(self.matmul(x, self.signed(self.weight)), self.bias)


class Both(nn.Cell):
    def construct(self, x1: Tensor, x2: Tensor) -> tuple[Tensor, Tensor]:
        return x1 * x2, x1 + x2

    def bprop(
        self, x1: Tensor, x2: Tensor, out: tuple[Tensor, Tensor], dout: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        return dout[0] * 10 + out[0], dout[1] * 100 + x2


class Scaled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(Tensor([2.0, 3.0]), name="w")

    def construct(self, x: Tensor) -> Tensor:
        return x * self.w

    def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> tuple[Tensor]:
        return (dout * self.w * 5,)


class Network(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.d, self.i, self.t = nn.Dense(2, 2), Scaled(), Both()
        self.d.weight.set_data(Tensor([[1.0, 2.0], [3.0, 4.0]]))
        self.d.bias.set_data(Tensor([0.1, 0.2]))

    def construct(self, x: Tensor) -> Tensor:
        a, b = self.t(self.d(x), x)
        return self.i(a) + b


def test_gradients_of_several_inputs_and_outputs_are_those_that_bprop_returns() -> None:
    both = Both()
    gradients = mixtrain.grad(lambda a, b: (both(a, b)[0] * 2 + both(a, b)[1]).sum(), (0, 1))(
        Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    )
    assert [gradient.asnumpy().tolist() for gradient in gradients] == [[26.0, 36.0], [106.0, 108.0]]


def test_a_parameter_as_an_input_gets_the_gradient_of_bprop_and_one_inside_gets_none() -> None:
    weight, signed = Parameter(Tensor([1.0, -2.0, 3.0]), name="weight"), Signed()
    x = Tensor([1.0, 10.0, 100.0])
    _, (gradient,) = mixtrain.value_and_grad(lambda x: ((x * signed(weight)) ** 2).sum(), None, [weight])(x)
    assert gradient.asnumpy().tolist() == [4.0, -400.0, 40000.0]
    scaled = Scaled()
    value, (of_x, (of_w,)) = mixtrain.value_and_grad(lambda x: scaled(x).sum(), 0, [scaled.w])(Tensor([1.0, 2.0]))
    assert (float(value), of_x.asnumpy().tolist(), of_w.asnumpy().tolist()) == (8.0, [10.0, 15.0], [0.0, 0.0])


def test_compiled_train_steps_use_it() -> None:
    network = Network().set_train()
    value, (of_x, weights) = mixtrain.value_and_grad(lambda x: network(x).sum(), 0, network.trainable_params())(
        Tensor([[1.0, 2.0]])
    )
    np.testing.assert_allclose(float(value), 96.7, rtol=1e-6)
    np.testing.assert_allclose(of_x.asnumpy(), [[723.3, 1001.8]], rtol=1e-6)
    np.testing.assert_allclose(weights[0].asnumpy(), [[105.1, 210.2], [172.4, 344.8]], rtol=1e-6)
    step = nn.TrainOneStepCell(nn.WithLossCell(network, nn.MSELoss()), nn.SGD(network.trainable_params(), 0.1))
    for _ in range(3):
        step.set_train()(Tensor([[1.0, 2.0]]), Tensor([[0.0, 1.0]]))
    np.testing.assert_allclose(network.d.weight.asnumpy()[0], [-5245001.0, -10490002.0], rtol=1e-6)


ROWS = np.random.RandomState(0).randn(24, 4).astype(np.float32)
LABELS = (ROWS @ np.array([[1.0], [-2.0], [0.5], [0.0]], np.float32)).astype(np.float32)


class Controlling(Callback):
    """Needs control between any two steps."""

    def step_end(self, run_context: RunContext) -> None:
        assert run_context.original_args().cur_step_num


def trained(level: str, *, sink: bool = False, lone: bool = False) -> tuple[np.ndarray, float]:
    """Return the weights and the last loss of two epochs, in groups of steps, one by one, or in sink feed."""
    mixtrain.set_seed(1)
    network = QuantizedDense(4, 1, weight_init=Tensor([[0.1, -0.2, 0.3, -0.4]]), bias_init="zeros")
    model = Model(
        network, nn.MSELoss(), nn.Momentum(network.trainable_params(), 0.05, 0.9), amp_level=level
    )
    data = mixtrain.dataset.NumpySlicesDataset((ROWS, LABELS), shuffle=False).batch(4)
    callbacks = [Controlling()] if lone else []
    history = model.fit(2, data, callbacks=callbacks, dataset_sink_mode=sink, verbose=0)
    return network.weight.asnumpy(), history.history["loss"][-1]


@pytest.mark.slow
def test_every_feed_trains_by_it_with_the_same_numbers() -> None:
    weights, loss = trained("O0")
    expected, bias, moments = np.array([0.1, -0.2, 0.3, -0.4], np.float32), np.float32(0), np.zeros(5, np.float32)
    for _ in range(2):
        for start in range(0, 24, 4):
            x, y = ROWS[start : start + 4], LABELS[start : start + 4, 0]
            signed = np.sign(expected) * np.abs(expected).mean()
            error = 2 * (x @ signed + bias - y) / 4
            moments = 0.9 * moments + np.append(error @ x, error.sum())
            expected, bias = expected - 0.05 * moments[:4], bias - 0.05 * moments[4]
    np.testing.assert_allclose(weights[0], expected, rtol=2e-4)
    for feed in ({"sink": True}, {"lone": True}):
        others, other_loss = trained("O0", **feed)
        np.testing.assert_allclose(others, weights, rtol=1e-5)
        np.testing.assert_allclose(other_loss, loss, rtol=1e-5)


@pytest.mark.slow
def test_in_mixed_precision_it_takes_the_dtype_of_the_layer() -> None:
    weights, _ = trained("O2")
    np.testing.assert_allclose(weights, trained("O0")[0], rtol=2e-2, atol=1e-3)


def test_trees_numbers_and_named_arguments_are_taken() -> None:
    class Mixed(nn.Cell):
        def construct(self, xs: tuple[Tensor, Tensor], factor: float, shift: Tensor | None = None) -> Tensor:
            return xs[0] * factor + xs[1]

        def bprop(self, xs: Any, factor: float, shift: Any, out: Tensor, dout: Tensor) -> Any:
            return (dout * 2, dout * factor), None, None

    mixed = Mixed()
    gradients = mixtrain.grad(lambda a, b: mixed((a, b), shift=None, factor=3.0).sum(), (0, 1))(
        Tensor([1.0]), Tensor([4.0])
    )
    assert [gradient.asnumpy().tolist() for gradient in gradients] == [[2.0], [3.0]]


@pytest.mark.parametrize(("returned", "error", "message"), [
    (lambda x, dout: (), TypeError, r"Wrong.*bprop: it must return 1 gradients, one for each input"),
    (lambda x, dout: ((dout, dout),), TypeError, r"bprop: the gradient of an input of 1 tensors must have as many"),
    (lambda x, dout: (dout[:1],), ValueError, r"bprop: the gradient of an input of shape \(2,\) must have its shape"),
])
def test_gradients_that_do_not_fit_are_refused(returned: Any, error: type[Exception], message: str) -> None:
    class Wrong(nn.Cell):
        def construct(self, x: Tensor) -> Tensor:
            return x * 2

        def bprop(self, x: Tensor, out: Tensor, dout: Tensor) -> Any:
            return returned(x, dout)

    wrong = Wrong()
    with pytest.raises(error, match=message):
        mixtrain.grad(lambda x: wrong(x).sum())(Tensor([1.0, 2.0]))


def test_gradients_of_a_broadcast_shape_are_summed_and_further_ones_ignored_as_in_mindspore() -> None:
    class Sum(nn.Cell):
        def construct(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y

        def bprop(self, x: Tensor, y: Tensor, out: Tensor, dout: Tensor) -> Any:
            return dout, dout, out, dout

    both = ops.GradOperation(get_all=True)(Sum())
    for x, expected in (([3.0, 3.0, 3.0], [2.0] * 3), ([[1.0], [2.0]], [[3.0], [3.0]]), (1.0, 6.0)):
        first, second = both(Tensor(x), Tensor(np.ones((2, 3), np.float32)))
        assert first.asnumpy().tolist() == expected and second.asnumpy().tolist() == [[1.0] * 3] * 2


def test_a_function_of_backend_tensors_and_integers_without_gradients() -> None:
    rule = custom_backward("f", lambda x, n: (x * n, n), lambda x, n, out, dout: (dout[0] * 7, 0))
    assert float(mixtrain.grad(lambda x: rule(x, Tensor(2))[0])(Tensor(3.0))) == 7.0
    assert int(rule(Tensor(1), Tensor(2))[0]) == 2
