"""A script that is written with `mint` alone trains as the same script on PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest

import mixtrain
from mixtrain import Tensor, mint, nn
from tests.mint.script_network import batches, network, values

# Losses of ten steps, recorded from PyTorch on a CPU.
LOSSES: Final = {
    "AdamW": [1.1133722, 1.0144391, 1.2053088, 0.9341464, 1.0115131, 1.1027566, 1.0070457, 1.1205405, 0.9718404,
              1.1721512],
    "SGD": [1.1133722, 1.0070510, 1.1949353, 0.9226001, 0.9729214, 1.0680925, 0.9863582, 1.0877877, 0.9443457,
            1.1567317],
    "Adam": [1.1133722, 1.0139519, 1.2034746, 0.9397827, 1.0081506, 1.0965046, 1.0022854, 1.1166453, 0.9653688,
             1.1791196],
}
OPTIMIZERS: Final[dict[str, Callable[[Any], Any]]] = {
    "AdamW": lambda params: mint.optim.AdamW(params, lr=1e-2, weight_decay=0.02),
    "SGD": lambda params: mint.optim.SGD(params, lr=0.05, momentum=0.9, nesterov=True),
    "Adam": lambda params: mint.optim.Adam(params, lr=1e-2, amsgrad=True, weight_decay=0.02),
}


def unet() -> nn.Cell:
    net = network(mint.nn.Cell, mint.nn, mint.nn.functional, mint)
    for number, parameter in enumerate(net.trainable_params()):
        parameter.set_data(Tensor(values(tuple(parameter.shape), number)))
    return net.set_train()


class WithLoss(nn.Cell):
    """The network and its loss."""

    def __init__(self, net: nn.Cell) -> None:
        super().__init__()
        self.net, self.loss = net, mint.nn.MSELoss()

    def construct(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        return self.loss(self.net(x, t), noise)


class Losses(mixtrain.Callback):
    """The losses of all steps."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def step_end(self, run_context: Any) -> None:
        outputs = run_context.original_args().net_outputs
        self.losses.append(float(np.asarray(outputs[0] if isinstance(outputs, tuple) else outputs)))


class Rows:
    """The batches, again in each epoch."""

    def __iter__(self) -> Iterator[Any]:
        return iter(batches())

    def __len__(self) -> int:
        return len(batches())


def test_parameters_have_pytorchs_names_and_order() -> None:
    names = [parameter.name for parameter in unet().trainable_params()]
    assert names[:4] == ["steps.weight", "entry.weight", "entry.bias", "down.weight"] and len(names) == 44
    assert names[-6:] == ["up.weight", "up.bias", "norm.weight", "norm.bias", "exit.weight", "exit.bias"]


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_loop_of_value_and_grad_trains_as_on_pytorch(name: str) -> None:
    net = WithLoss(unet())
    optimizer = OPTIMIZERS[name](net.trainable_params())
    step = mixtrain.value_and_grad(net, None, optimizer.parameters)

    @mixtrain.jit
    def train_step(*batch: Tensor) -> Tensor:
        loss, gradients = step(*batch)
        optimizer(gradients)
        return loss

    losses = [float(train_step(*map(Tensor, batch))) for batch in batches()]
    np.testing.assert_allclose(losses, LOSSES[name], 0, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("level", "tolerance"), [("O0", 1e-5), ("O2", 2e-2)])
def test_a_model_trains_as_on_pytorch(level: str, tolerance: float) -> None:
    net, record = WithLoss(unet()), Losses()
    optimizer = OPTIMIZERS["AdamW"](net.trainable_params())
    options = {"cast_model_type": mixtrain.bfloat16} if level == "O2" else {}
    mixtrain.Model(net, optimizer=optimizer, amp_level=level, **options).train(1, Rows(), callbacks=[record])
    np.testing.assert_allclose(record.losses, LOSSES["AdamW"], 0, tolerance)
