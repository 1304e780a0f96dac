"""A tensor may decide a branch in `construct` of a compiled step; elsewhere the error says where and what to write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Model, nn, ops


class Clamped(nn.Cell):
    """Doubles its weight's product where it is small; the branch is the tensor's."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = mixtrain.Parameter(np.float32(1.0), name="weight")

    def construct(self, x: Any) -> Any:
        y = x * self.weight
        if ops.ReduceSum()(y) < 4.0:
            y = 2.0 * y
        return y


def flat(x: Any) -> Any:
    """Branch on a tensor outside of any construct."""
    return x if x.sum() > 0 else -x


class Outside(Clamped):
    def construct(self, x: Any) -> Any:
        return flat(x * self.weight)


@pytest.mark.tensorflow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
def test_a_tensor_decides_a_branch_in_construct(sink: bool) -> None:
    net = Clamped()
    model = Model(net, nn.L1Loss(reduction="sum"), nn.SGD(net.trainable_params(), 0.0))
    rows = [(np.full((1, 1), value, np.float32), np.zeros((1, 1), np.float32)) for value in (1.0, 3.0, 5.0, 7.0)]
    losses: list[float] = []

    class Keep(mixtrain.Callback):
        def on_train_step_end(self, run_context: Any) -> None:
            losses.extend(run_context.original_args().step_results.loss.tolist())

    model.train(1, rows, callbacks=Keep(), dataset_sink_mode=sink, verbose=0)
    assert losses == [2.0, 6.0, 5.0, 7.0]
    assert model.predict(np.float32([[1.0]])).asnumpy().tolist() == [[2.0]]


def test_a_branch_in_a_function_that_construct_calls_is_refused_with_its_name() -> None:
    net = Outside()
    model = Model(net, nn.L1Loss(), nn.SGD(net.trainable_params(), 0.1))
    data = [(np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32))]
    with pytest.raises(TypeError, match="flat: .*expected a Python value to decide an if or while .* ops.select"):
        model.train(1, data, verbose=0)
    assert float(net.weight.asnumpy()) == 1.0
    mixtrain.set_context(mode=mixtrain.PYNATIVE_MODE)
    model.train(1, data, verbose=0)
    assert float(net.weight.asnumpy()) == pytest.approx(0.9)
