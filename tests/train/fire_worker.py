"""A run that can be killed at any moment: it goes on from its folder, and tells at its end what it left, bit for bit.

Called as ``fire_worker.py FOLDER FEED STEPS_OF_A_FILE [SIGNAL]``; prints "begin" as training begins, and at the end of
training one line of JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
import time
from typing import Any

import numpy as np

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, backend, nn
from mixtrain.dataset import GeneratorDataset
from mixtrain.distribution import fully_sharded
from mixtrain.seed import seed_state
from mixtrain.serialization.names import parameters_by_name, states_by_name
from mixtrain.train.callback import OnRequestExit
from mixtrain.train.steps_per_call import StepsPerCall
from tests.devices import COUNT

STEPS, ROWS = 12, 4
EPOCHS = {"host": 3, "groups": 3, "sink": 9, "sharded host": 3, "sharded sink": 9}
# What the script exits with: not what a signal would make of it.
STATUS = 7


class Rows:
    """Rows that take their time; one makes its batch overflow."""

    def __init__(self, pause: float) -> None:
        draw = np.random.default_rng(0)
        self._x = draw.standard_normal((STEPS * ROWS, 6)).astype(np.float32)
        self._y = draw.standard_normal((STEPS * ROWS, 2)).astype(np.float32)
        self._x[17] = np.inf
        self._pause = pause

    def __len__(self) -> int:
        return len(self._x)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        time.sleep(self._pause)
        return self._x[index], self._y[index]


class Begin(mixtrain.Callback):
    """Tells that training begins."""

    observes_only = True

    def on_train_begin(self, run_context: Any) -> None:
        print("begin", flush=True)


def digest(model: Model) -> dict[str, str]:
    """Return a digest of every value that a resumed run needs, by name."""
    network = model.train_network
    values = parameters_by_name("test", network) | states_by_name(network)
    state = {name: hashlib.sha256(backend.to_numpy(value).tobytes()).hexdigest()[:16] for name, value in values.items()}
    # Streams of `mixtrain.ops`, which this network does not draw from, are listed where an earlier test made them.
    return state | {"seed": json.dumps(seed_state() | {"drawing": []}, sort_keys=True)}


def made() -> Model:
    """Return a Model with random numbers, moving statistics, slots and a scale that moves."""
    net = nn.SequentialCell(nn.Dense(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(p=0.3), nn.Dense(8, 2))
    optimizer = nn.Adam(net.trainable_params(), 0.01)
    return Model(net, nn.MSELoss(), optimizer, loss_scale_manager=DynamicLossScaleManager(2**10, 2, 4))


def run(folder: str, feed: str, every: int, signals: int | None = None, pause: float = 0.002) -> dict[str, Any]:
    """Train to the end, or to where a signal asks for it; return what is left.

    `feed`: How the steps are fed; "sharded host" and "sharded sink" also divide the weights over the devices.
    """
    mixtrain.set_seed(3)
    with fully_sharded(COUNT).scope() if feed.startswith("sharded") else contextlib.nullcontext():
        return _run(folder, feed.removeprefix("sharded "), EPOCHS[feed], every, signals, pause)


def _run(folder: str, feed: str, epochs: int, every: int, signals: int | None, pause: float) -> dict[str, Any]:
    model = made()
    config = mixtrain.CheckpointConfig(save_checkpoint_steps=every, keep_checkpoint_max=3, async_save=every % 2 == 0)
    callbacks: list[Any] = [mixtrain.ModelCheckpoint("fire", folder, config), Begin()]
    if signals is not None:
        callbacks.insert(0, OnRequestExit(save_mindir=False, directory=folder, sig=signals))
    if feed == "groups":
        StepsPerCall.estimate = lambda self, batch_bytes, most=0: 4  # type: ignore[method-assign]
    data = GeneratorDataset(Rows(pause), ["x", "y"], shuffle=True).batch(ROWS)
    sink: dict[str, Any] = {"dataset_sink_mode": True, "sink_size": 4} if feed == "sink" else {}
    history = model.train(epochs, data, callbacks, verbose=0, resume=folder, **sink)
    stopped = signals is not None and callbacks[0].exit
    return {"stopped": stopped, "epochs": history.epoch, "state": digest(model)}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], int(sys.argv[3]), *map(int, sys.argv[4:]))), flush=True)
    sys.exit(STATUS)
