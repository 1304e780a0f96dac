"""More networks of the zoo: every convolution, masks, attention of two kinds, losses that layers add, raw variables."""

from __future__ import annotations

from typing import Any

import keras

L = keras.layers


def convolutions() -> Any:
    inputs = keras.Input((6, 4))
    x = L.Conv1D(4, 2, padding="same", name="line")(inputs)
    x = L.SeparableConv1D(4, 2, padding="same", name="separable")(L.DepthwiseConv1D(2, name="depthwise")(x))
    x = L.Conv1DTranspose(4, 2, name="longer")(L.LeakyReLU(name="leaky")(x))
    x = L.Conv2DTranspose(2, 2, name="wider")(L.Reshape((6, 2, 2), name="image")(x))
    x = L.Conv3D(2, 2, name="solid")(L.Reshape((7, 3, 2, 1), name="volume")(x))
    x = L.ConvLSTM1D(2, 2, name="film")(L.Reshape((6, 2, 2), name="frames")(L.PReLU(name="slope")(x)))
    return keras.Model(inputs, L.Dense(5, name="head")(L.Flatten(name="flatten")(x)))


def masked() -> Any:
    inputs = keras.Input((4, 6))
    x = L.Masking(name="gaps")(inputs)
    x = L.BatchNormalization(name="norm")(x)
    x = L.Bidirectional(L.LSTM(3, return_sequences=True, name="lstm"), merge_mode="sum", name="both")(x)
    return keras.Model(inputs, L.Dense(5, name="head")(L.GRU(4, name="gru")(x)))


def plain_attention() -> Any:
    inputs = keras.Input((4, 6))
    x = L.Attention(use_scale=True, name="scaled")([inputs, L.Dense(6, name="value")(inputs)])
    x = L.AdditiveAttention(name="added")([x, inputs])
    x = L.Dot(axes=2, name="dot")([x, inputs])
    return keras.Model(inputs, L.Dense(5, name="head")(L.GlobalAveragePooling1D(name="pool")(x)))


def image_normalizations() -> Any:
    inputs = keras.Input((6, 6, 3))
    x = L.Conv2D(4, 3, use_bias=False, name="conv")(inputs)
    x = L.BatchNormalization(axis=1, name="by_row")(L.BatchNormalization(scale=False, name="fused")(x))
    x = L.LayerNormalization(axis=(1, 2, 3), name="layer")(L.GroupNormalization(-1, name="instance")(x))
    return keras.Model(inputs, L.Dense(5, name="head")(L.GlobalMaxPooling2D(name="pool")(x)))


class Holder(keras.Layer):
    """Layers in a dict and a list, with regularizers, and a loss that the layer adds itself."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.held = {"fc": L.Dense(6, kernel_regularizer="l2", bias_regularizer="l1", name="fc")}
        self.blocks = [Inner(name="inner"), L.ActivityRegularization(l2=0.01, name="activity")]

    def build(self, shape: Any) -> None:
        self.held["fc"].build(shape)
        for block in self.blocks:
            block.build(shape)

    def call(self, inputs: Any) -> Any:
        x = self.held["fc"](inputs)
        self.add_loss(0.1 * keras.ops.mean(keras.ops.square(keras.ops.cast(x, "float32"))))
        for block in self.blocks:
            x = block(x)
        return x


class Inner(keras.Layer):
    """A layer two levels down."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.deep = L.Dense(6, kernel_regularizer=keras.regularizers.L1L2(), activity_regularizer="l2", name="deep")

    def build(self, shape: Any) -> None:
        self.deep.build(shape)

    def call(self, inputs: Any) -> Any:
        return self.deep(inputs)


def regularized() -> Any:
    return keras.Sequential([keras.Input((6,)), Holder(name="holder"), L.Dense(5, name="head")])


class Raw(keras.Layer):
    """Variables of its own, multiplied by operations; regularized, and one that is not trained."""

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(shape=(shape[-1], 6), regularizer="l2", name="kernel")
        self.bias = self.add_weight(shape=(6,), initializer="zeros", name="bias")
        self.seen = self.add_weight(shape=(), initializer="zeros", trainable=False, name="seen")

    def call(self, inputs: Any, training: bool = False) -> Any:
        if training:
            self.seen.assign_add(1.0)
        return keras.ops.matmul(inputs, self.kernel) + self.bias


def raw_variables() -> Any:
    return keras.Sequential([keras.Input((6,)), Raw(name="raw"), L.ReLU(name="relu"), L.Dense(5, name="head")])
