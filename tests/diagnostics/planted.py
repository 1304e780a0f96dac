"""Networks with one planted fault each: what the explanation of the skipped step must say, and what cures it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import keras
import numpy as np

import mixtrain
from mixtrain import nn

Cure = Literal["to_float", "scale", "data", "network", "rate", "none"]
Batch = tuple[Any, ...]
layers, ops = keras.layers, keras.ops
ROWS, WIDTH = 4, 4
HALVES = ("float16", "bfloat16")


@dataclasses.dataclass(frozen=True)
class Fault:
    """A network with a fault, and the finding that is right.

    `kind`, `layer`, `column`, `count`, `nan`, `size`, `dtype`, `largest`: As in `Finding`; None for what depends on
    how the backend orders its operations. `words`: A part of the sentence. `cure`: What the sentence advises: layers in
    float32, a smaller scale, other data, another network (`cured`), or a lower learning rate. `steps`: How many batches
    are trained. `fused`: Whether XLA may keep float32 between the operations, so that only the gradient overflows, or
    nothing; or a backend may compute 0 of 0 * inf. `without`: What the sentence must not say. `keep`: The layers to
    keep in float32, of which those that compute in half are advised; `helps`: the scale. `settings`: Arguments of the
    Model; `fit`: of `Model.fit`, which trains in place of `Model.train`. `last`: Another batch, after the others.
    """

    name: str
    network: Callable[[], Any]
    batch: Callable[[], Batch]
    kind: str
    layer: str | None
    cure: Cure
    levels: tuple[str, ...] = ("O2", "O3")
    halves: tuple[str, ...] = ("float16",)
    column: int | None = None
    count: int | None = None
    nan: int | None = None
    size: int | None = None
    dtype: str | None = None
    largest: float | None = None
    words: str = ""
    loss: Any = "mae"
    fused: bool = False
    scale: float = 8.0
    rate: float = 0.0
    steps: int = 1
    cured: Callable[[], Any] | None = None
    without: str = ""
    keep: tuple[str, ...] | None = None
    helps: float | None = None
    settings: Callable[[], dict[str, Any]] = dict
    fit: dict[str, Any] | None = None
    last: Callable[[], Batch] | None = None


# ---- data and layers ------------------------------------------------------------------------------------------------
def filled(value: float, *shape: int, label: float = 0.0) -> Callable[[], Batch]:
    """Return a function that makes a batch of one number."""
    shape = shape or (ROWS, WIDTH)
    return lambda: (np.full(shape, value, np.float32), np.full((shape[0], 1), label, np.float32))


def planted(value: float, place: tuple[int, ...], *shape: int, base: float = 1.0) -> Callable[[], Batch]:
    """Return a function that makes a batch of ones in which one number is another."""

    def make() -> Batch:
        x, y = filled(base, *shape)()
        x[place] = value
        return x, y

    return make


class Inside(layers.Layer):
    """Applies a function."""

    def __init__(self, function: Callable[[Any], Any], **options: Any) -> None:
        super().__init__(**options)
        self.function = function

    def call(self, x: Any) -> Any:
        return self.function(x)


class Adds(layers.Layer):
    """Returns its input, and adds a function of it to the loss."""

    def __init__(self, function: Callable[[Any], Any], **options: Any) -> None:
        super().__init__(**options)
        self.function = function

    def call(self, x: Any) -> Any:
        self.add_loss(self.function(x))
        return x


def dense(name: str, units: int = WIDTH, weight: float | None = None, **options: Any) -> Any:
    """Return a dense layer without bias: the identity, or all of one weight."""
    start: Any = keras.initializers.Identity() if weight is None else keras.initializers.Constant(weight)
    return layers.Dense(units, use_bias=False, kernel_initializer=start, name=name, **options)


def head(weight: float = 2.0**-8) -> Any:
    return dense("head", 1, weight)


def chain(*middle: Callable[[], Any], shape: tuple[int, ...] = (WIDTH,)) -> Callable[[], Any]:
    """Return a function that makes a Sequential network."""
    return lambda: keras.Sequential([keras.Input(shape), *(make() for make in middle)])


def inside(function: Callable[[Any], Any], name: str = "inside") -> Callable[[], Any]:
    """Return a function that makes a network with a layer of one's own between two dense ones."""
    return chain(lambda: dense("d1"), lambda: Inside(function, name=name), head)


