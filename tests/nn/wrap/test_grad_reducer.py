"""`DistributedGradReducer` on one device: gradients pass as they are, and more devices are refused."""

from __future__ import annotations

import numpy as np
import pytest

import mixtrain
from mixtrain import nn


def test_gradients_of_one_device_pass_unchanged_inside_a_train_step() -> None:
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)

    class Step(nn.TrainOneStepCell):
        def __init__(self, network: nn.Cell, optimizer: nn.Optimizer) -> None:
            super().__init__(network, optimizer)
            self.grad_reducer = nn.DistributedGradReducer(optimizer.parameters, True, 1)

        def construct(self, *inputs: object) -> object:
            loss = self.network(*inputs)
            grads = self.grad(self.network, self.weights)(*inputs, mixtrain.ops.ones_like(loss))
            self.optimizer(self.grad_reducer(grads))
            return loss

    step = Step(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.5))
    loss = step(mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[1.0]]))
    assert float(loss) == 4.0
    np.testing.assert_allclose(net.weight.asnumpy(), [[-1.0, -3.0]])


def test_more_devices_than_one_are_refused() -> None:
    with pytest.raises(ValueError, match=r"degree must be 1, the number of processes; got 8\. Write degree=1\."):
        nn.DistributedGradReducer([], degree=8)
