"""Activations that a compiled step keeps for its backward pass: half precision without float32 copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import keras
import pytest
import tensorflow as tf

from mixtrain import amp, nn
from mixtrain.nn import Cell
from tests.backends import ON_KERAS_3_10, quick_every
from tests.nn.layer.test_layout import Residual

pytestmark = pytest.mark.tensorflow
SHAPE = (64, 3, 16, 16)


def convolutional() -> Cell:
    """Return four convolutions, each with batch normalization."""
    channels = (3, 8, 8, 16, 16)
    stack: list[Cell] = []
    for index, (inputs, outputs) in enumerate(zip(channels, channels[1:], strict=False)):
        stack += [nn.Conv2d(inputs, outputs, 3), nn.BatchNorm2d(outputs), nn.ReLU()]
        stack += [nn.MaxPool2d(2, 2)] if index % 2 else []
    return nn.SequentialCell(*stack, nn.Flatten(), nn.Dense(256, 32), nn.ReLU(), nn.Dense(32, 10))


def various() -> Cell:
    """Return the other normalizations, activations and poolings between convolutions."""
    return nn.SequentialCell(
        nn.Conv2d(3, 8, 3, has_bias=True), nn.GroupNorm(2, 8), nn.GELU(), Residual(8), nn.InstanceNorm2d(8),
        nn.LeakyReLU(), nn.Conv2d(8, 8, 3, group=8), nn.HSwish(), nn.AvgPool2d(2, 2), nn.Conv2dTranspose(8, 8, 3),
        nn.LayerNorm((8, 8), -2, -2), nn.SiLU(), nn.Conv2d(8, 8, 3), nn.Dropout(p=0.2), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dense(128, 10),
    )


def keras_convolutional() -> Any:
    """Return a Keras network of convolutions with its normalizations, for images that come channels first."""
    layers = keras.layers
    return keras.Sequential([
        keras.Input(SHAPE[1:]), layers.Permute((2, 3, 1)),
        layers.Conv2D(8, 3, padding="same"), layers.BatchNormalization(), layers.ReLU(),
        layers.Conv2D(8, 3, padding="same"), layers.LayerNormalization((1, 2, 3)), layers.ReLU(),
        layers.Conv2D(8, 3, padding="same"), layers.GroupNormalization(2), layers.ReLU(),
        layers.MaxPooling2D(2), layers.Flatten(), layers.Dense(10),
    ])


def compiled(net: Cell) -> tf.Graph:
    """Return the graph of a loss and its gradients; the backward part is what depends on the operation "seed"."""
    weights = [weight.value for weight in net.trainable_params()]

    def run(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.cast(net(x), tf.float32)))
        return tape.gradient(loss, weights, output_gradients=tf.identity(loss, name="seed"))

    return tf.function(run, autograph=False).get_concrete_function(tf.TensorSpec(SHAPE)).graph


def saved_bytes(make: Callable[[], Any], level: Any) -> Counter[str]:
    """Return by dtype the bytes of activations that the backward part of a compiled step reads."""
    net = make()
    if not isinstance(net, Cell):
        net = nn.SequentialCell(net)
    amp.auto_mixed_precision(net, level, "bfloat16")
    backward = {"seed"}
    read: dict[str, tf.Tensor] = {}
    for operation in compiled(net.set_train()).get_operations():
        inputs = [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]
        if operation.name != "seed" and not any(operation.name in backward for operation in inputs):
            continue
        backward.add(operation.name)
        if operation.type not in ("Shape", "ShapeN"):
            read |= {tensor.name: tensor for tensor in operation.inputs if tensor.op.name not in backward}
    sizes: Counter[str] = Counter()
    for tensor in read.values():
        if tensor.op.type not in ("ReadVariableOp", "Placeholder", "Const") and tensor.shape.is_fully_defined():
            sizes[tensor.dtype.name] += tensor.shape.num_elements() * tensor.dtype.size
    return sizes


@pytest.mark.slow
@pytest.mark.parametrize("make", [convolutional, various, pytest.param(keras_convolutional, marks=pytest.mark.skipif(
    ON_KERAS_3_10, reason="Keras 3.10 keeps a layer normalization's input in float32",
))])
def test_mixed_precision_holds_half_the_bytes_and_hardly_any_float32(make: Any) -> None:
    full, mixed = saved_bytes(make, "O0"), saved_bytes(make, "O2")
    assert mixed["float32"] <= 0.01 * full["float32"]
    assert mixed.total() <= 0.54 * full.total()


@quick_every(2)
@pytest.mark.parametrize("norm", [lambda: nn.GroupNorm(2, 8), lambda: nn.LayerNorm((16, 16), -2, -2)])
def test_a_normalization_holds_its_input_once(norm: Any) -> None:
    def network(*between: Cell) -> Cell:
        stack = [nn.Conv2d(3, 8, 3), *between, nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Dense(2048, 10)]
        return nn.SequentialCell(*stack)

    added = saved_bytes(lambda: network(norm()), "O0").total() - saved_bytes(network, "O0").total()
    assert added == pytest.approx(4 * 64 * 8 * 16 * 16, rel=0.03)