def widened(function: Callable[[Any], Any], width: int) -> Callable[[], Any]:
    """Return the same with a wide input."""
    return chain(lambda: Inside(function, name="inside"), head, shape=(width,))


# ---- overflow inside a layer, which float32 does not have -----------------------------------------------------------
def softmax(x: Any) -> Any:
    powers = ops.exp(x)
    return powers / ops.sum(powers, axis=-1, keepdims=True)


def variance(x: Any) -> Any:
    mean = ops.mean(x, axis=-1, keepdims=True)
    return x * 0 + ops.mean(x * x, axis=-1, keepdims=True) - mean * mean


def masked(x: Any) -> Any:
    return ops.softmax(x + ops.cast(ops.full((1, 1), -1e9), x.dtype), axis=-1) * x


class Power(nn.Cell):
    def construct(self, x: Any) -> Any:
        return (x * x * x * x) ** 0.25


class Residual(layers.Layer):
    """Two sides that fit, and a sum that does not."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.inner = dense("inner")

    def build(self, shape: Any) -> None:
        self.inner.build(shape)

    def call(self, x: Any) -> Any:
        return x + self.inner(x)


def with_operation() -> Any:
    inputs = keras.Input((WIDTH,))
    x = dense("d1")(inputs)
    return keras.Model(inputs, head(2.0**-14)(layers.ReLU(name="relu")(x * x)))


def cells(*middle: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: nn.SequentialCell(*(make() for make in middle))


def cell_dense(weight: float, units: int = WIDTH) -> Callable[[], Any]:
    return lambda: nn.Dense(WIDTH, units, weight_init=weight, has_bias=False)


WITHIN = [
    Fault("x**4, then a root", inside(lambda x: ops.sqrt(ops.sqrt(x * x * x * x))), filled(32.0), "forward", "inside",
          "to_float", count=16, nan=0, size=16, dtype="float16", largest=32.0, words="keep layer inside in float32"),
    Fault("x*x/4096", inside(lambda x: x * x / 4096), filled(512.0), "forward", "inside", "to_float", count=16, nan=0,
          size=16, dtype="float16", largest=64.0, words="keep layer inside in float32"),
    Fault("log(exp(x))", inside(lambda x: ops.log(ops.exp(x))), filled(12.0), "forward", "inside", "to_float", count=16,
          nan=0, size=16, dtype="float16", largest=12.0, words="keep layer inside in float32"),
    Fault("norm", inside(lambda x: x * 0 + ops.sqrt(ops.sum(x * x, axis=-1, keepdims=True))), filled(200.0), "forward",
          "inside", "to_float", count=16, nan=0, size=16, dtype="float16", largest=400.0,
          words="keep layer inside in float32"),
    Fault("softmax by hand", inside(softmax), filled(12.0), "forward", "inside", "to_float", count=16, nan=16, size=16,
          dtype="float16", words="keep layer inside in float32"),
    Fault("one row of a softmax", inside(softmax), planted(12.0, (1, 2)), "forward", "inside", "to_float",
          size=16, dtype="float16", words="keep layer inside in float32"),
    Fault("variance by hand", inside(variance), filled(300.0), "forward", "inside", "to_float", count=16, size=16,
          dtype="float16", words="keep layer inside in float32"),
    Fault("sum of a long axis", widened(lambda x: x * 0 + ops.sum(x, axis=-1, keepdims=True) / 4096, 4096),
          filled(32.0, 2, 4096), "forward", "inside", "to_float", nan=0, dtype="float16", largest=32.0,
          words="keep layer inside in float32"),
    Fault("all masked", inside(masked), filled(1.0), "forward", "inside", "to_float", count=16, nan=16, size=16,
          dtype="float16", words="keep layer inside in float32"),
    Fault("cube and its root", inside(lambda x: ops.exp(ops.log(x * x * x) / 3)), filled(64.0), "forward", "inside",
          "to_float", count=16, nan=0, size=16, dtype="float16", words="keep layer inside in float32"),
    Fault("a difference of large numbers", inside(lambda x: x * 4096 - x * 4095), filled(32.0), "forward", "inside",
          "to_float", count=16, nan=16, size=16, dtype="float16", words="keep layer inside in float32"),
    Fault("x**4 in a cell", cells(cell_dense(0.25), Power, cell_dense(2.0**-8, 1)), filled(32.0), "forward", "1",
          "to_float", count=16, nan=0, size=16, dtype="float16", largest=32.0, words="keep layer 1 in float32"),
    Fault("Lambda", chain(lambda: dense("d1"), lambda: layers.Lambda(lambda x: x * x / 4096, name="square"), head),
          filled(512.0), "forward", "square", "to_float", count=16, dtype="float16", largest=64.0,
          words="keep layer square in float32"),
]


# ---- outputs above the range of half --------------------------------------------------------------------------------
def huge_dense(weight: float) -> Callable[[], Any]:
    return chain(lambda: dense("d1"), lambda: dense("d2", weight=weight), lambda: layers.ReLU(name="relu"),
                 lambda: dense("d3", weight=2.0**-12), head)


def huge_convolution(weight: float = 2.0**16) -> Any:
    start = keras.initializers.Constant
    return keras.Sequential([
        keras.Input((4, 4, 1)),
        layers.Conv2D(2, 1, use_bias=False, kernel_initializer=start(1.0), name="conv1"),
        layers.Conv2D(2, 1, use_bias=False, kernel_initializer=start(weight), name="conv2"),
        layers.GlobalAveragePooling2D(name="pool"), head(2.0**-14),
    ])


def nested() -> Any:
    block = keras.Sequential([keras.Input((WIDTH,)), dense("deep", weight=2.0**15), layers.ReLU(name="relu")],
                             name="block")
    return keras.Sequential([keras.Input((WIDTH,)), dense("d1"), block, head(2.0**-14)])


def half_of_rows(value: float) -> Callable[[], Batch]:
    def make() -> Batch:
        x, y = filled(1.0)()
        x[ROWS // 2 :] = value
        return x, y

    return make


EVERY = ("O1", "O2", "O3")
ABOVE = [
    Fault("dense with huge weights", huge_dense(2.0**15), filled(1.0), "forward", "d2", "to_float", EVERY, count=16,
          nan=0, size=16, dtype="float16", largest=2.0**17, words="values above 65504, the largest 1.3e+05"),
    Fault("some rows", huge_dense(2.0**12), half_of_rows(8.0), "forward", "d2", "to_float", EVERY, count=8, nan=0,
          size=16, dtype="float16", largest=2.0**17, words="8 of 16 values above 65504, the largest 1.3e+05"),
    Fault("convolution with huge weights", huge_convolution, filled(1.0, ROWS, 4, 4, 1), "forward", "conv2",
          "to_float", EVERY, count=128, nan=0, size=128, dtype="float16", largest=2.0**17,
          words="values above 65504, the largest 1.3e+05"),
    Fault("sum of two sides", chain(lambda: dense("d1"), lambda: Residual(name="residual"), lambda: head(2.0**-14)),
          filled(2.0**15), "forward", "residual", "to_float", count=16, nan=0, size=16, dtype="float16",
          largest=2.0**16, words="values above 65504, the largest 6.6e+04"),
    Fault("a product of operations", with_operation, filled(512.0), "forward", "multiply", "to_float", count=16, nan=0,
          size=16, dtype="float16", largest=2.0**18, words="values above 65504, the largest 2.6e+05"),
    Fault("nested", nested, filled(1.0), "forward", "block/deep", "to_float", EVERY, count=16, nan=0, size=16,
          dtype="float16", largest=2.0**17, words="values above 65504, the largest 1.3e+05"),
    Fault("the last layer", chain(lambda: dense("d1"), lambda: head(2.0**15)), filled(1.0), "forward", "head",
          "to_float", EVERY, count=ROWS, nan=0, size=ROWS, dtype="float16", largest=2.0**17,
          words="4 of 4 values above 65504, the largest 1.3e+05"),
    Fault("cells", cells(cell_dense(0.25), cell_dense(2.0**15), cell_dense(2.0**-14), cell_dense(2.0**-6, 1)),
          filled(1.0), "forward", "1", "to_float", EVERY, count=16, nan=0, size=16, dtype="float16", largest=2.0**17,
          words="values above 65504, the largest 1.3e+05"),
    Fault("float16 by to_float at O0", lambda: _half_dense(), filled(1.0), "forward", "d2", "to_float", ("O0",),
          count=16, nan=0, size=16, dtype="float16", largest=2.0**17, words="values above 65504"),
    Fault("bfloat16 holds what float32 does not", inside(lambda x: x * 1e30), filled(1e10), "forward", "inside",
          "none", ("O2", "O3"), HALVES[1:], count=16, nan=0, size=16, words="float32 has it too"),
    Fault("float32", inside(lambda x: x * 1e30), filled(1e10), "forward", "inside", "none", ("O0",), count=16,
          nan=0, size=16, dtype="float32", words="look at its weights and its inputs"),
    Fault("a logarithm below zero", inside(lambda x: ops.log(x - 2)), planted(4.0, (0, 0)), "forward", "inside", "none",
          ("O0", "O1", "O2"), HALVES, count=15, nan=15, size=16, words="15 NaN"),
    Fault("0/0 and 1/0", inside(lambda x: x / (x - x)), planted(0.0, (0, 0)), "forward", "inside", "none",
          ("O0", "O2"), HALVES, count=16, nan=1, size=16, words="15 inf, 1 NaN"),
]


def _half_dense() -> Any:
    network = huge_dense(2.0**15)()
    mixtrain.to_float(network.get_layer("d2"), mixtrain.float16)
    return network


# ---- inputs ---------------------------------------------------------------------------------------------------------
def infinite_and_nan() -> Batch:
    x, y = filled(1.0)()
    x[0, :2], x[1, 1] = np.nan, np.inf
    return x, y


def label(value: float) -> Callable[[], Batch]:
    def make() -> Batch:
        x, y = filled(1.0)()
        y[1] = value
        return x, y

    return make


def plain() -> Any:
    return keras.Sequential([keras.Input((WIDTH,)), dense("d1", activation="relu"), head()])


def recurrent(make: Any = layers.LSTM, **options: Any) -> Callable[[], Any]:
    return lambda: keras.Sequential([keras.Input((3, 2)), make(WIDTH, name="rec", **options), head()])


INPUTS = [
    Fault("nan in the data", plain, planted(np.nan, (1, 2)), "input", None, "data", ("O0", *EVERY), HALVES, 0, 1, 1, 16,
          words="1 of 16 values not finite (1 NaN)"),
    Fault("inf in the data", plain, planted(-np.inf, (1, 2)), "input", None, "data", ("O0", *EVERY), HALVES, 0, 1, 0,
          16, words="1 of 16 values not finite (1 inf)"),
    Fault("inf and nan in the data", plain, infinite_and_nan, "input", None, "data", ("O0", *EVERY), HALVES, 0, 3, 2,
          16, words="3 of 16 values not finite (1 inf, 2 NaN)"),
    Fault("nan in the labels", plain, label(np.nan), "input", None, "data", ("O0", "O2"), HALVES, 1, 1, 1, ROWS,
          loss="mse", words="column 1 of the batch: 1 of 4 values not finite (1 NaN)"),
    Fault("-1e6 into Dense(relu)", plain, planted(-1e6, (1, 2)), "input", None, "data", EVERY, column=0, count=1, nan=0,
          size=16, dtype="float16", largest=1e6, words="1 of 16 values above 65504, the largest 1e+06"),
    Fault("1e6 into Dense", chain(lambda: dense("d1"), head), planted(1e6, (1, 2)), "input", None, "data", EVERY,
          column=0, count=1, nan=0, size=16, dtype="float16", largest=1e6, words="the largest 1e+06"),
    Fault("-1e30 into an LSTM", recurrent(), planted(-1e30, (1, 2, 0), ROWS, 3, 2), "input", None, "data", EVERY,
          column=0, count=1, nan=0, size=24, dtype="float16", largest=1e30, words="the largest 1e+30"),
    Fault("-1e6 into a GRU", recurrent(layers.GRU), planted(-1e6, (1, 2, 0), ROWS, 3, 2), "input", None, "data", EVERY,
          column=0, count=1, nan=0, size=24, dtype="float16", largest=1e6, words="the largest 1e+06"),
    Fault("1e6 into a convolution", lambda: huge_convolution(1.0), planted(-1e6, (0, 0, 0, 0), ROWS, 4, 4, 1), "input",
          None, "data", EVERY, column=0, count=1, nan=0, size=64, dtype="float16", largest=1e6,
          words="the largest 1e+06"),
    Fault("3.4e38 in bfloat16", plain, planted(-3.4e38, (1, 2)), "input", None, "data", ("O1", "O2"), HALVES[1:], 0, 1,
          0, 16, "bfloat16", 3.4e38, words="1 of 16 values above 3.38953e+38, the largest 3.4e+38"),
]


# ---- losses ---------------------------------------------------------------------------------------------------------
def logarithm(y: Any, p: Any) -> Any:
    return ops.mean(ops.log(p * 0.0 + y))


def regularized(function: Callable[[Any], Any]) -> Callable[[], Any]:
    return chain(lambda: dense("d1"), lambda: Adds(function, name="reg"), head)


LOSSES = [
    Fault("labels whose square overflows", plain, label(1e30), "loss", None, "none", EVERY, count=1, nan=0,
          size=1, loss="mse", words="the loss: 1 of 1 values not finite (1 inf)"),
    Fault("logarithm of a label below zero", plain, label(-1.0), "loss", None, "none", ("O0", "O2"), HALVES, count=1,
          nan=1, size=1, loss=logarithm, words="the loss: 1 of 1 values not finite (1 NaN)"),
    Fault("add_loss", regularized(lambda x: ops.mean(x * x)), filled(512.0), "loss", "reg", "to_float", count=1, nan=0,
          size=1, dtype="float16", largest=2.0**18, words="1 of 1 values above 65504, the largest 2.6e+05"),
    Fault("add_loss on its way", regularized(lambda x: ops.log(ops.mean(ops.exp(x)))), filled(12.0), "loss", "reg",
          "to_float", count=1, nan=0, size=1, dtype="float16", words="keep layer reg in float32"),
    Fault("activity regularizer", chain(lambda: dense("d1", activity_regularizer=keras.regularizers.L2(1.0)), head),
          filled(512.0), "loss", "d1", "to_float", count=1, nan=0, size=1, dtype="float16",
          words="keep layer d1 in float32"),
    Fault("add_loss that float32 has too", regularized(lambda x: ops.mean(ops.log(x * 0))), filled(512.0), "loss",
          "reg", "none", ("O0", "O1", "O2"), HALVES, count=1, nan=0, size=1,
          words="look at what it adds and at its inputs"),
]


# ---- gradients that no scale helps ----------------------------------------------------------------------------------
def root_loss(y: Any, p: Any) -> Any:
    return ops.sqrt(ops.mean(ops.square(p - y)))


class Between(keras.Model):
    """Takes a root between its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.d1, self.head = dense("d1"), head()

    def build(self, shape: Any) -> None:
        self.d1.build(shape)
        self.head.build(shape)
        self.built = True

    def call(self, x: Any) -> Any:
        return self.head(ops.sqrt(ops.abs(self.d1(x))))


