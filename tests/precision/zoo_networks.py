"""The networks of the zoo: small ones for each kind of Keras network, and four of `keras.applications`."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

L = keras.layers


def sequential() -> Any:
    return keras.Sequential([
        keras.Input((8, 8, 3)), L.Conv2D(4, 3, use_bias=False, name="conv"), L.BatchNormalization(name="norm"),
        L.ReLU(name="relu"), L.DepthwiseConv2D(3, name="depthwise"), L.SeparableConv2D(4, 3, name="separable"),
        L.MaxPooling2D(2, name="pool"), L.Flatten(name="flatten"), L.Dropout(0.2, name="drop"),
        L.Dense(5, name="head"), L.Softmax(name="softmax"),
    ])


def augmentation() -> Any:
    return keras.Sequential([
        keras.Input((8, 8, 3)), L.RandomFlip("horizontal", seed=1, name="flip"),
        L.RandomTranslation(0.1, 0.1, seed=2, name="move"), L.RandomRotation(0.1, seed=3, name="turn"),
        L.RandomZoom(0.1, seed=4, name="zoom"), L.RandomContrast(0.2, value_range=(0, 1), seed=5, name="contrast"),
        L.RandomBrightness(0.2, value_range=(0, 1), seed=6, name="brightness"), L.RandomCrop(8, 8, seed=7, name="crop"),
        L.GaussianNoise(0.1, seed=8, name="noise"), L.Rescaling(2.0, -1.0, name="rescale"),
        L.Conv2D(4, 3, name="conv"), L.GlobalAveragePooling2D(name="pool"), L.Dense(5, name="head"),
    ])


def several_ends() -> Any:
    left, right = keras.Input((6,), name="a"), keras.Input((4,), name="b")
    x = L.Dense(4, activation="relu", name="left")(left)
    joined = L.Concatenate(name="join")([x, L.Dense(4, name="right")(right), right])
    outputs = {"mean": L.Dense(1, name="mean")(joined), "label": L.Dense(5, activation="softmax", name="label")(joined)}
    return keras.Model([left, right], outputs)


class Subclassed(keras.Model):
    """Layers by attribute, in a list, and a variable of the model's own."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.first = L.Dense(6, name="first")
        self.blocks = [L.Dense(6, name="inner"), L.ReLU(name="relu")]
        self.norm = L.LayerNormalization(name="norm")
        self.head = L.Dense(5, name="head")
        self.gain = self.add_weight(shape=(6,), initializer="ones", name="gain")

    def call(self, inputs: Any, training: bool = False) -> Any:
        x = self.first(inputs)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x * self.gain) if training else self.norm(x))


def subclassed() -> Any:
    network = Subclassed()
    network(np.zeros((1, 6), np.float32))
    return network


def _tower(name: str) -> Any:
    inputs = keras.Input((6,))
    x = L.BatchNormalization(name="norm")(L.Dense(6, name="fc")(inputs))
    return keras.Model(inputs, L.Add(name="add")([inputs, L.ReLU(name="relu")(x)]), name=name)


def nested() -> Any:
    outer = keras.Sequential([keras.Input((6,)), _tower("inner"), L.Dense(6, name="last")], name="outer")
    inputs = keras.Input((6,))
    return keras.Model(inputs, L.Dense(5, name="head")(outer(inputs)))


def shared() -> Any:
    left, right = keras.Input((6,)), keras.Input((6,))
    twice, tower = L.Dense(6, name="twice"), _tower("tower")
    x = L.Multiply(name="product")([tower(twice(left)), tower(twice(right))])
    return keras.Model([left, right], L.Dense(5, name="head")(x))


def recurrent() -> Any:
    inputs = keras.Input((4,), dtype="int32")
    x = L.Embedding(7, 6, mask_zero=True, name="words")(inputs)
    x = L.LSTM(6, return_sequences=True, name="lstm")(x)
    x = L.RNN([L.GRUCell(5, name="gru_cell"), L.LSTMCell(5, name="upper_cell")], return_sequences=True, name="stack")(x)
    return keras.Model(inputs, L.Dense(5, name="head")(L.SimpleRNN(4, name="simple")(x)))


