"""The LeNet-5 of the golden traces: network, data and weights exactly as the reference was given them.

`tests/data/lenet_golden.npz` holds traces measured on MindSpore 2.10 (CPU, graph mode): ``loss/<case>`` (192 steps),
and ``fc3.bias/<case>``, ``conv1.weight/<case>`` after training.
"""

from __future__ import annotations

import functools
import pathlib
from typing import Any

import keras
import numpy as np

import mixtrain
from mixtrain import nn
from mixtrain.train import Callback, Model, StepRecords

TRACES = pathlib.Path(__file__).parent.parent / "data" / "lenet_golden.npz"
STEPS, EPOCHS, BATCH = 192, 3, 32
PARAMETERS = (
    "conv1.weight", "conv2.weight", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias",
)


class LeNet5(nn.Cell):
    """LeNet-5 without convolution biases; `cast_back` returns conv1's output to float32."""

    def __init__(self, *, cast_back: bool = False) -> None:
        super().__init__()
        self.cast_back = cast_back
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid")
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid")
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(400, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)

    def construct(self, x: Any) -> Any:
        x = self.conv1(x)
        if self.cast_back:
            x = keras.ops.cast(x, "float32")
        x = self.pool(self.relu(x))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.flatten(x)
        return self.fc3(self.relu(self.fc2(self.relu(self.fc1(x)))))


@functools.cache
def data() -> tuple[np.ndarray, np.ndarray]:
    """Return images (2048, 1, 32, 32) and one-hot labels (2048, 10), float32."""
    x = np.random.default_rng(7).standard_normal((2048, 1, 32, 32), np.float32)
    logits = x.reshape(2048, 1024) @ np.random.default_rng(8).standard_normal((1024, 10), np.float32)
    return x, np.eye(10, dtype=np.float32)[logits.argmax(axis=1)]


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the batches of an epoch, in order."""
    x, y = data()
    return [(x[i:i + BATCH], y[i:i + BATCH]) for i in range(0, len(x), BATCH)]


def network(*, cast_back: bool = False) -> LeNet5:
    """Return the network with the reference's initial weights."""
    net = LeNet5(cast_back=cast_back)
    random = np.random.default_rng(11)
    parameters = net.parameters_dict()
    for name in PARAMETERS:
        shape = tuple(parameters[name].shape)
        values = random.standard_normal(shape, np.float32)
        # Divided in float32, as the reference was: traces of float32 training tell one rounding from another.
        scale = np.float32(np.sqrt(np.prod(shape[1:])) if len(shape) > 1 else np.sqrt(100))
        parameters[name].set_data(values / scale)
    return net


class Recorder(Callback):
    """Keeps every call's records."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[StepRecords] = []

    def on_train_step_end(self, run_context: Any) -> None:
        self.calls.append(run_context.original_args().step_results)

    @property
    def records(self) -> StepRecords:
        return StepRecords.joined(self.calls)


def train(
    level: str = "O0",
    *,
    manager: Any = None,
    to_float16: bool = False,
    sink: bool = False,
    learning_rate: Any = 0.02,
    **options: Any,
) -> tuple[StepRecords, LeNet5]:
    """Train as the reference did; return the records of the 192 steps and the trained network."""
    net = network(cast_back=to_float16)
    if to_float16:
        net.conv1.to_float(mixtrain.float16)
    optimizer = nn.Momentum(net.trainable_params(), learning_rate, 0.9, **options)
    loss = nn.SoftmaxCrossEntropyWithLogits(reduction="mean")
    model = Model(net, loss, optimizer, amp_level=level, loss_scale_manager=manager)
    recorder = Recorder()
    model.train(EPOCHS, batches(), callbacks=recorder, dataset_sink_mode=sink, verbose=0)
    return recorder.records, net
