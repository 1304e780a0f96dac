"""Optimizers that users write as MindSpore scripts do: with function graphs, maps and state of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.nn as nn
import mixtrain.ops as ops
from mixtrain import backend
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from tests.backends import quick_every
from tests.optim.setting import parameter, tensors, values

PLAIN = backend.JitChoice(False, "test")

adam_update = ops.MultitypeFuncGraph("adam_update")


@adam_update.register(
    "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Tensor", "Bool", "Bool"
)
def _adam_update(
    beta1: Any, beta2: Any, eps: Any, lr: Any, decay: Any, param: Any, m: Any, v: Any, gradient: Any, flag: bool,
    chosen: bool,
) -> Any:
    """Update one weight as AdamWeightDecay does."""
    if not chosen:
        return gradient
    next_m = beta1 * m + (1.0 - beta1) * gradient
    next_v = beta2 * v + (1.0 - beta2) * ops.square(gradient)
    update = next_m / (eps + ops.sqrt(next_v))
    if flag:
        update = decay * param + update
    next_param = param - ops.reshape(lr, ()) * update
    next_param = ops.depend(next_param, ops.assign(param, next_param))
    next_param = ops.depend(next_param, ops.assign(m, next_m))
    return ops.depend(next_param, ops.assign(v, next_v))


class ZooAdam(nn.Optimizer):
    """AdamWeightDecay as the model zoo writes it."""

    def __init__(
        self, params: Any, learning_rate: Any = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.beta1 = Tensor(np.array([beta1]).astype(np.float32))
        self.beta2 = Tensor(np.array([beta2]).astype(np.float32))
        self.eps = Tensor(np.array([eps]).astype(np.float32))
        self.moments1 = self.parameters.clone(prefix="adam_m", init="zeros")
        self.moments2 = self.parameters.clone(prefix="adam_v", init="zeros")

    def construct(self, gradients: Any) -> Any:
        weight_decay = self.get_weight_decay()
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        fixed = (self.beta1, self.beta2, self.eps)
        columns = (self._parameters, self.moments1, self.moments2, gradients, self.decay_flags, self.optim_filter)
        if self.is_group_lr:
            result = self.hyper_map(ops.partial(adam_update, *fixed), lr, weight_decay, *columns)
        elif self.is_group:
            result = self.hyper_map(ops.partial(adam_update, *fixed, lr), weight_decay, *columns)
        else:
            result = self.hyper_map(ops.partial(adam_update, *fixed, lr, weight_decay), *columns)
        if self.use_parallel:
            result = ops.depend(result, self.broadcast_params(result))
        return result


def pair() -> list[Parameter]:
    return [parameter("w", 1.0, -2.0), parameter("bn.gamma", 3.0)]


def plain(parameters: list[Parameter]) -> Any:
    return parameters


def grouped(parameters: list[Parameter]) -> Any:
    return [{"params": parameters[:1], "weight_decay": 0.5}, {"params": parameters[1:]}]


def rated(parameters: list[Parameter]) -> Any:
    return [
        {"params": parameters[:1], "weight_decay": 0.5, "lr": [0.5, 0.25, 0.125]},
        {"params": parameters[1:], "lr": nn.WarmUpLR(0.5, 2)},
    ]


@quick_every(5)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("groups", [plain, grouped, rated])
def test_the_zoos_adam_moves_as_ours(groups: Any, compiled: bool) -> None:
    mine, ours = pair(), pair()
    steps: list[Any] = [
        kind(groups(parameters), 0.1, weight_decay=0.25)
        for kind, parameters in ((ZooAdam, mine), (nn.AdamWeightDecay, ours))
    ]
    if compiled:
        steps = [backend.compile_function(step, choice=PLAIN) for step in steps]
    for number in range(3):
        for step in steps:
            step(tensors([1.0 + number, 0.5], [-1.0]))
    for actual, desired in zip(mine, ours, strict=True):
        assert values(actual) == pytest.approx(values(desired), rel=1e-6)


class OldMomentum(nn.Optimizer):
    """Momentum from the tutorials: the base's tools, plain loops, `ops` on Parameters, slots in place."""

    def __init__(
        self, params: Any, learning_rate: Any, momentum: float, weight_decay: Any = 0.0, loss_scale: float = 1.0
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.momentum = Parameter(Tensor(momentum, mixtrain.float32), name="momentum")
        self.moments = self.parameters.clone(prefix="moments", init="zeros")
        self.assign = ops.Assign()

    def construct(self, gradients: Any) -> Any:
        gradients = self.flatten_gradients(gradients)
        gradients = self.gradients_centralization(self.decay_weight(gradients))
        gradients = self.scale_grad(gradients)
        lr = self.get_lr()
        for index, param in enumerate(self.parameters):
            self.assign(self.moments[index], self.moments[index] * self.momentum + gradients[index])
            self.assign(param, param - self.moments[index] * lr)
        self.global_step: Any = self.global_step + 1
        return gradients


def line() -> nn.Dense:
    return nn.Dense(2, 1, weight_init=Tensor([[1.0, 2.0]]), bias_init="zeros")


def batch(scale: float = 1.0) -> tuple[Any, Any]:
    return Tensor(scale * np.array([[1.0, -1.0], [0.5, 2.0]], np.float32)), Tensor([[1.0], [0.0]])


def trained(kind: Any, train: Any, **options: Any) -> tuple[list[Any], Any]:
    """Train a line for three steps; return its values and the optimizer."""
    net = line()
    optimizer = kind(net.trainable_params(), [0.1, 0.05, 0.2], 0.9, weight_decay=0.1, **options)
    step = train(nn.WithLossCell(net, nn.MSELoss()), optimizer).set_train()
    for _ in range(3):
        step(*batch())
    return [values(item) for item in net.trainable_params()], optimizer


@quick_every(2)
@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE])
def test_a_train_cell_drives_them(mode: int) -> None:
    mixtrain.set_context(mode=mode)
    mine, optimizer = trained(OldMomentum, nn.TrainOneStepCell)
    ours, _ = trained(nn.Momentum, nn.TrainOneStepCell)
    assert np.concatenate([np.ravel(item) for item in mine]) == pytest.approx(
        np.concatenate([np.ravel(item) for item in ours]), rel=1e-5
    )
    assert values(optimizer.global_step) == [3]