def bidirectional() -> Any:
    inputs = keras.Input((4, 6))
    x = L.Bidirectional(L.GRU(3, return_sequences=True, name="gru"), name="both")(inputs)
    x = L.TimeDistributed(L.Dense(4, name="fc"), name="each")(x)
    return keras.Model(inputs, L.Dense(5, name="head")(L.GlobalMaxPooling1D(name="pool")(x)))


def attention() -> Any:
    inputs = keras.Input((4,), dtype="int32")
    x = L.Embedding(7, 6, name="words")(inputs)
    seen = L.MultiHeadAttention(2, 3, dropout=0.1, name="attention")(x, x, use_causal_mask=True)
    x = L.Add(name="add")([x, seen])
    x = L.LayerNormalization(name="norm")(x)
    x = L.GroupQueryAttention(3, 4, 2, name="grouped")(x, x)
    x = L.EinsumDense("abc,cd->abd", output_shape=(None, 4), bias_axes="d", name="mixed")(x)
    return keras.Model(inputs, L.Dense(5, name="head")(L.GlobalAveragePooling1D(name="pool")(x)))


def normalizations() -> Any:
    inputs = keras.Input((4, 6))
    x = L.Normalization(mean=[0.5] * 6, variance=[0.1] * 6, name="features")(inputs)
    x = L.BatchNormalization(name="batch")(L.Dense(6, name="fc")(x))
    x = L.GroupNormalization(2, name="group")(L.LayerNormalization(name="layer")(x))
    x = L.UnitNormalization(name="unit")(L.RMSNormalization(name="rms")(x))
    x = L.SpectralNormalization(L.Dense(6, name="fc"), name="spectral")(x)
    return keras.Model(inputs, L.Dense(5, name="head")(L.Flatten(name="flatten")(x)))


class Gain(keras.Layer):
    """A variable that is made as such, and read as it comes."""

    def build(self, shape: Any) -> None:
        self.gain = keras.Variable(np.ones(shape[-1], np.float32), name="gain")

    def call(self, inputs: Any) -> Any:
        return keras.ops.multiply(inputs, self.gain)


class Mixer(keras.Layer):
    """Arithmetic that asks for `self.compute_dtype`."""

    def build(self, shape: Any) -> None:
        self.matrix = self.add_weight(shape=(shape[-1], shape[-1]), name="matrix")

    def call(self, inputs: Any) -> Any:
        inputs = keras.ops.cast(inputs, self.compute_dtype)
        small = 1e-7 if self.compute_dtype == "float32" else 1e-3
        mixed = keras.ops.matmul(inputs, keras.ops.cast(self.matrix, self.compute_dtype))
        return keras.ops.tanh(mixed + keras.ops.ones((), self.compute_dtype) * small)


class Gate(keras.Layer):
    """A call that takes two tensors, one by name."""

    def call(self, inputs: Any, gate: Any = None) -> Any:
        return keras.ops.multiply(inputs, keras.ops.sigmoid(gate))


class Block(keras.Layer):
    """A layer of layers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.fc = L.Dense(6, name="fc")
        self.gate = Gate(name="gate")

    def build(self, shape: Any) -> None:
        self.fc.build(shape)
        self.gate.build(shape)

    def call(self, inputs: Any) -> Any:
        return self.gate(inputs, gate=self.fc(inputs))


def custom() -> Any:
    return keras.Sequential([
        keras.Input((6,)), Gain(name="gain"), Mixer(name="mixer"), Block(name="block"), L.Dense(5, name="head"),
    ])


def operations() -> Any:
    left, right = keras.Input((3, 4)), keras.Input((4, 5))
    x = keras.ops.einsum("bij,bjk->bik", left * 0.25, right)
    x = keras.ops.mean(keras.ops.matmul(keras.ops.relu(x), keras.ops.transpose(x, (0, 2, 1))) + 1.0, axis=1)
    return keras.Model([left, right], keras.ops.softmax(L.Dense(5, name="fc")(x)))


def _application(name: str, **options: Any) -> Any:
    make = getattr(keras.applications, name)
    return make(weights=None, input_shape=(32, 32, 3), classes=5, **options)


def mobile_net_v2() -> Any:
    return _application("MobileNetV2")


def resnet50_v2() -> Any:
    return _application("ResNet50V2")


def efficient_net_v2_b0() -> Any:
    return _application("EfficientNetV2B0")


def conv_next_tiny() -> Any:
    return _application("ConvNeXtTiny")
