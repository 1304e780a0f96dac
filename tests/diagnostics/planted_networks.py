"""Small networks in the shapes of public examples, each with a place where a fault can be planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

import mixtrain
from mixtrain import nn
from tests.diagnostics.planted import WIDTH, Inside, dense, head

layers, ops = keras.layers, keras.ops


def constant(value: float) -> Any:
    return keras.initializers.Constant(value)


def conv(name: str, filters: int, size: int, weight: float, make: Any = layers.Conv2D, **options: Any) -> Any:
    """Return a convolution without bias, all of one weight."""
    return make(filters, size, use_bias=False, kernel_initializer=constant(weight), name=name, **options)


def sequence(shape: tuple[int, ...], *middle: Callable[[], Any], **options: Any) -> Callable[[], Any]:
    """Return a function that makes a Sequential network of layers that are made anew each time."""
    return lambda: keras.Sequential([keras.Input(shape, **options), *(make() for make in middle)])


def flat() -> Any:
    return layers.Flatten(name="flatten")


def pool() -> Any:
    return layers.GlobalAveragePooling2D(name="pool")


def weak(power: int) -> Callable[[], Any]:
    """Return a function that makes a last layer with a weight of 2 to minus this power."""
    return lambda: head(2.0**-power)


def rms(x: Any) -> Any:
    return x / ops.sqrt(ops.mean(x * x, axis=-1, keepdims=True))


def by_hand(x: Any) -> Any:
    """Normalize rows, with the epsilon that examples have."""
    x = x - ops.mean(x, axis=-1, keepdims=True)
    return x / ops.sqrt(ops.mean(x * x, axis=-1, keepdims=True) + 1e-8)


def tanh(x: Any) -> Any:
    return (ops.exp(x) - ops.exp(-x)) / (ops.exp(x) + ops.exp(-x))


def distances(x: Any) -> Any:
    squares = ops.sum(x * x, axis=-1, keepdims=True)
    return x * 0 + ops.mean(squares + ops.transpose(squares) - 2 * ops.matmul(x, ops.transpose(x)), -1, keepdims=True)


def factorization(x: Any) -> Any:
    return x * 0 + (ops.sum(x, -1, keepdims=True) ** 2 - ops.sum(x * x, -1, keepdims=True)) / 4096


def shares(x: Any) -> Any:
    return ops.relu(x) ** 2 / ops.sum(ops.relu(x) ** 2, axis=-1, keepdims=True)


def attend(x: Any) -> Any:
    return ops.matmul(ops.softmax(ops.matmul(x, ops.swapaxes(x, 1, 2)) / 2, axis=-1), x)


def causal(x: Any) -> Any:
    return x + (1.0 - ops.ones_like(x)) * ops.cast(ops.full((1, 1), -1e9), x.dtype)


def swish(x: Any) -> Any:
    return x / (1 + ops.exp(-x))


def sigmoid(x: Any) -> Any:
    return 1 / (1 + ops.exp(-x))


def deviation(x: Any, least: float = 0.0) -> Any:
    return x * 0 + ops.sqrt(ops.mean((x - ops.mean(x, -1, keepdims=True)) ** 2, -1, keepdims=True) + least)


def long_root(x: Any) -> Any:
    return x * 0 + ops.sqrt(ops.sum(x * x, -1, keepdims=True) / 4096)


def barrier(weight: Any) -> Any:
    """Keep weights from 0: infinite where one is."""
    return ops.sum(ops.log(ops.abs(weight)))


class LowRank(layers.Layer):
    """Adds a product with two thin matrices, as an adapter does."""

    def build(self, shape: Any) -> None:
        self.down = self.add_weight(shape=(shape[-1], 2), initializer=constant(2.0**15), name="down")
        self.up = self.add_weight(shape=(2, shape[-1]), initializer=constant(2.0**-15), name="up")

    def call(self, x: Any) -> Any:
        return x + ops.matmul(ops.matmul(x, self.down), self.up)


class Weighted(layers.Layer):
    """Multiplies by a function of a weight."""

    def __init__(self, function: Callable[[Any], Any], start: float, **options: Any) -> None:
        super().__init__(**options)
        self.function, self.start = function, start

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(shape[-1],), initializer=constant(self.start), name="scale")

    def call(self, x: Any) -> Any:
        return x * self.function(self.scale)


class Pow8(nn.Cell):
    def construct(self, x: Any) -> Any:
        return (x**8) ** 0.125


class CellUnit(nn.Cell):
    """Divides rows by their norm."""

    def construct(self, x: Any) -> Any:
        return x / mixtrain.ops.sqrt((x * x).sum(-1, keepdims=True))


class CellResidual(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Dense(WIDTH, WIDTH, weight_init=0.25, has_bias=False)

    def construct(self, x: Any) -> Any:
        return x + self.body(x)


class CellConvolution(nn.Cell):
    def __init__(self, weight: float = 2.0**14) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 3, pad_mode="valid", weight_init=weight)
        self.relu, self.flatten = nn.ReLU(), nn.Flatten()
        self.fc1 = nn.Dense(8, 1, weight_init=2.0**-12, has_bias=False)

    def construct(self, x: Any) -> Any:
        return self.fc1(self.flatten(self.relu(self.conv1(x))))


class MixedCell(nn.Cell):
    """A Cell that holds a Keras layer."""

    def __init__(self) -> None:
        super().__init__()
        self.entry = nn.Dense(WIDTH, WIDTH, weight_init=0.25, has_bias=False)
        self.middle = dense("middle", weight=2.0**15)
        self.out = nn.Dense(WIDTH, 1, weight_init=2.0**-14, has_bias=False)

    def construct(self, x: Any) -> Any:
        return self.out(self.middle(self.entry(x)))


class CellRecurrent(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.fc = nn.LSTM(2, WIDTH, batch_first=True), nn.Dense(WIDTH, 1)

    def construct(self, x: Any) -> Any:
        return self.fc(self.lstm(x)[0][:, -1])


class Block(layers.Layer):
    """A residual block of two dense layers."""

    def __init__(self, first: float, second: float, **options: Any) -> None:
        super().__init__(**options)
        self.fc1, self.fc2 = dense("fc1", weight=first), dense("fc2", weight=second)

    def build(self, shape: Any) -> None:
        self.fc1.build(shape)
        self.fc2.build(shape)

    def call(self, x: Any) -> Any:
        return x + self.fc2(ops.relu(self.fc1(x)))


class Blocks(keras.Model):
    """A subclassed network with a list of blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [Block(0.25, 0.25, name="b0"), Block(2.0**15, 2.0**-18, name="b1")]
        self.out = head()

    def build(self, shape: Any) -> None:
        for block in self.blocks:
            block.build(shape)
        self.out.build(shape)
        self.built = True

    def call(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class Sampling(layers.Layer):
    """Draws from a normal distribution, and adds its distance from the standard one to the loss."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.seeds = keras.random.SeedGenerator(1)

    def call(self, inputs: Any) -> Any:
        mean, log_variance = inputs
        self.add_loss(-0.5 * ops.mean(1 + log_variance - ops.square(mean) - ops.exp(log_variance)))
        noise = keras.random.normal(ops.shape(mean), dtype=mean.dtype, seed=self.seeds)
        return mean + ops.exp(0.5 * log_variance) * noise


def variational() -> Any:
    inputs = keras.Input((WIDTH,))
    mean, log_variance = dense("mean", weight=0.25)(inputs), dense("log_variance", weight=3.0)(inputs)
    return keras.Model(inputs, head()(Sampling(name="sampling")([mean, log_variance])))


def residual_network() -> Any:
    inputs = keras.Input((4, 4, 2))
    x = conv("conv", 2, 1, 2.0**-16)(inputs)
    x = layers.BatchNormalization(beta_initializer=constant(40000.0), name="bn")(x)
    x = layers.ReLU(name="out")(layers.Add(name="add")([inputs, x]))
    return keras.Model(inputs, head(2.0**-14)(pool()(x)))


def shared_twice() -> Any:
    inputs, shared = keras.Input((WIDTH,)), dense("shared", weight=64.0)
    return keras.Model(inputs, head(2.0**-14)(shared(shared(inputs))))


def two_towers() -> Any:
    user, item = keras.Input((16,), name="user"), keras.Input((16,), name="item")
    towers = [dense("users", 16)(user), dense("items", 16)(item)]
    return keras.Model([user, item], head(2.0**-16)(layers.Dot(axes=-1, name="dot")(towers)))


def gated() -> Any:
    inputs = keras.Input((WIDTH,))
    sides = [dense("value")(inputs), dense("gate")(inputs)]
    return keras.Model(inputs, head(2.0**-12)(layers.Multiply(name="product")(sides)))


def two_heads(second: float = 2.0**-8) -> Callable[[], Any]:
    def make() -> Any:
        inputs = keras.Input((WIDTH,))
        x = dense("d1")(inputs)
        return keras.Model(inputs, [dense("first", 1, 2.0**-8)(x), dense("second", 1, second)(x)])

    return make


def three_deep() -> Any:
    inner = keras.Sequential([keras.Input((WIDTH,)), dense("deep", weight=2.0**15)], name="inner")
    entry = keras.Input((WIDTH,))
    outer = keras.Model(entry, inner(dense("near")(entry)), name="outer")
    return keras.Sequential([keras.Input((WIDTH,)), outer, head(2.0**-14)])


def root_in_block() -> Any:
    block = keras.Sequential([keras.Input((WIDTH,)), Inside(ops.sqrt, name="root")], name="block")
    return keras.Sequential([keras.Input((WIDTH,)), dense("d1"), block, head()])


def half_dense(weight: float) -> Callable[[], Any]:
    def make() -> Any:
        network = keras.Sequential([keras.Input((WIDTH,)), dense("d1", weight=weight), head()])
        mixtrain.to_float(network.get_layer("d1"), mixtrain.float16)
        return network

    return make


def transformer() -> Any:
    tokens = keras.Input((6,), dtype="int32")
    x = layers.Embedding(8, 8, name="table")(tokens)
    x = layers.LayerNormalization(name="n1")(x + layers.MultiHeadAttention(2, 4, name="attention")(x, x))
    x = layers.LayerNormalization(name="n2")(x + layers.Dense(8, name="down")(layers.Dense(16, "gelu", name="up")(x)))
    return keras.Model(tokens, layers.Dense(1, name="out")(layers.GlobalAveragePooling1D()(x)))


def attention_of(value: float) -> Callable[[], Any]:
    """Return a function that makes an attention whose queries and keys are all of one number, for inputs of ones."""
    def make() -> Any:
        inputs = keras.Input((3, WIDTH))
        attention = layers.MultiHeadAttention(
            1, 4, use_bias=False, kernel_initializer=constant(value / WIDTH), name="attention"
        )
        return keras.Model(inputs, head(2.0**-20)(layers.GlobalAveragePooling1D()(attention(inputs, inputs))))

    return make


def looped(make: Any, **options: Any) -> Callable[[], Any]:
    """Return a function that makes a recurrent layer whose state is multiplied by 32 in each of five steps."""
    def build() -> Any:
        cell = layers.SimpleRNN(
            WIDTH, activation=None, kernel_initializer=constant(options.get("weight", 0.5)), use_bias=False,
            recurrent_initializer=keras.initializers.Identity(32.0), name="rec",
        )
        return keras.Sequential([keras.Input((5, 2)), make(cell), head(options.get("out", 2.0**-20))])

    return build


def early(*shape: int) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
    """Return a function that makes a batch of sequences that are 0 after their first step."""
    def make() -> tuple[np.ndarray, np.ndarray]:
        x = np.zeros(shape, np.float32)
        x[:, 0] = 1.0
        return x, np.zeros((shape[0], 1), np.float32)

    return make


# ---- losses ----------------------------------------------------------------------------------------------------------
def entropy(y: Any, p: Any) -> Any:
    return -ops.mean(y * ops.log(p) + (1 - y) * ops.log(1 - p))


def second_class(y: Any, p: Any) -> Any:
    return ops.mean(-ops.log(p[:, 1:2] + 0 * y))


def divergence(y: Any, p: Any) -> Any:
    return ops.mean(y * ops.log(y / p))


def poisson(y: Any, p: Any) -> Any:
    return ops.mean(p - y * ops.log(p))


def similarity(y: Any, p: Any) -> Any:
    norms = ops.sqrt(ops.sum(y * y, axis=-1)) * ops.sqrt(ops.sum(p * p, axis=-1))
    return -ops.mean(ops.sum(y * p, axis=-1) / norms)


def times_1e6(y: Any, p: Any) -> Any:
    return 1e6 * ops.mean(ops.abs(p - y))


def sum_of(y: Any, p: Any) -> Any:
    return ops.sum(ops.abs(p - y))


def known_labels(y: Any, p: Any) -> Any:
    known = ops.logical_not(ops.isnan(y))
    return ops.mean(ops.where(known, ops.abs(p - ops.where(known, y, 0.0)), 0.0))


def distance(y: Any, p: Any) -> Any:
    return ops.mean(ops.sqrt(ops.sum(ops.square(p - y), axis=-1)))
