"""A loss-scale manager of the user's own goes on where the interrupted run left it, or the user is warned."""

from __future__ import annotations

import pathlib
from collections import deque
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, LossScaleManager, Model, ModelCheckpoint, nn
from mixtrain.train.callback import CheckpointConfig
from tests.serialization.runs import everything

_draw = np.random.default_rng(5)
BATCHES = [
    (_draw.standard_normal((4, 2)).astype(np.float32), _draw.standard_normal((4, 1)).astype(np.float32))
    for _ in range(3)
]
BATCHES[1][1][0] = 1e38 / 4  # Its scaled gradient overflows at large scales.


class Plain(LossScaleManager):
    """Grows by half, falls to a quarter, and remembers."""

    def __init__(self) -> None:
        self.scale, self.seen, self.last = np.float32(8.0), [0, 0], deque([False], maxlen=4)
        self.bounds = (1.0, 2.0**20)

    def get_loss_scale(self) -> float:
        return float(self.scale)

    def update_loss_scale(self, overflow: bool) -> None:
        self.seen[overflow] += 1
        self.last.append(overflow)
        self.scale = np.float32(np.clip(self.scale / 4 if overflow else self.scale * 1.5, *self.bounds))


class WithStateDict(Plain):
    """The same, with a part that is not plain, and the methods that save the others."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = object()

    def state_dict(self) -> dict[str, Any]:
        return {"scale": float(self.scale), "seen": self.seen, "last": [*self.last]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.scale, self.seen, self.last = np.float32(state["scale"]), state["seen"], deque(state["last"], maxlen=4)


class Careful(DynamicLossScaleManager):
    """A subclass of a manager that keeps its state in variables."""

    def update_loss_scale(self, overflow: Any) -> None:
        super().update_loss_scale(overflow)
        if self.get_loss_scale() > 64:
            super().update_loss_scale(True)


class Closed(LossScaleManager):
    """Keeps its scale where nobody finds it."""

    def __init__(self) -> None:
        self.held = object()

    def get_loss_scale(self) -> float:
        return 8.0

    def update_loss_scale(self, overflow: bool) -> None:
        pass


def careful() -> Careful:
    return Careful(16.0, 2, 1)


def model(manager: LossScaleManager | None) -> Model:
    net = nn.Dense(2, 1, weight_init="ones", bias_init="zeros")
    return Model(net, nn.MSELoss(), nn.Adam(net.trainable_params(), 0.1), loss_scale_manager=manager)


def train(manager: Any, epochs: int, folder: pathlib.Path, **options: Any) -> tuple[Model, Any]:
    """Train from the folder's file on, with a file after each step."""
    saver = ModelCheckpoint("net", str(folder), CheckpointConfig(1, keep_checkpoint_max=99))
    result = model(manager)
    return result, result.train(epochs, BATCHES, saver, verbose=0, **options)


def state_of(manager: Any) -> dict[str, Any]:
    return {"scale": manager.get_loss_scale()} | {
        name: value for name, value in vars(manager).items() if name in ("seen", "last", "bounds", "scale")
    }


@pytest.mark.filterwarnings("ignore:Model. in epoch .* steps were skipped although")
@pytest.mark.parametrize("make", [
    Plain, pytest.param(WithStateDict, marks=pytest.mark.slow), pytest.param(careful, marks=pytest.mark.slow),
])
def test_it_goes_on_where_the_run_was_interrupted(make: Any, tmp_path: pathlib.Path) -> None:
    undisturbed, interrupted, resumed = make(), make(), make()
    whole, history = train(undisturbed, 4, tmp_path / "whole")
    train(interrupted, 2, tmp_path / "part")
    last, rest = train(resumed, 4, tmp_path / "part", resume=tmp_path / "part")
    assert len(set(history["loss_scale"])) > 1
    assert rest["loss_scale"] == history["loss_scale"][2:]
    assert state_of(resumed) == state_of(undisturbed)
    assert [type(value) for value in vars(resumed).values()] == [type(value) for value in vars(undisturbed).values()]
    for name, value in everything(whole).items():
        np.testing.assert_array_equal(everything(last)[name], value, err_msg=name)


class Refusing(WithStateDict):
    """Cannot read what it wrote."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise RuntimeError("not mine")


def test_one_that_refuses_its_state_leaves_the_network_as_it_was(tmp_path: pathlib.Path) -> None:
    train(Refusing(), 1, tmp_path)
    fresh = model(Refusing())
    before = {name: np.copy(value) for name, value in everything(fresh).items()}
    with pytest.raises(RuntimeError, match="not mine"):
        fresh.train(2, BATCHES, verbose=0, resume=tmp_path)
    for name, value in before.items():
        np.testing.assert_array_equal(everything(fresh)[name], value, err_msg=name)


def test_one_that_cannot_be_restored_is_told_as_the_file_is_written(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "net.ckpt")
    with pytest.warns(UserWarning, match="Closed begins anew when .*: held cannot be saved. Write state_"):
        mixtrain.save_checkpoint(model(Closed()).train_network, path)
    with pytest.warns(UserWarning, match="has the state of a 'Closed'; Plain begins anew"):
        mixtrain.load_param_into_net(model(Plain()).train_network, mixtrain.load_checkpoint(path))
