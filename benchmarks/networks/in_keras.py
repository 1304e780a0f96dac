"""The networks as Keras models, channels last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
from keras import layers

from benchmarks.workloads import VOCABULARY, Workload


def mlp(workload: Workload) -> keras.Model:
    """Return dense layers with ReLU, and one to the classes."""
    hidden = [layers.Dense(workload.width, activation="relu") for _ in range(workload.depth)]
    return keras.Sequential([keras.Input(workload.shape), *hidden, layers.Dense(workload.classes)])


def lenet(workload: Workload) -> keras.Model:
    """Return LeNet-5."""
    return keras.Sequential([
        keras.Input(workload.shape),
        layers.Conv2D(6, 5, activation="relu"),
        layers.MaxPooling2D(2),
        layers.Conv2D(16, 5, activation="relu"),
        layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dense(120, activation="relu"),
        layers.Dense(84, activation="relu"),
        layers.Dense(workload.classes),
    ])


def cifar_cnn(workload: Workload) -> keras.Model:
    """Return six convolutions, each with batch normalization."""
    stack: list[Any] = [keras.Input(workload.shape)]
    for filters in (32, 64, 128):
        for _ in range(2):
            convolution = layers.Conv2D(filters, 3, padding="same", use_bias=False)
            stack += [convolution, layers.BatchNormalization(), layers.ReLU()]
        stack.append(layers.MaxPooling2D(2))
    return keras.Sequential(
        [*stack, layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dense(workload.classes)]
    )


def resnet20(workload: Workload) -> keras.Model:
    """Return the ResNet of 20 layers for small images."""

    def convolved(x: Any, width: int, size: int, stride: int) -> Any:
        return layers.BatchNormalization()(layers.Conv2D(width, size, stride, "same", use_bias=False)(x))

    images = keras.Input(workload.shape)
    x = layers.ReLU()(convolved(images, 16, 3, 1))
    for width in (16, 32, 64):
        for block in range(3):
            stride = 2 if width > 16 and block == 0 else 1
            y = layers.ReLU()(convolved(x, width, 3, stride))
            shortcut = x if stride == 1 else convolved(x, width, 1, stride)
            x = layers.ReLU()(layers.Add()([convolved(y, width, 3, 1), shortcut]))
    return keras.Model(images, layers.Dense(workload.classes)(layers.GlobalAveragePooling2D()(x)))


def resnet50(workload: Workload) -> keras.Model:
    """Return the ResNet of 50 layers for large images, with the stride of a block in its 3x3 convolution."""

    def convolved(x: Any, width: int, size: int, stride: int) -> Any:
        if stride > 1:  # "same" would pad such images on one side alone.
            x = layers.ZeroPadding2D(size // 2)(x)
        padding = "same" if stride == 1 else "valid"
        return layers.BatchNormalization()(layers.Conv2D(width, size, stride, padding, use_bias=False)(x))

    images = keras.Input(workload.shape)
    x = layers.ReLU()(convolved(images, 64, 7, 2))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            width, stride = 64 * 2**stage, 2 if stage and block == 0 else 1
            y = layers.ReLU()(convolved(x, width, 1, 1))
            y = layers.ReLU()(convolved(y, width, 3, stride))
            shortcut = x if block else convolved(x, 4 * width, 1, stride)
            x = layers.ReLU()(layers.Add()([convolved(y, 4 * width, 1, 1), shortcut]))
    return keras.Model(images, layers.Dense(workload.classes)(layers.GlobalAveragePooling2D()(x)))


def transformer(workload: Workload) -> keras.Model:
    """Return an encoder: embedded tokens, blocks of attention and two dense layers, the mean over the row."""
    tokens = keras.Input(workload.shape, dtype="int32")
    x = layers.Embedding(VOCABULARY, workload.width)(tokens)
    for _ in range(workload.depth):
        attended = layers.MultiHeadAttention(workload.heads, workload.width // workload.heads)(x, x)
        x = layers.LayerNormalization()(layers.Add()([x, attended]))
        y = layers.Dense(workload.width)(layers.Dense(4 * workload.width, activation="relu")(x))
        x = layers.LayerNormalization()(layers.Add()([x, y]))
    return keras.Model(tokens, layers.Dense(workload.classes)(layers.GlobalAveragePooling1D()(x)))


NETWORKS: dict[str, Callable[[Workload], keras.Model]] = {
    "mlp": mlp,
    "lenet": lenet,
    "cifar_cnn": cifar_cnn,
    "resnet20": resnet20,
    "resnet50": resnet50,
    "transformer": transformer,
}


def network(workload: Workload, policy: str = "float32") -> keras.Model:
    """Return a workload's network, built under a Keras dtype policy, with the same weights each time."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    keras.utils.set_random_seed(0)
    try:
        return NETWORKS[workload.network](workload)
    finally:
        keras.config.set_dtype_policy(before)


def loss() -> keras.losses.Loss:
    """Return the loss of all contenders."""
    return keras.losses.CategoricalCrossentropy(from_logits=True)


def optimizer() -> keras.optimizers.Optimizer:
    """Return the optimizer of all contenders."""
    return keras.optimizers.SGD(0.01, momentum=0.9)
