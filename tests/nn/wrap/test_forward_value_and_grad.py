"""`ForwardValueAndGrad`: the shapes of results that MindSpore 2.10 gives, and the gradients of train cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import backend, nn, ops

X, Y = mixtrain.Tensor([1.0, 2.0]), mixtrain.Tensor([3.0, 4.0])


class Net(nn.Cell):
    """The product of two inputs and a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.z = mixtrain.Parameter([2.0, 5.0], name="w"), mixtrain.Parameter([1.0], name="z")

    def construct(self, a: Any, b: Any) -> Any:
        return a * b * self.w


def plain(values: Any) -> Any:
    if isinstance(values, tuple):
        return tuple(map(plain, values))
    return backend.to_numpy(values).tolist()


@pytest.mark.parametrize(
    ("get_all", "get_by_list", "expected"),
    [
        (False, False, [6.0, 20.0]), (True, False, ([6.0, 20.0], [2.0, 10.0])), (False, True, ([3.0, 8.0], [0.0])),
        (True, True, (([6.0, 20.0], [2.0, 10.0]), ([3.0, 8.0], [0.0]))),
    ],
)
def test_gradients_are_what_the_settings_say(get_all: bool, get_by_list: bool, expected: Any) -> None:
    net = Net()
    step = nn.ForwardValueAndGrad(net, net.trainable_params(), get_all, get_by_list)
    assert plain(step(X, Y)) == ([6.0, 40.0], expected)
    assert plain(mixtrain.jit(step)(X, Y)) == ([6.0, 40.0], expected)


def test_the_start_of_the_gradient_is_the_last_argument() -> None:
    step = nn.ForwardValueAndGrad(Net(), sens_param=True)
    assert plain(step(X, Y, mixtrain.Tensor([10.0, 1.0]))) == ([6.0, 40.0], [60.0, 20.0])


def test_it_is_a_step_of_a_loop_of_ones_own() -> None:
    net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    with_loss, optimizer = nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5)
    step = nn.ForwardValueAndGrad(with_loss, weights=optimizer.parameters, get_by_list=True)

    @mixtrain.jit
    def train(x: Any, y: Any) -> Any:
        loss, grads = step(x, y)
        return ops.depend(loss, optimizer(grads))

    assert [float(train(np.float32([[1.0]]), np.float32([[2.0]]))) for _ in range(2)] == [4.0, 0.0]


def test_weights_are_needed_and_must_be_parameters() -> None:
    with pytest.raises(TypeError, match="ForwardValueAndGrad: weights must be Parameters with get_by_list=True"):
        nn.ForwardValueAndGrad(Net(), get_by_list=True)
    with pytest.raises(TypeError, match="each of the weights must be a"):
        nn.ForwardValueAndGrad(Net(), [X], get_by_list=True)
    with pytest.raises(TypeError, match="get_all must be True or False"):
        nn.ForwardValueAndGrad(Net(), get_all=1)  # type: ignore[arg-type]


def test_a_train_cell_gives_subclasses_gradients_by_its_weights_from_sens() -> None:
    class Step(nn.TrainOneStepCell):
        def construct(self, *inputs: Any) -> Any:
            loss = self.network(*inputs)
            grads = self.grad(self.network, self.weights)(*inputs, ops.fill(loss.dtype, loss.shape, self.sens))
            return ops.depend(loss, self.optimizer(self.grad_reducer(grads)))

    net = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    step = Step(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5, loss_scale=8.0), 8.0)
    assert float(step(mixtrain.Tensor([[1.0]]), mixtrain.Tensor([[2.0]]))) == 4.0
    assert net.weight.asnumpy().tolist() == [[2.0]]
