"""What is cast where a layer is called: what a user's network gets stays what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import Model, Tensor, nn
from tests.backends import quick_every


class Noting(nn.Cell):
    """Notes what its `construct` gets, first of all cells of its network."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Dense(4, 1)
        self.seen: list[tuple[type, str]] = []

    def construct(self, x: Any) -> Any:
        self.seen.append((type(x), str(x.dtype)))
        return self.fc(x.view(-1, 4))


LEVELS = [("O0", "Float32"), ("O1", "Float32"), ("O2", "Float16"), ("O3", "Float16")]


@quick_every(3)
@pytest.mark.parametrize(("level", "dtype"), LEVELS)
@pytest.mark.parametrize("mode", [mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE], ids=["graph", "pynative"])
def test_construct_of_the_network_gets_a_tensor_in_the_level_s_format(level: Any, dtype: str, mode: int) -> None:
    mixtrain.set_context(mode=mode)
    net = Noting()
    model = Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.1), amp_level=level, loss_scale_manager=None)
    model.train(1, [(np.ones((2, 2, 2), np.float32), np.zeros((2, 1), np.float32))], verbose=0)
    model.predict(Tensor(np.ones((2, 2, 2), np.float32)))
    net(Tensor(np.ones((2, 2, 2), np.float32)))
    assert set(net.seen) == {(Tensor, dtype)}
