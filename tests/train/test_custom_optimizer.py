"""Optimizers and metrics that users write, through Model: every scaling, both feeds, sets of names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, nn, ops
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
