"""Every optimizer takes MindSpore's steps, and every scheduler gives MindSpore's rates."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Final

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import Parameter, Tensor, nn, ops
from mixtrain.experimental import optim
from tests.backends import quick_every
from tests.experimental import cases

KNOWN: Final = json.loads((pathlib.Path(__file__).parents[1] / "data" / "experimental_reference.json").read_text())


def weight(name: str = "w") -> Parameter:
    return Parameter(np.array(cases.WEIGHT, np.float32), name=name)


@quick_every(7)
@pytest.mark.parametrize(("name", "options"), cases.OPTIMIZERS, ids=str)
def test_three_steps_are_those_of_mindspore(name: str, options: dict[str, Any]) -> None:
    w = weight()
    optimizer = getattr(optim, name)([w], **options)
    for gradient in cases.GRADIENTS:
        optimizer((Tensor(np.array(gradient, np.float32)),))
    np.testing.assert_allclose(w.asnumpy(), KNOWN["optimizers"][f"{name} {options}"], rtol=1e-5, atol=1e-6)


@quick_every(2)
@pytest.mark.parametrize(("name", "options"), cases.SCHEDULERS, ids=str)
def test_the_rates_of_six_steps_are_those_of_mindspore(name: str, options: dict[str, Any]) -> None:
    optimizer = optim.SGD([weight()], lr=0.1)
    plateau = name == "ReduceLROnPlateau"
    scheduler = getattr(optim.lr_scheduler, name)(optimizer, **options)
    rates = [] if plateau else [float(scheduler.get_last_lr()[0])]
    for step in range(cases.STEPS):
        scheduler.step(*((Tensor(cases.METRICS[step]),) if plateau else ()))
        rates.append(float(optimizer.param_groups[0]["lr"].asnumpy()))
    np.testing.assert_allclose(rates, KNOWN["schedulers"][f"{name} {options}"], rtol=1e-5, atol=1e-8)


def test_groups_have_their_own_options_and_a_changed_one_counts_in_the_next_step() -> None:
    a, b = weight("a"), weight("b")
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": [b]}], lr=0.5)
    assert optimizer.group_start_id == [0, 1, 2] and [float(rate.asnumpy()) for rate in optimizer.lrs] == [1.0, 0.5]
    ones = Tensor(np.ones((2, 2), np.float32))
    optimizer((ones, ones))
    np.testing.assert_allclose(a.asnumpy() - np.array(cases.WEIGHT), -1.0)
    np.testing.assert_allclose(b.asnumpy() - np.array(cases.WEIGHT), -0.5)
    ops.assign(optimizer.param_groups[1]["lr"], 0.25)
    optimizer((ones, ones))
    np.testing.assert_allclose(b.asnumpy() - np.array(cases.WEIGHT), -0.75)


def test_a_group_may_be_added_before_the_first_step() -> None:
    a, b = weight("a"), weight("b")
    optimizer = optim.Adam([a], lr=0.1)
    optimizer.add_param_group({"params": b, "lr": 0.2})
    assert optimizer.parameters == (a, b) and len(optimizer.exp_avg) == 2 and "lr: 0.2" in repr(optimizer)


def test_a_schedulers_other_optimizer_is_refused() -> None:
    with pytest.raises(TypeError, match="StepLR: .*optimizer"):
        optim.lr_scheduler.StepLR(nn.SGD([weight()], 0.1), 2)


def test_warm_restarts_take_parts_of_an_epoch() -> None:
    scheduler = optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD([weight()], lr=0.1), 2)
    rates = []
    for part in range(6):
        scheduler.step(part / 3)
        rates.append(float(scheduler.get_last_lr()[0].asnumpy()))
    # As MindSpore 2.10.
    assert rates == pytest.approx([0.1, 0.0933013, 0.075, 0.05, 0.025, 0.00669873])


def test_a_scheduler_of_the_users_multiplies_the_last_rates() -> None:
    class Halving(optim.lr_scheduler.LRScheduler):
        def get_lr(self) -> list[Any]:
            return [rate * 0.5 for rate in self._last_lr]

    scheduler = Halving(optim.SGD([weight()], lr=0.4))
    scheduler.step()
    assert float(scheduler.get_last_lr()[0].asnumpy()) == pytest.approx(0.1)


def test_sequential_schedulers_take_turns() -> None:
    # Measured on MindSpore 2.10.
    optimizer = optim.SGD([weight()], lr=0.1)
    first = optim.lr_scheduler.ConstantLR(optimizer, factor=0.1, total_iters=2)
    second = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    scheduler = optim.lr_scheduler.SequentialLR(optimizer, schedulers=[first, second], milestones=[2])
    rates = []
    for _ in range(4):
        scheduler.step()
        rates.append(float(scheduler.get_last_lr()[0]))
    np.testing.assert_allclose(rates, [0.01, 0.1, 0.09, 0.081], rtol=1e-5)


@quick_every(2, 1)
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
def test_a_model_trains_with_one(sink: bool) -> None:
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    optimizer = optim.Adam(net.trainable_params(), lr=0.1)
    model = ms.Model(net, nn.MSELoss(), optimizer)
    data = [(np.ones((4, 2), np.float32), np.zeros((4, 1), np.float32))] * 3
    history = model.train(2, data, dataset_sink_mode=sink, verbose=0)
    assert history["loss"][-1] < history["loss"][0]


def test_a_group_without_parameters_keeps_its_place_among_the_rates() -> None:
    network = nn.Dense(2, 2, bias_init="zeros")
    optimizer = optim.SGD([{"params": []}, {"params": network.trainable_params(), "lr": 0.5}], 0.1)
    optimizer((ops.ones((2, 2)), ops.ones(2)))
    assert network.bias.asnumpy().tolist() == [-0.5, -0.5]
    optim.lr_scheduler.LambdaLR(optimizer, [lambda epoch: 0.5**epoch, lambda epoch: 0.1**epoch]).step()
    assert [float(group["lr"]) for group in optimizer.param_groups] == pytest.approx([0.05, 0.05])
    with pytest.raises(ValueError, match="SGD: params must not be empty"):
        optim.SGD([{"params": []}], 0.1)


@pytest.mark.parametrize("rate", [0.5, 1, Tensor(0.5)])
@pytest.mark.parametrize("optimizer", [optim.SGD, ms.mint.optim.SGD])
def test_a_rate_that_is_set_in_a_group_is_that_of_the_next_step(optimizer: Any, rate: Any) -> None:
    weight = Parameter([1.0], name="w")
    stepped = optimizer([weight], lr=0.1)
    stepped.param_groups[0]["lr"] = rate
    stepped((Tensor([1.0]),))
    assert float(weight[0]) == 1.0 - float(rate)


class Keeping(optim.Optimizer):
    """Momentum that a script keeps in `state`."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr, "momentum": 0.5})

    def construct(self, gradients: Any) -> bool:
        for n, group in enumerate(self.param_groups):
            for i, p in enumerate(group["params"]):
                kept = self.state[p]
                kept["buffer"] = gradients[self.group_start_id[n] + i] + group["momentum"] * kept.get("buffer", 0)
                p.set_data(p - group["lr"] * kept["buffer"])
        return True


def test_a_subclass_keeps_values_in_state_as_in_mindspore() -> None:
    w = Parameter(np.array([1.0, 2.0], np.float32), name="w")
    optimizer = Keeping([w], 0.1)
    for _ in range(3):
        optimizer((Tensor(np.ones(2, np.float32)),))
    # Recorded from MindSpore 2.10.
    assert w.asnumpy().tolist() == pytest.approx([0.574999988079071, 1.5750000476837158], abs=1e-6)


def test_a_step_whose_optimizer_reads_state_runs_uncompiled() -> None:
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), Keeping(net.trainable_params(), 0.1))
    x, y = Tensor(np.ones((1, 2), np.float32)), Tensor(np.zeros((1, 1), np.float32))
    with pytest.warns(UserWarning, match="reads `state` of an optimizer.*, so it runs uncompiled. Create Parameters"):
        losses = [float(step(x, y)) for _ in range(3)]
    assert losses == pytest.approx([4.0, 1.44, 0.1024], rel=1e-4)  # Recorded from MindSpore 2.10.
