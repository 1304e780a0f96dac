"""Optimizers and metrics that users write, through Model: every scaling, both feeds, sets of names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, nn, ops
from mixtrain.dataset import NumpySlicesDataset
from tests.backends import quick_every
from tests.train.planted import Chain, batches

FEEDS = pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])

descend = ops.MultitypeFuncGraph("descend")


@descend.register("Tensor", "Tensor", "Tensor", "Tensor")
def _descend(lr: Any, param: Any, moment: Any, gradient: Any) -> Any:
    moved = ops.depend(True, ops.assign(moment, moment * 0.5 + gradient))
    return ops.depend(moved, ops.assign(param, param - lr * moment))


class Descent(nn.Optimizer):
    """Momentum as a script writes it."""

    def __init__(self, params: Any, learning_rate: Any, loss_scale: float = 1.0) -> None:
        super().__init__(learning_rate, params, 0.0, loss_scale)
        self.moments = self.parameters.clone(prefix="moments", init="zeros")

    def construct(self, gradients: Any) -> Any:
        gradients = self.scale_grad(self.decay_weight(gradients))
        lr = self.get_lr()
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        return self.hyper_map(ops.partial(descend, lr), self.parameters, self.moments, gradients)


def run(optimizer: Any, flags: str, sink: bool, manager: Any) -> tuple[list[float], Any]:
    """Train a chain; return its two numbers and the optimizer."""
    net = Chain()
    made = optimizer(net.trainable_params())
    model = Model(net, nn.MSELoss(), made, loss_scale_manager=manager)
    model.train(1, batches(flags), dataset_sink_mode=sink, verbose=0)
    return [float(item.asnumpy()) for item in net.trainable_params()], made


@quick_every(4, 3)
@FEEDS
@pytest.mark.parametrize("manager", [None, lambda: FixedLossScaleManager(64.0, False)], ids=["none", "fixed"])
def test_a_users_rule_trains_as_ours(manager: Any, sink: bool) -> None:
    scale = 1.0 if manager is None else 64.0
    mine, optimizer = run(
        lambda params: Descent(params, [0.1, 0.2, 0.1], scale), "000", sink, None if manager is None else manager()
    )
    ours, _ = run(lambda params: nn.Momentum(params, [0.1, 0.2, 0.1], 0.5), "000", sink, None)
    assert mine == pytest.approx(ours, rel=1e-6)
    assert optimizer.global_step.asnumpy().tolist() == [3]


@pytest.mark.slow
@FEEDS
@pytest.mark.filterwarnings("ignore:Model. in epoch 1, 2 of 4 steps were skipped")
def test_skipped_steps_leave_a_users_rule_as_it_was(sink: bool) -> None:
    mine, optimizer = run(lambda params: Descent(params, [0.1, 0.2]), "0110", sink, DynamicLossScaleManager(16, 2, 10))
    ours, _ = run(lambda params: Descent(params, [0.1, 0.2]), "00", sink, None)
    assert mine == pytest.approx(ours, rel=1e-6)
    assert optimizer.global_step.asnumpy().tolist() == [2]
    assert all(np.isfinite(slot.asnumpy()) for slot in optimizer.moments)


@pytest.mark.slow
@FEEDS
@pytest.mark.filterwarnings("ignore:Model. in epoch 1, 1 of 4 steps were skipped")
def test_layerwise_rates_around_an_optimizer_train_and_skip(sink: bool) -> None:
    mine, optimizer = run(
        lambda params: nn.LARS(nn.Momentum(params, 0.1, 0.9, weight_decay=0.01)), "0100", sink,
        DynamicLossScaleManager(16, 2, 10),
    )
    ours, _ = run(lambda params: nn.LARS(nn.Momentum(params, 0.1, 0.9, weight_decay=0.01)), "000", sink, None)
    assert mine == pytest.approx(ours, rel=1e-6)
    assert optimizer.opt.global_step.asnumpy().tolist() == [3]


@quick_every(2)
@pytest.mark.parametrize("rule", [nn.RMSProp, nn.Adagrad, nn.Lamb, nn.FTRL])
def test_every_rule_lowers_a_loss(rule: Any) -> None:
    net = nn.Dense(1, 1, weight_init="ones", has_bias=False)
    model = Model(net, nn.MSELoss(), rule(net.trainable_params(), learning_rate=0.05))
    history = model.train(5, [(np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32))], verbose=0)
    assert history["loss"][-1] < history["loss"][0]


class Hits(nn.Metric):
    """A metric of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.clear()

    def clear(self) -> None:
        self.hits = 0

    @nn.rearrange_inputs
    def update(self, *inputs: Any) -> None:
        predictions, labels = (self._convert_data(column) for column in inputs)
        self.hits += int((predictions.argmax(1) == labels).sum())

    def eval(self) -> int:
        return self.hits


