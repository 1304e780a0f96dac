"""Runs that are interrupted and resumed: a network of either kind, data with planted overflows, and every variable."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

import mixtrain
import mixtrain.nn as nn
import mixtrain.ops as ops
from mixtrain.dataset import NumpySlicesDataset
from mixtrain.serialization import load_checkpoint, load_param_into_net
from mixtrain.serialization.names import parameters_by_name, states_by_name
from mixtrain.train.callback import CheckpointConfig, ModelCheckpoint

ROWS, BATCH, EPOCHS = 24, 4, 4
STEPS = ROWS // BATCH


class Net(nn.Cell):
    """Convolution, batch norm, dropout, dense: whatever keeps a state."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.dropout = nn.Dropout(p=0.3)
        self.fc = nn.Dense(4 * 36, 3)

    def construct(self, x: Any) -> Any:
        x = self.flatten(self.relu(self.bn(self.conv(x))))
        return self.fc(ops.dropout(self.dropout(x), 0.1, self.training))


def keras_net() -> keras.Model:
    """Return the same as a Keras model, with layers that Keras names."""
    layers = keras.layers
    return keras.Sequential([
        keras.Input((6, 6, 1)), layers.Conv2D(4, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(),
        layers.Flatten(), layers.Dropout(0.3), layers.Dense(8), layers.Dense(3),
    ])


class Overflowing(nn.Cell):
    """A cross-entropy whose gradient overflows float32 at a label of 100 or more, as long as the scale is large."""

    def __init__(self) -> None:
        super().__init__()
        self.loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")

    def construct(self, outputs: Any, label: Any) -> Any:
        planted = keras.ops.cast(keras.ops.any(label >= 100), "float32")
        return self.loss(outputs, label % 100) * (1.0 + planted * 1e37)


def data(*, channels_last: bool = False, planted: bool = True) -> NumpySlicesDataset:
    """Return a shuffled dataset in which one row overflows."""
    draw = np.random.default_rng(3)
    images = draw.normal(size=(ROWS, 1, 6, 6)).astype(np.float32)
    labels = draw.integers(0, 3, ROWS).astype(np.int32)
    if planted:
        labels[5] += 100
    images = images.transpose(0, 2, 3, 1) if channels_last else images
    return NumpySlicesDataset((images, labels), ["image", "label"], shuffle=True).batch(BATCH)


@dataclasses.dataclass(frozen=True)
class Setting:
    """One way to train."""

    network: Callable[[], Any]
    optimizer: Callable[[Any], Any]
    manager: Callable[[], Any] = lambda: None
    train: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def keras(self) -> bool:
        return self.network is keras_net

    def model(self) -> mixtrain.Model:
        """Return a new model, the same each time."""
        mixtrain.set_seed(7)
        network = self.network()
        return mixtrain.Model(network, Overflowing(), self.optimizer(network), loss_scale_manager=self.manager())

    def data(self) -> Any:
        return data(channels_last=self.keras, planted=self.manager() is not None)


def everything(model: mixtrain.Model) -> dict[str, np.ndarray]:
    """Return every variable of a train network, parameters and states."""
    network = model.train_network
    named = {**parameters_by_name("test", network), **states_by_name(network)}
    return {name: np.asarray(mixtrain.backend.to_numpy(variable)) for name, variable in named.items()}


def uninterrupted_and_resumed(setting: Setting, folder: pathlib.Path) -> tuple[Any, Any, Any, Any]:
    """Train for four epochs; and for two, then from the checkpoint with new objects for two more."""
    whole = setting.model()
    history = whole.train(EPOCHS, setting.data(), verbose=0, **setting.train)
    first = setting.model()
    saver = ModelCheckpoint("run", str(folder), CheckpointConfig(save_checkpoint_steps=STEPS, keep_checkpoint_max=9))
    first.train(2, setting.data(), callbacks=saver, verbose=0, **setting.train)

    resumed = setting.model()
    rows = setting.data()
    # What a fresh process does otherwise: other numbers were drawn, other layers were named.
    keras_net()
    nn.Dense(2, 2)
    checkpoint = load_checkpoint(saver.latest_ckpt_file_name)
    load_param_into_net(resumed.train_network, checkpoint)
    rest = resumed.train(EPOCHS, rows, initial_epoch=checkpoint.initial_epoch, verbose=0, **setting.train)
    return whole, resumed, history, rest
