"""Ten small Keras networks of different kinds, for comparisons of levels of precision."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Final

import keras
from keras import layers

CLASSES: Final = 10
_VOCABULARY: Final = 1000


@dataclasses.dataclass(frozen=True)
class Kind:
    """A network and its batches.

    Attributes:
        title: Name in the tables.
        stack: Makes the layers before the last one, which returns logits.
        shape: Shape of a sample.
        batch: Batch size.
        vocabulary: Number of tokens, for samples of token ids; 0 for numbers.
    """

    title: str
    stack: Callable[[], list[Any]]
    shape: tuple[int, ...]
    batch: int
    vocabulary: int = 0

    def network(self) -> keras.Model:
        """Return the network, with the same weights each time."""
        keras.utils.set_random_seed(0)
        entry = keras.Input(self.shape, dtype="int32" if self.vocabulary else "float32")
        return keras.Sequential([entry, *self.stack(), layers.Dense(CLASSES)])


class _Attention(layers.Layer):
    """Self-attention with a residual and layer normalization."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.attention, self.norm = layers.MultiHeadAttention(4, 32), layers.LayerNormalization()

    def build(self, shape: Any) -> None:
        self.attention.build(shape, shape)
        self.norm.build(shape)

    def call(self, x: Any) -> Any:
        return self.norm(x + self.attention(x, x))


def _conv(filters: int, make: Any = layers.Conv2D, **options: Any) -> Any:
    return make(filters, 3, padding="same", activation="relu", **options)


def _normalized(filters: int) -> list[Any]:
    return [layers.Conv2D(filters, 3, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU()]


def _depthwise(filters: int) -> list[Any]:
    return [layers.DepthwiseConv2D(3, padding="same", activation="relu"), layers.Conv2D(filters, 1, activation="relu")]


def _dense(width: int, depth: int = 2) -> list[Any]:
    return [layers.Dense(width, activation="relu") for _ in range(depth)]


KINDS: Final = (
    Kind("dense, 64 wide", lambda: _dense(64), (64,), 32),
    Kind("dense, 1024 wide", lambda: _dense(1024), (64,), 128),
    Kind("convolutions", lambda: [_conv(32), layers.MaxPooling2D(), _conv(64), layers.GlobalAveragePooling2D()],
         (32, 32, 3), 16),
    Kind("convolutions and batch norm", lambda: [*_normalized(32), *_normalized(32), layers.GlobalAveragePooling2D()],
         (16, 16, 3), 32),
    Kind("depthwise convolutions", lambda: [_conv(16), *_depthwise(32), *_depthwise(64),
                                            layers.GlobalAveragePooling2D()], (16, 16, 3), 32),
    Kind("convolutions of a signal", lambda: [_conv(64, layers.Conv1D), _conv(64, layers.Conv1D),
                                              layers.GlobalAveragePooling1D()], (256, 8), 32),
    Kind("LSTM", lambda: [layers.LSTM(128)], (24, 32), 32),
    Kind("GRU, two directions", lambda: [layers.Bidirectional(layers.GRU(64))], (16, 16), 32),
    Kind("embedding", lambda: [layers.Embedding(_VOCABULARY, 128), layers.GlobalAveragePooling1D(), *_dense(256)],
         (64,), 64, _VOCABULARY),
    Kind("attention", lambda: [layers.Embedding(_VOCABULARY, 128), _Attention(), *_dense(256, 1),
                               layers.GlobalAveragePooling1D()], (32,), 32, _VOCABULARY),
)