def test_metrics_by_name_and_of_the_users_own_are_evaluated() -> None:
    net = nn.Dense(2, 2, weight_init=mixtrain.Tensor([[1.0, 0.0], [0.0, 1.0]]), bias_init="zeros")
    data = [(np.array([[1.0, 0.0], [0.0, 1.0]], np.float32), np.array([0, 0], np.int32))]
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    model = Model(net, loss, metrics={"acc", "top_1_accuracy", "precision", "Recall", "F1", "loss"})
    values = model.eval(data)
    assert (values["acc"], values["top_1_accuracy"]) == (0.5, 0.5)
    assert (values["precision"].tolist(), values["Recall"].tolist()) == ([1.0, 0.0], [0.5, 0.0])
    assert values["F1"] == pytest.approx([2 / 3, 0.0])
    assert Model(net, loss, metrics={"hits": Hits(), "Accuracy": nn.Accuracy()}).eval(data) == {
        "hits": 1, "Accuracy": 0.5,
    }


def test_an_unknown_metric_name_is_one_sentence_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="metrics: name must be one of .*; got 'acuracy'. Write name=\"accuracy\".$"):
        Model(nn.Dense(2, 2), nn.MSELoss(), metrics={"acuracy"})


class Counting(nn.Optimizer):
    """An optimizer whose `get_lr` counts the steps, as MindSpore's own and MindCV's do."""

    def get_lr(self) -> Any:
        rate = self.learning_rate(self.global_step)[0]
        self.assignadd(self.global_step, self.global_step_increase_tensor)
        return rate

    def construct(self, gradients: Any) -> Any:
        weight = self.parameters[0]
        return ops.assign(weight, weight - self.get_lr() * gradients[0])


@pytest.mark.parametrize("sink", [False, True])
def test_an_optimizer_that_counts_in_get_lr_counts_each_step_once(sink: bool) -> None:
    network = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    optimizer = Counting([1.0, 10.0, 100.0], network.trainable_params())
    x, y = np.ones((3, 1), np.float32), np.full((3, 1), -999, np.float32)
    data = NumpySlicesDataset((x, y), shuffle=False).batch(1)
    Model(network, nn.L1Loss(), optimizer).train(1, data, dataset_sink_mode=sink, verbose=0)
    assert network.weight.asnumpy().tolist() == [[-111.0]] and optimizer.global_step.asnumpy().tolist() == [3]


class Dividing(nn.Optimizer):
    """An optimizer that divides by a loss scale that its base does not know, as MindCV's AdamW does."""

    def __init__(self, parameters: Any, loss_scale: float) -> None:
        super().__init__(0.1, parameters)
        self.reciprocal_scale = mixtrain.Tensor(1.0 / loss_scale, mixtrain.float32)

    def construct(self, gradients: Any) -> Any:
        weight = self.parameters[0]
        return ops.assign(weight, weight - 0.1 * self.reciprocal_scale * gradients[0])


def test_an_optimizer_that_divides_by_its_own_scale_is_taken_with_that_scale_alone() -> None:
    network = nn.Dense(1, 1, weight_init="zeros", has_bias=False)
    data = NumpySlicesDataset((np.ones((3, 1), np.float32), -np.ones((3, 1), np.float32)), shuffle=False).batch(1)
    optimizer = Dividing(network.trainable_params(), 128.0)
    with pytest.raises(ValueError, match="its loss_scale must be the manager's 64; got 128"):
        Model(network, nn.L1Loss(), optimizer, loss_scale_manager=FixedLossScaleManager(64.0, False))
    manager = FixedLossScaleManager(128.0, False)
    Model(network, nn.L1Loss(), optimizer, loss_scale_manager=manager).train(1, data, verbose=0)
    np.testing.assert_allclose(network.weight.asnumpy(), [[-0.3]], rtol=1e-6)


def test_rates_of_a_list_have_the_shape_of_the_step() -> None:
    optimizer = nn.Momentum(nn.Dense(1, 1).trainable_params(), [0.1, 0.2, 0.3], 0.9)
    assert optimizer.learning_rate(optimizer.global_step).shape == (1,)
    assert float(optimizer.learning_rate(mixtrain.Tensor(7))) == pytest.approx(0.3)
    assert optimizer.get_lr().asnumpy().shape == () and not optimizer.parameters[0].cache_enable


def test_a_tensor_decides_a_branch_in_a_registered_function_of_a_compiled_step() -> None:
    step = ops.MultitypeFuncGraph("step")

    @step.register("Tensor", "Tensor", "Tensor", "Tensor")
    def update(rate: Any, weight: Any, previous: Any, gradient: Any) -> Any:
        done = mixtrain.Tensor(True)
        if ops.reduce_sum(previous) == 0.0:
            done = ops.depend(done, ops.assign(previous, gradient))
        return ops.depend(done, ops.assign(weight, weight - rate * (gradient + previous)))

    class Adan(nn.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(0.1, parameters)
            self.previous = self._parameters.clone(prefix="previous", init="zeros")

        @mixtrain.jit
        def construct(self, gradients: Any) -> Any:
            rate = mixtrain.Tensor(0.1)
            return self.map_(ops.partial(step, rate), self._parameters, self.previous, gradients)

    weight = mixtrain.Parameter(np.zeros(1, np.float32), name="weight")
    optimizer = Adan([weight])
    for expected in (-0.2, -0.4):
        optimizer((mixtrain.Tensor([1.0]),))
        assert float(weight.asnumpy()[0]) == pytest.approx(expected)
