"""Neighboring cells hand channels-last tensors on, with the numbers and gradients of cells called one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from mixtrain import amp, backend, ops
from mixtrain.backend.info import JitChoice
from mixtrain.cell.cell import Cell
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bfloat16, float16
from mixtrain.nn.layer import (
    AvgPool2d,
    BatchNorm2d,
    Conv2d,
    Dense,
    Dropout,
    Flatten,
    LeakyReLU,
    MaxPool2d,
    ReLU,
    SequentialCell,
    Sigmoid,
)
from tests.backends import quick_every

pytestmark = pytest.mark.tensorflow
X = np.random.default_rng(3).standard_normal((4, 1, 32, 32)).astype(np.float32)


def lenet() -> Cell:
    return SequentialCell(
        Conv2d(1, 6, 5, pad_mode="valid"), ReLU(), MaxPool2d(2, 2),
        Conv2d(6, 16, 5, pad_mode="valid", has_bias=True), ReLU(), MaxPool2d(2, 2),
        Flatten(), Dense(400, 120), ReLU(), Dense(120, 10),
    )


class Residual(Cell):
    """Two convolutions around which the input is added."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.norm1 = Conv2d(channels, channels, 3), BatchNorm2d(channels)
        self.conv2, self.norm2 = Conv2d(channels, channels, 3), BatchNorm2d(channels)
        self.act = ReLU()

    def construct(self, x: Any) -> Any:
        y = self.act(self.norm1(self.conv1(x)))
        return self.act(self.norm2(self.conv2(y)) + x)


def resnet() -> Cell:
    return SequentialCell(
        Conv2d(1, 4, 3, 2), BatchNorm2d(4), LeakyReLU(), Residual(4), Dropout(p=0.25), Sigmoid(),
        AvgPool2d(4, 4), Flatten(), Dense(64, 10),
    )