@pytest.mark.slow
def test_they_divide_by_the_scale_of_a_cell_that_multiplies() -> None:
    mine, _ = trained(OldMomentum, lambda net, optimizer: nn.TrainOneStepCell(net, optimizer, 64.0), loss_scale=64.0)
    ours, _ = trained(nn.Momentum, nn.TrainOneStepCell)
    assert np.ravel(mine[0]) == pytest.approx(np.ravel(ours[0]), rel=1e-5)


def test_an_overflowing_step_leaves_their_state_and_count() -> None:
    net = line()
    optimizer = OldMomentum(net.trainable_params(), 0.1, 0.9)
    step = nn.TrainOneStepWithLossScaleCell(
        nn.WithLossCell(net, nn.MSELoss()), optimizer, nn.DynamicLossScaleUpdateCell(16.0, 2, 10)
    ).set_train()
    assert not bool(step(*batch())[1])
    before = [np.array(item.asnumpy()) for item in optimizer.get_parameters()]
    _, overflow, scale = step(*batch(1e30))
    assert (bool(overflow), float(scale)) == (True, 16.0)
    for item, value in zip(optimizer.get_parameters(), before, strict=True):
        np.testing.assert_array_equal(item.asnumpy(), value)
    assert not bool(step(*batch())[1])
    assert values(optimizer.global_step) == [2]


def test_what_scripts_read_of_the_base_is_there() -> None:
    optimizer = nn.Momentum(pair(), 0.1, 0.9, weight_decay=0.5, loss_scale=4.0)
    assert float(optimizer.weight_decay) == float(optimizer.get_weight_decay()) == 2.0
    assert (optimizer.loss_scale, optimizer.reciprocal_scale, optimizer.need_scale) == (4.0, 0.25, True)
    assert (optimizer.decay_flags, optimizer.exec_weight_decay) == ((True, False), True)
    assert (optimizer.is_group, optimizer.is_group_lr, optimizer.dynamic_lr) == (False, False, False)
    assert (optimizer.param_length, optimizer.optim_filter, optimizer.use_parallel) == (2, (True, True), False)
    assert optimizer.map_(max, (1, 5), (3, 2)) == (3, 5)
    assert optimizer.broadcast_params((True,)) == (True,)


def test_a_second_name_for_the_parameters_changes_neither_names_nor_state() -> None:
    class Named(nn.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(0.5, params)
            self.params = self.parameters

        def construct(self, gradients: Any) -> Any:
            for param, gradient in zip(self.params, gradients, strict=True):
                ops.assign(param, param - self.get_lr() * gradient)
            return True

    class Trainer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.network = line()
            self.optimizer = Named(self.network.trainable_params())

    trainer = Trainer()
    trainer.optimizer((Tensor([[1.0, 1.0]]), Tensor([2.0])))
    assert [values(item) for item in trainer.network.trainable_params()] == [[[0.5, 1.5]], [-1.0]]
    assert [item.name for item in trainer.network.trainable_params()] == ["network.weight", "network.bias"]
    assert len(trainer.optimizer.state_variables()) == 2


def test_optimizers_written_after_the_references_find_the_names_that_those_call() -> None:
    class Written(nn.Optimizer):
        @nn.Optimizer.target.setter
        def target(self, value: str) -> None:
            self._set_base_target(value)

        def construct(self, gradients: Any) -> Any:
            gradients = self._grad_sparse_indices_deduplicate(self.flatten_gradients(gradients))
            return gradients if self._is_dynamic_lr_or_weight_decay() else ()

    optimizer = Written(0.5, pair())
    optimizer.target = "CPU"
    assert optimizer.target == "CPU"
    with pytest.raises(ValueError, match="Written: target must be one of CPU, Ascend, GPU; got 'TPU'"):
        optimizer.target = "TPU"
    gradients = tensors([1.0, 1.0], [2.0])
    assert optimizer(gradients) == ()
    assert len(Written([0.5, 0.25], pair())(gradients)) == 2


@pytest.mark.slow
def test_a_jitted_construct_trains_in_a_model_with_branches() -> None:
    class Branching(nn.Cell):
        def construct(self, x: Any) -> Any:
            return -x if ops.reduce_sum(x) < 0 else x

    class Descent(nn.Optimizer):
        @mixtrain.jit
        def construct(self, gradients: Any) -> Any:
            for weight, gradient in zip(self.parameters, gradients, strict=True):
                ops.assign(weight, weight - 0.5 * gradient)
            return True

    net = nn.SequentialCell(nn.Dense(1, 1, weight_init="zeros", has_bias=False), Branching())
    trained = mixtrain.Model(net, nn.MSELoss(), Descent(0.5, net.trainable_params()))
    trained.train(1, [(np.ones((1, 1), np.float32), np.full((1, 1), 2.0, np.float32))], verbose=0)
    assert net.trainable_params()[0].asnumpy().tolist() == [[2.0]]
