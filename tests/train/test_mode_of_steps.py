"""A step of `train` trains, whatever its callbacks did with the network; recorded with mindspore 2.10.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Callback, Model, Tensor, nn
from mixtrain.dataset import NumpySlicesDataset
from tests.backends import quick_every

X, Y = np.ones((4, 2), np.float32), np.ones((4, 1), np.float32)


class _Network(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")

    def construct(self, x: Tensor) -> Tensor:
        return self.dense(x) if self.training else self.dense(x) * 100


class _Leaving(Callback):
    """Leave the network in inference before each step, or after each epoch."""

    def __init__(self, leave: Any, at: str) -> None:
        self.seen: list[tuple[bool, float]] = []
        self.leave, self.at = leave, at

    def on_train_step_begin(self, run_context: Any) -> None:
        if self.at == "step":
            self.leave()

    def on_train_step_end(self, run_context: Any) -> None:
        arguments = run_context.original_args()
        self.seen.append((arguments.network.training, float(arguments.net_outputs)))

    def on_train_epoch_end(self, run_context: Any) -> None:
        self.leave()


@quick_every(5)
@pytest.mark.parametrize("at", ["step", "epoch"])
@pytest.mark.parametrize("how", ["eval", "predict", "set_train"])
@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE])
def test_steps_train_after_a_callback_has_left_the_network_in_inference(mode: int, how: str, at: str) -> None:
    mixtrain.set_context(mode=mode)
    network, data = _Network(), NumpySlicesDataset((X, Y), shuffle=False).batch(4)
    model = Model(network, nn.MSELoss(), nn.SGD(network.trainable_params(), 0.01), metrics={"loss"})
    leaving = _Leaving({
        "eval": lambda: model.eval(data), "predict": lambda: model.predict(Tensor(X)),
        "set_train": lambda: network.set_train(False),
    }[how], at)
    model.train(3, data, callbacks=[leaving], verbose=0)
    assert [training for training, _ in leaving.seen] == [True] * 3
    np.testing.assert_allclose([loss for _, loss in leaving.seen], [1.0, 0.8836001, 0.780749], rtol=1e-6)