class Weighing(Cell):
    """Two concatenated branches whose channels are weighted by their means (squeeze and excitation)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = Conv2d(1, 4, 3, 2), Conv2d(1, 4, 5, 2, group=1)
        self.down, self.up, self.head = Dense(8, 2), Dense(2, 8), Dense(8, 10)

    def construct(self, x: Any) -> Any:
        y = ops.relu(ops.cat((self.conv1(x), self.conv2(x)), axis=1))
        weights = ops.sigmoid(self.up(ops.relu(self.down(ops.mean(y, (2, 3))))))
        y = y * weights.view(-1, 8, 1, 1) + y.mean((2, 3), keep_dims=True)
        y = ops.max_pool2d(ops.clip(y, -1.0, 1.0), 2) / ops.ReduceMax()(ops.abs(y))
        return self.head(ops.adaptive_avg_pool2d(y, 1).view(-1, 8))


def step(net: Cell) -> Callable[[Any], tuple[Any, list[Any]]]:
    """Return the function from a batch to the output and the gradients of a loss."""
    weights = net.trainable_params()

    def run(x: Any) -> tuple[Any, list[Any]]:
        def forward() -> tuple[Any, Any]:
            y = net(x)
            return keras.ops.mean(keras.ops.square(keras.ops.cast(y, "float32"))), y

        _, y, gradients = backend.value_and_gradient(forward, weights)
        return y, gradients

    return run


def activation_transposes(net: Cell) -> int:
    """Count the transposes of activations that the outputs and gradients of a compiled step need."""
    concrete = tf.function(step(net)).get_concrete_function(tf.TensorSpec(X.shape))
    needed: dict[str, tf.Operation] = {}
    waiting = [tensor.op for tensor in concrete.outputs]
    while waiting:
        op = waiting.pop()
        if op.name not in needed:
            needed[op.name] = op
            waiting += [tensor.op for tensor in op.inputs] + list(op.control_inputs)

    def source(op: tf.Operation) -> tf.Operation:
        return source(op.inputs[0].op) if op.type in ("Cast", "Identity") else op

    def moves(shape: tf.TensorShape) -> bool:
        # A tensor of one number per channel has the same memory layout either way.
        return len(shape) == 4 and tuple(shape[1:3]) != (1, 1) and tuple(shape[2:]) != (1, 1)

    kernels = {"ReadVariableOp", "Conv2DBackpropFilter"}
    transposes = [op for op in needed.values() if op.type == "Transpose" and moves(op.outputs[0].shape)]
    return sum(source(op.inputs[0].op).type not in kernels for op in transposes)


@pytest.mark.slow
@pytest.mark.parametrize("level", ["O2", "O0", "O3"])
def test_joined_weighed_and_averaged_channels_stay_channels_last(level: Any) -> None:
    net = Weighing().set_train()
    amp.auto_mixed_precision(net, level)
    # The entries of both branches; the way out is an average.
    assert activation_transposes(net) == 2


@pytest.mark.slow
@pytest.mark.parametrize("make", [lenet, resnet])
@pytest.mark.parametrize("half", [None, float16, bfloat16])
def test_only_entry_and_flatten_transpose_activations(make: Any, half: Any) -> None:
    net = make().set_train()
    if half is not None:
        for cell in net.cells():
            if isinstance(cell, Conv2d):
                cell.to_float(half)
    # The entry, the way into Flatten, and its gradient.
    assert activation_transposes(net) == 3


@quick_every(15)
@pytest.mark.parametrize("make", [lenet, resnet, Weighing])
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("jit", [False, True])
def test_numbers_and_gradients_are_those_of_eager_cells(make: Any, training: bool, jit: bool) -> None:
    net = make()
    if jit:
        # XLA generates different random numbers.
        net.apply(lambda cell: object.__setattr__(cell, "_keep_prob", 1.0) if isinstance(cell, Dropout) else None)
    net.set_train(training)
    x = Tensor(X)
    start = [parameter.asnumpy() for parameter in net.get_parameters()]
    seeds = [cell.seed_generator for _, cell in net.cells_and_names() if isinstance(cell, Dropout)]
    states = [backend.to_numpy(seed.state) for seed in seeds]
    eager, eager_gradients = step(net)(x)
    moved = [parameter.asnumpy() for parameter in net.get_parameters()]
    for parameter, value in zip(net.get_parameters(), start, strict=True):
        parameter.set_data(value)
    for seed, state in zip(seeds, states, strict=True):
        seed.state.assign(state)
    compiled, gradients = backend.compile_function(step(net), choice=JitChoice(jit, "test"))(x)
    assert np.abs(backend.to_numpy(compiled) - backend.to_numpy(eager)).max() < 1e-5
    for actual, desired in zip(gradients, eager_gradients, strict=True):
        assert np.abs(backend.to_numpy(actual) - backend.to_numpy(desired)).max() < 1e-5
    for parameter, value in zip(net.get_parameters(), moved, strict=True):
        assert np.abs(parameter.asnumpy() - value).max() < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("make", [lenet, resnet])
@pytest.mark.parametrize(("half", "jit", "tolerance"), [(float16, True, 1e-2), (bfloat16, False, 5e-2)])
def test_networks_train_in_half(make: Any, half: Any, jit: bool, tolerance: float) -> None:
    net = make()
    x = Tensor(X)
    expected, expected_gradients = step(net)(x)
    net.to_float(half)
    y, gradients = backend.compile_function(step(net), choice=JitChoice(jit, "test"))(x)
    assert y.dtype == half
    assert np.abs(backend.to_numpy(y) - backend.to_numpy(expected)).max() < tolerance
    for actual, desired in zip(gradients, expected_gradients, strict=True):
        assert actual.dtype == "float32"
        assert np.abs(backend.to_numpy(actual) - backend.to_numpy(desired)).max() < tolerance


def test_construct_sees_channels_first() -> None:
    seen = []

    class Looking(Cell):
        def __init__(self) -> None:
            super().__init__()
            self.conv = Conv2d(1, 6, 5, pad_mode="valid")

        def construct(self, x: Any) -> Any:
            y = self.conv(x)
            seen.append(tuple(y.shape))
            return y[:, 2]

    net = Looking()
    y = backend.compile_function(net, choice=JitChoice(False, "test"))(Tensor(X))
    assert seen == [(4, 6, 28, 28)]
    assert np.abs(backend.to_numpy(y) - backend.to_numpy(net(Tensor(X)))).max() < 1e-6