class CellRoot(nn.Cell):
    def construct(self, x: Any) -> Any:
        return mixtrain.ops.sqrt(mixtrain.ops.abs(x))


ALL = ("O0", *EVERY)
HAS_IT = "float32 has it too"
DERIVATIVES = [
    Fault("sqrt(abs(x)) at 0", inside(lambda x: ops.sqrt(ops.abs(x))), planted(0.0, (1, 2)), "gradient", "inside",
          "network", ALL, HALVES, count=1, size=16, words=HAS_IT,
          cured=inside(lambda x: ops.sqrt(ops.maximum(ops.abs(x), 1e-3)))),
    Fault("norm at 0", inside(lambda x: x + ops.sqrt(ops.sum(x * x, axis=-1, keepdims=True))), filled(0.0, label=1.0),
          "gradient", "inside", "network", ALL, HALVES, count=16, nan=16, size=16, words=HAS_IT,
          cured=inside(lambda x: x + ops.sqrt(ops.sum(x * x, axis=-1, keepdims=True) + 1e-3))),
    Fault("where over a logarithm", inside(lambda x: ops.where(x > 0, ops.log(x), 0.0 * x)), planted(0.0, (1, 2)),
          "gradient", "inside", "network", ALL, HALVES, count=1, nan=1, size=16, words=HAS_IT,
          cured=inside(lambda x: ops.where(x > 0, ops.log(ops.where(x > 0, x, 1.0)), 0.0 * x))),
    Fault("where over a quotient", inside(lambda x: ops.where(x != 0, 1 / x, 0.0 * x)), planted(0.0, (0, 0)),
          "gradient", "inside", "network", ALL, HALVES, count=1, nan=1, size=16, words=HAS_IT,
          cured=inside(lambda x: ops.where(x != 0, 1 / ops.where(x != 0, x, 1.0), 0.0 * x))),
    Fault("root at 0", inside(ops.sqrt), planted(0.0, (1, 2)), "gradient", "inside", "network", ALL, HALVES,
          count=1, nan=0, size=16, words=HAS_IT, cured=inside(lambda x: ops.sqrt(x + 1e-3))),
    Fault("root of the loss at 0", plain, filled(0.0), "gradient", None, "none", ALL, HALVES, loss=root_loss,
          words=HAS_IT),
    Fault("root between layers", Between, planted(0.0, (1, 2)), "gradient", "", "none", ALL, HALVES, count=1,
          words=HAS_IT),
    Fault("root in a cell", cells(cell_dense(0.25), CellRoot, cell_dense(2.0**-8, 1)), filled(0.0, label=1.0),
          "gradient", "1", "none", ALL, HALVES, count=16, size=16, words=HAS_IT),
    Fault("root before a residual", chain(lambda: dense("d1"), lambda: Inside(lambda x: x, name="same"),
                                          lambda: Inside(lambda x: ops.sqrt(ops.abs(x)) + x, name="root"), head),
          planted(0.0, (1, 2)), "gradient", "root", "network", ALL, HALVES, count=1, words=HAS_IT,
          cured=chain(lambda: dense("d1"), head)),
    Fault("a quotient that half makes large", inside(lambda x: 1.0 / (x + 2.0**-10)), filled(0.0), "gradient",
          "d1", "to_float", count=16, nan=0, size=16, dtype="float16", words="keep layer inside in float32"),
    Fault("a derivative above 65504", inside(lambda x: ops.maximum(x, 2.0**-12) ** -1.0 * 2.0**-2),
          filled(2.0**-12), "gradient", "d1", "to_float", words="keep layer inside in float32"),
]


# ---- scales that are too high ---------------------------------------------------------------------------------------
def attention() -> Any:
    inputs = keras.Input((3, WIDTH))
    x = layers.MultiHeadAttention(2, 2, name="attention")(inputs, inputs)
    return keras.Model(inputs, head()(layers.LayerNormalization(name="norm")(x + inputs)))


def embedded() -> Any:
    return keras.Sequential([keras.Input((3,), dtype="int32"), layers.Embedding(5, WIDTH, name="table"),
                             layers.Flatten(), dense("head", 1, 1.0)])


def convolution() -> Any:
    return keras.Sequential([keras.Input((4, 4, 1)), layers.Conv2D(2, 3, name="conv"), layers.BatchNormalization(),
                             layers.ReLU(), layers.Flatten(), dense("head", 1, 1.0)])


def tokens() -> Batch:
    return np.arange(12, dtype=np.int32).reshape(ROWS, 3) % 5, np.ones((ROWS, 1), np.float32)


def varied(*shape: int) -> Callable[[], Batch]:
    def make() -> Batch:
        draw = np.random.default_rng(0)
        return draw.standard_normal(shape).astype(np.float32), draw.standard_normal((shape[0], 1)).astype(np.float32)

    return make


ABOVE_RANGE = "values above 65504, the largest"
SCALES = [
    Fault("dense", chain(lambda: dense("d1"), lambda: dense("head", 1, 1.0)), filled(1.0), "", None, "scale", EVERY,
          dtype="float16", scale=2.0**24, words=ABOVE_RANGE),
    Fault("two layers", plain, filled(1.0), "", None, "scale", EVERY, dtype="float16", scale=2.0**20,
          words=ABOVE_RANGE),
    Fault("far too high", plain, varied(ROWS, WIDTH), "", None, "scale", EVERY, dtype="float16", scale=2.0**60),
    Fault("one power too high", chain(lambda: dense("head", 1, 1.0)), filled(1.0, label=1.0), "", None, "scale", EVERY,
          dtype="float16", scale=2.0**18, words=ABOVE_RANGE),
    Fault("LSTM", recurrent(), varied(ROWS, 3, 2), "", None, "scale", EVERY, dtype="float16", scale=2.0**30),
    Fault("GRU", recurrent(layers.GRU), varied(ROWS, 3, 2), "", None, "scale", EVERY, dtype="float16", scale=2.0**30),
    Fault("SimpleRNN", recurrent(layers.SimpleRNN), varied(ROWS, 3, 2), "", None, "scale", EVERY, dtype="float16",
          scale=2.0**30),
    Fault("convolution", convolution, varied(ROWS, 4, 4, 1), "", None, "scale", EVERY, dtype="float16", scale=2.0**26),
    Fault("attention", attention, varied(ROWS, 3, WIDTH), "", None, "scale", EVERY, dtype="float16", scale=2.0**28),
    Fault("embedding", embedded, tokens, "", None, "scale", EVERY, dtype="float16", scale=2.0**26),
    Fault("cells of ones", cells(cell_dense(0.5), cell_dense(1.0, 1)), filled(1.0), "", None, "scale", EVERY,
          dtype="float16", scale=2.0**24, words=ABOVE_RANGE),
    Fault("bfloat16", plain, filled(1.0, label=2.0**12), "", None, "scale", EVERY, HALVES[1:], scale=2.0**127,
          loss="mse"),
]


# ---- learning rates -------------------------------------------------------------------------------------------------
def deep() -> Any:
    return keras.Sequential([keras.Input((WIDTH,)), dense("d1", 8, 0.5), dense("d2", 8, 0.5), dense("head", 1, 0.5)])


RATES = [
    Fault("SGD that explodes", deep, filled(1.0, label=1.0), "forward", None, "rate", EVERY, loss="mse", rate=1.0,
          scale=1.0, steps=40, words="lower the learning rate"),
    Fault("SGD that explodes in one layer", chain(lambda: dense("head", 1, 0.5)), filled(2.0, label=1.0), "forward",
          "head", "rate", EVERY, loss="mse", rate=0.5, scale=1.0, steps=60, words="lower the learning rate"),
    Fault("SGD that explodes in bfloat16", deep, filled(1.0, label=1.0), "", None, "rate", ("O0", "O2"), HALVES[1:],
          loss="mse", rate=1.0, scale=1.0, steps=40, words="lower the learning rate"),
]

WITHIN = [dataclasses.replace(fault, fused=True) for fault in WITHIN]
FAULTS = [*WITHIN, *ABOVE, *INPUTS, *LOSSES, *DERIVATIVES, *SCALES, *RATES]
