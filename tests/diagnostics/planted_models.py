"""A second set of planted faults, in networks of public examples: what was expected was computed before they ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

import mixtrain
from tests.backends import ON_TENSORFLOW
from tests.diagnostics import planted_networks as nets
from tests.diagnostics.planted import (
    ALL,
    EVERY,
    HALVES,
    HAS_IT,
    ROWS,
    WIDTH,
    Adds,
    Batch,
    Fault,
    Inside,
    cell_dense,
    cells,
    chain,
    deep,
    dense,
    filled,
    head,
    inside,
    label,
    plain,
    planted,
    recurrent,
    tokens,
    varied,
    widened,
)
from tests.diagnostics.planted_networks import conv, flat, pool, sequence, weak

layers, ops = keras.layers, keras.ops
HALF, BRAIN = "float16", HALVES[1:]
KEEP = "keep layer inside in float32"
ON_THE_WAY = "an overflow on the way"


def d1() -> Any:
    return dense("d1")


def row(values: float | list[float], *, base: float = 1.0, label: float = 0.0) -> Callable[[], Batch]:
    """Return a function that makes a batch of one number, of which one row has others."""
    def make() -> Batch:
        x, y = filled(base, label=label)()
        x[1] = values
        return x, y

    return make


# ---- inside a layer -------------------------------------------------------------------------------------------------
def within(name: str, function: Callable[[Any], Any], value: float, largest: float, nan: int = 0, **more: Any) -> Fault:
    """Return a fault of every value of a layer of one's own between two dense ones."""
    more = {"fused": True, "words": KEEP, **more}
    return Fault(name, inside(function), filled(value), "forward", "inside", "to_float", count=16, nan=nan, size=16,
                 dtype=more.pop("dtype", HALF), largest=largest, keep=("inside",), **more)


def rounding(name: str, function: Callable[[Any], Any], value: float, largest: float) -> Fault:
    return within(name, function, value, largest, halves=BRAIN, dtype="bfloat16", without=ON_THE_WAY)


WITHIN = [
    within("softplus by hand", lambda x: ops.log(1 + ops.exp(x)), 12.0, 12.0),
    within("logarithm of cosh", lambda x: ops.log(ops.cosh(x)), 12.0, 11.30686),
    within("geometric mean", lambda x: x * 0 + ops.prod(x, axis=-1, keepdims=True) ** 0.25, 32.0, 32.0),
    within("tanh by hand", nets.tanh, 12.0, 1.0, 16),
    within("softmax at a low temperature", lambda x: ops.softmax(x / 1e-4, axis=-1), 10.0, 0.25, 16),
    within("standardized by hand", nets.by_hand, 3.0, 0.0, 16, fused=False, without=ON_THE_WAY),
    within("distances of rows", nets.distances, 200.0, 0.0, 16),
    within("factorization machine", nets.factorization, 200.0, 117.1875, 16),
    within("shares of squares", nets.shares, 300.0, 0.25, 16),
    within("mask of -1e9 times 0", nets.causal, 1.0, 1.0, 16),
    rounding("(x + 100) - 100", lambda x: ops.log((x + 100) - 100), 0.125, 2.0794415),
    rounding("1 - cos(x)", lambda x: 1 / (1 - ops.cos(x)), 2.0**-5, 2048.17),
    Fault("logarithm of a softmax", inside(lambda x: ops.log(ops.softmax(x, axis=-1))),
          planted(-20.0, (1, 1), base=0.0), "forward", "inside", "to_float", count=1, nan=0, size=16, dtype=HALF,
          largest=21.0986, words=KEEP, without=ON_THE_WAY, keep=("inside",), fused=True),
    Fault("logarithm of what half makes 0", inside(ops.log), planted(1e-9, (1, 2)), "forward", "inside", "to_float",
          count=1, nan=0, size=16, dtype=HALF, largest=20.7233, without=ON_THE_WAY),
    Fault("adapter", chain(d1, lambda: nets.LowRank(name="adapter"), head), filled(1.0), "forward", "adapter",
          "to_float", count=16, nan=0, size=16, dtype=HALF, largest=9.0, keep=("adapter",), fused=True,
          words="keep layer adapter in float32"),
    Fault("scale of logits", chain(d1, lambda: nets.Weighted(ops.exp, 12.0, name="scale"), head), filled(0.0625),
          "forward", "scale", "to_float", count=16, nan=0, size=16, dtype=HALF, largest=10172.174, keep=("scale",),
          fused=True, words="keep layer scale in float32"),
    Fault("x**8 in a cell", cells(cell_dense(0.25), nets.Pow8, cell_dense(2.0**-8, 1)), filled(8.0), "forward", "1",
          "to_float", count=16, nan=0, size=16, dtype=HALF, largest=8.0, keep=("1",), fused=True,
          words="keep layer 1 in float32"),
    Fault("attention by hand", sequence((3, WIDTH), lambda: Inside(nets.attend, name="attend"),
                                        layers.GlobalAveragePooling1D, head), filled(200.0, 2, 3, WIDTH), "forward",
          "attend", "to_float", count=24, nan=24, size=24, dtype=HALF, largest=200.0, keep=("attend",), fused=True,
          words="keep layer attend in float32"),
    Fault("scores of an attention layer", nets.attention_of(200.0), filled(1.0, ROWS, 3, WIDTH), "forward",
          "attention", "to_float", count=48, nan=48, size=48, dtype=HALF, largest=40000.0, keep=("attention",),
          scale=1.0, fused=True, words="keep layer attention in float32"),
    Fault("root of a long mean of squares", widened(nets.long_root, 4096), filled(32.0, 2, 4096), "forward", "inside",
          "to_float", count=8192, nan=0, size=8192, dtype=HALF, largest=32.0, words=KEEP, keep=("inside",), fused=True),
    Fault("separable convolution", sequence((4, 4, 2), lambda: layers.SeparableConv2D(
        2, 3, use_bias=False, depthwise_initializer=nets.constant(2.0**14),
        pointwise_initializer=nets.constant(2.0**-12), name="separable"), pool, head), filled(1.0, ROWS, 4, 4, 2),
          "forward", "separable", "to_float", EVERY, count=32, nan=0, size=32, dtype=HALF, largest=72.0,
          keep=("separable",), fused=True, words="keep layer separable in float32"),
    Fault("weight above the range", chain(d1, lambda: dense("d2", weight=1e5), lambda: head(2.0**-12)), filled(0.125),
          "forward", "d2", "to_float", EVERY, count=16, nan=0, size=16, dtype=HALF, largest=5e4, keep=("d2",),
          words="keep layer d2 in float32"),
]


# ---- outputs above the range ----------------------------------------------------------------------------------------
def above(name: str, network: Callable[[], Any], batch: Any, layer: str, count: int | None, largest: float,
          keep: tuple[str, ...], **more: Any) -> Fault:
    more = {"size": count, "levels": ("O2", "O3"), "nan": 0, "words": "values above 65504, the largest", **more}
    return Fault(name, network, batch, "forward", layer, "to_float", count=count, dtype=HALF, largest=largest,
                 keep=keep, **more)


ABOVE = [
    above("digits", sequence((8, 8, 1), lambda: conv("conv1", 2, 3, 1.0, activation="relu"), layers.MaxPooling2D,
                             lambda: conv("conv2", 2, 3, 2.0**10, activation="relu"), flat, weak(14)),
          filled(1.0, ROWS, 8, 8, 1), "conv2", 8, 165888.0, ("conv2", "flatten", "head"), levels=EVERY),
    above("depthwise", sequence((4, 4, 2), lambda: layers.DepthwiseConv2D(
        3, use_bias=False, depthwise_initializer=nets.constant(2.0**13), name="depthwise"),
        lambda: layers.ReLU(name="relu"), pool, weak(14)), filled(1.0, ROWS, 4, 4, 2), "depthwise", 32, 73728.0,
          ("depthwise", "relu", "pool", "head"), levels=EVERY),
    above("residual block", nets.residual_network, filled(30000.0, ROWS, 4, 4, 2), "add", 128, 70000.0,
          ("add", "out", "pool", "head")),
    above("transposed convolution", sequence((2, 2, 4), lambda: conv("up", 2, 2, 2.0**15, layers.Conv2DTranspose,
                                                                     strides=2),
                                             lambda: conv("down", 1, 1, 2.0**-16), pool, head),
          filled(1.0, ROWS, 2, 2, 4), "up", 128, 131072.0, ("up", "down"), levels=EVERY),
    above("signal", sequence((256, 1), lambda: conv("conv", 2, 64, 2.0**11, layers.Conv1D, strides=64),
                             lambda: layers.GlobalMaxPooling1D(name="pool"), weak(14)), filled(1.0, ROWS, 256, 1),
          "conv", 32, 131072.0, ("conv", "pool", "head"), levels=EVERY),
    above("volume", sequence((2, 2, 2, 1), lambda: conv("conv", 2, 2, 2.0**14, layers.Conv3D), flat, weak(14)),
          filled(1.0, ROWS, 2, 2, 2, 1), "conv", 8, 131072.0, ("conv", "flatten", "head"), levels=EVERY),
    above("state that explodes", nets.looped(lambda cell: cell), filled(1.0, ROWS, 5, 2), "rec", 16, 1082401.0,
          ("rec", "head"), levels=EVERY),
    above("one direction that explodes", nets.looped(lambda cell: layers.Bidirectional(cell, name="both")),
          nets.early(ROWS, 5, 2), "both/forward_rec", 16, 32.0**4, ("both/forward_rec", "head"), levels=EVERY,
          fused=True),
    above("LSTM of ReLU", recurrent(activation="relu", kernel_initializer=nets.constant(2.0**14),
                                    recurrent_initializer="zeros"), filled(1.0, ROWS, 3, 2), "rec", 16, 98304.0,
          ("rec", "head"), nan=16, words="keep layer rec in float32", levels=EVERY),
    above("each time", sequence((3, WIDTH), lambda: layers.TimeDistributed(dense("inner", weight=2.0**15), name="each"),
                                lambda: layers.GlobalMaxPooling1D(name="pool"), weak(14)), filled(1.0, ROWS, 3, WIDTH),
          "each/inner", 16, 131072.0, ("each/inner", "pool", "head")),
    above("shared layer", nets.shared_twice, filled(1.0), "shared", 16, 65536.0, ("shared", "head"), levels=EVERY),
    above("two towers", nets.two_towers, lambda: ({name: np.full((ROWS, 16), 128, np.float32) for name in
                                                   ("user", "item")}, np.zeros((ROWS, 1), np.float32)), "dot", 4,
          2.0**18, ("dot", "head")),
    above("two heads", nets.two_heads(2.0**15), lambda: (filled(1.0)()[0], [np.zeros((ROWS, 1), np.float32)] * 2),
          "second", 4, 131072.0, ("second",), levels=EVERY, loss=["mae", "mae"]),
    above("exponential activation", chain(d1, lambda: dense("d2", activation="exponential"), weak(14)), filled(12.0),
          "d2", 16, 162754.79, ("d2", "head"), levels=EVERY),
    above("rescaled", chain(lambda: layers.Rescaling(1000.0, name="rescale"), lambda: dense("d1", weight=2.0**-12),
                            head), filled(255.0), "rescale", 16, 255000.0, ("rescale", "d1")),
    above("dropout", chain(d1, lambda: layers.Dropout(0.5, seed=1, name="drop"), weak(14)), filled(40000.0), "drop",
          None, 80000.0, ("drop", "head"), size=16),
    above("three deep", nets.three_deep, filled(1.0), "outer/inner/deep", 16, 131072.0, ("outer/inner/deep", "head"),
          levels=EVERY),
    above("list of blocks", nets.Blocks, filled(1.0), "b1/fc1", 16, 262144.0, ("b1",) if ON_TENSORFLOW else
          ("b1/fc1", "b1/fc2")),  # TensorFlow adds no float32 to half.
    above("list of blocks in float32", nets.Blocks, filled(1.0), "b1/fc1", 16, 262144.0, ("b1/fc1", "b1/fc2"),
          levels=("O1",)),
    above("large embedding", sequence((3,), lambda: layers.Embedding(5, WIDTH, embeddings_initializer=nets.constant(
        1e5), name="table"), flat, weak(14), dtype="int32"), tokens, "table", 48, 1e5, ("table", "flatten", "head")),
    above("large embedding that is read", sequence((3,), lambda: layers.Embedding(
        5, WIDTH, embeddings_initializer=nets.constant(1e5), name="table"), flat,
        lambda: dense("d1", weight=2.0**-8), head, dtype="int32"), tokens, "d1", 16, 4687.5, ("d1",), levels=("O1",),
          words="keep layer d1 in float32"),
    above("powers as features", inside(lambda x: ops.concatenate([x, x * x, x * x * x], axis=-1)), filled(64.0),
          "inside", 16, 2.0**18, ("inside", "head"), size=48),
    above("cumulative product", chain(d1, lambda: Inside(lambda x: ops.cumprod(x, axis=-1), name="inside"), weak(18)),
          filled(64.0), "inside", 8, 2.0**24, ("inside", "head"), size=16),
    above("reciprocal", chain(d1, lambda: Inside(lambda x: 1 / x, name="inside"), weak(16)), filled(1e-5), "inside",
          16, 1e5, ("inside", "head")),
    above("gate", nets.gated, filled(300.0), "product", 16, 90000.0, ("product", "head")),
    above("convolution in a cell", nets.CellConvolution, filled(1.0, ROWS, 1, 4, 4), "conv1", 32, 147456.0,
          ("conv1", "relu", "flatten", "fc1"), levels=EVERY),
    above("residual in a cell", cells(nets.CellResidual, cell_dense(2.0**-14, 1)), filled(40000.0), "0", 16, 80000.0,
          ("0", "1")),
    above("Keras layer in a cell", nets.MixedCell, filled(1.0), "middle", 16, 131072.0, ("middle", "out"),
          levels=EVERY),
    above("float16 by to_float, far", nets.half_dense(2.0**15), filled(1.0), "d1", 16, 131072.0, ("d1",),
          levels=("O0",)),
    above("two layers, the first", chain(d1, lambda: dense("d2", weight=2.0**15), lambda: dense("d3", weight=2.0**-14),
                                         lambda: dense("d4", weight=2.0**15), weak(14)), filled(1.0), "d2", 16, 2.0**17,
          ("d2", "d3", "d4", "head"), levels=EVERY),
    Fault("a layer, then what another adds", chain(
        d1, lambda: Inside(lambda x: x * x / 4096, name="inside"),
        lambda: Adds(lambda x: ops.log(ops.mean(ops.exp(x / 4))), name="adds"), head), filled(512.0), "forward",
          "inside", "to_float", count=16, nan=0, size=16, dtype=HALF, largest=64.0, keep=("inside", "adds"), fused=True,
          words=KEEP),
    Fault("a layer, then a root at 0", chain(
        d1, lambda: Inside(lambda x: x * x / 4096, name="inside"), lambda: Inside(ops.sqrt, name="root"), head),
          planted(0.0, (1, 2), base=512.0), "forward", "inside", "none", count=15, nan=0, size=16, dtype=HALF,
          largest=64.0, keep=("inside",), words=KEEP, fused=True),
    Fault("nan that is filled in, and a large layer", chain(
        lambda: Inside(lambda x: ops.where(ops.isnan(x), ops.zeros_like(x), x), name="fill"),
        lambda: dense("d2", weight=2.0**15), lambda: dense("d3", weight=2.0**-14), head), planted(np.nan, (1, 2)),
          "forward", "d2", "to_float", EVERY, count=16, nan=0, size=16, dtype=HALF, largest=2.0**17, keep=("d2", "d3")),
    Fault("small weights that grew, and large data", chain(
        lambda: Inside(lambda x: x * x / 4096, name="inside"), weak(10)), filled(64.0, label=1.0), "forward", "inside",
          "to_float", count=16, nan=0, size=16, dtype=HALF, largest=64.0, keep=("inside",), loss="mse", rate=0.1,
          scale=1.0, steps=10, last=filled(512.0), words=KEEP, without="learning rate", fused=True),
]


# ---- losses ---------------------------------------------------------------------------------------------------------
def weights(value: float) -> Callable[[], Batch]:
    """Return a function that makes a batch whose second row has this sample weight."""
    return lambda: (*filled(1.0)(), np.array([1, value, 1, 1], np.float32))


def adds_loss(name: str, network: Callable[[], Any], batch: Any, layer: str, largest: float, **more: Any) -> Fault:
    return Fault(name, network, batch, "loss", layer, "to_float", count=1, nan=0, size=1, dtype=HALF, largest=largest,
                 keep=(layer,), words=f"the loss that layer {layer} adds", **more)


def of_loss(name: str, loss: Any, batch: Any, network: Callable[[], Any] = plain, **more: Any) -> Fault:
    """Return a fault of a loss function that float32 has too."""
    return Fault(name, network, batch, "loss", None, "none", ("O0", "O2"), HALVES, count=1, size=1, loss=loss,
                 words="look at the loss function and the labels", **more)


def into_head(name: str, loss: Any, batch: Any, count: int, largest: float, layer: str = "head", **more: Any) -> Fault:
    """Return a fault of a gradient that enters the last layer above the range of half."""
    network = more.pop("network", chain(d1, head))
    return Fault(name, network, batch, "gradient", layer, "to_float", EVERY, count=count, nan=0, size=4, dtype=HALF,
                 largest=largest, keep=(layer,), words=f"no scale helps: keep layer {layer} in float32", loss=loss,
                 **more)


SAMPLE_WEIGHT = {"settings": lambda: {"sample_weight": True}}
LOSSES = [
    adds_loss("variational", nets.variational, filled(1.0), "sampling", 81371.4, fused=True),
    adds_loss("L1 of activities", chain(d1, lambda: dense("d2", activity_regularizer=keras.regularizers.L1(1.0)), head),
              filled(8192.0), "d2", 32768.0),
    adds_loss("layer that regularizes activities", chain(
        d1, lambda: layers.ActivityRegularization(l2=0.5, name="reg"), head), filled(100.0), "reg", 20000.0),
    Fault("regularizer of weights", chain(lambda: dense("d1", kernel_regularizer=nets.barrier), head), filled(1.0),
          "loss", "d1", "none", ("O0", "O1", "O2"), HALVES, count=1, nan=0, size=1,
          words="the loss that layer d1 adds"),
    Fault("cross entropy by hand", chain(d1, lambda: dense("head", 1, 0.25, activation="sigmoid")), filled(12.0),
          "loss", None, "to_float", EVERY, count=1, nan=0, size=1, loss=nets.entropy, keep=("head",), fused=True,
          words="keep layer head in float32"),
    Fault("logarithm of a class", chain(d1, lambda: layers.Softmax(name="probabilities")),
          row([0, -20, 0, 0], base=0.0), "loss", None, "to_float", ("O3",), count=1, nan=0, size=1,
          loss=nets.second_class, keep=("probabilities",),
          words="keep layer probabilities in float32", fused=True),
    of_loss("poisson of 0", nets.poisson, filled(0.0, label=1.0), nan=0),
    of_loss("divergence from 0", nets.divergence, filled(1.0), nan=1),
    of_loss("similarity to 0", nets.similarity, filled(0.0, label=1.0), nan=1),
    into_head("loss times 1e6", nets.times_1e6, filled(1.0), 4, 2e6),
    into_head("a large label", "mse", label(1e6), 1, 4e6),
    into_head("class weights", "mse", filled(1.0, label=1.0), 4, 3937500.0, fit={"class_weight": {0: 1.0, 1: 1e6}}),
    into_head("sample weights", "mae", weights(1e6), 1, 2e6, **SAMPLE_WEIGHT),
    into_head("loss weights", ["mae", "mae"], lambda: (filled(1.0)()[0], [np.zeros((ROWS, 1), np.float32)] * 2), 4, 2e6,
              "second", network=nets.two_heads(), settings=lambda: {"loss_weights": [1.0, 1e6]}),
    Fault("sum of many rows", chain(weak(14)), filled(60000.0), "parameter", "head", "to_float", EVERY, count=4,
          nan=0, size=4, dtype=HALF, largest=1.92e6, loss=nets.sum_of, keep=("head",),
          words="no scale helps: keep layer"),
]


# ---- gradients ------------------------------------------------------------------------------------------------------
def derivative(name: str, function: Callable[[Any], Any], batch: Any, count: int, nan: int, better: Any, *,
               fused: bool = False) -> Fault:
    return Fault(name, inside(function), batch, "gradient", "inside", "network", ALL, HALVES, count=count, nan=nan,
                 size=16, words=HAS_IT, cured=inside(better), fused=fused)


def ramps() -> Batch:
    x, y = filled(1.0, label=1.0)()
    x[:] = np.arange(WIDTH)
    x[1] = 2.0
    return x, y


GRADIENTS = [
    derivative("where over a root", lambda x: ops.where(x > 0, ops.sqrt(x), 0.0 * x), planted(0.0, (1, 2)), 1, 1,
               lambda x: ops.where(x > 0, ops.sqrt(ops.where(x > 0, x, 1.0)), 0.0 * x), fused=True),
    derivative("division by a norm or more",
               lambda x: x / ops.maximum(ops.sqrt(ops.sum(x * x, -1, keepdims=True)), 1e-3),
               row(0.0, label=1.0), 4, 4, lambda x: x / ops.sqrt(ops.maximum(ops.sum(x * x, -1, keepdims=True), 1e-3)),
               fused=True),
    derivative("sqrt(1 - x*x) at 1", lambda x: ops.sqrt(1 - x * x), planted(1.0, (1, 2), base=0.5), 1, 0,
               lambda x: ops.sqrt(1.125 - x * x)),
    derivative("power of a half at 0", lambda x: ops.power(x, 0.5), planted(0.0, (1, 2)), 1, 0,
               lambda x: ops.power(x + 0.125, 0.5)),
    derivative("deviation of equal values", nets.deviation, ramps, 4, 4, lambda x: nets.deviation(x, 0.125)),
    derivative("std of equal values", lambda x: x * 0 + ops.std(x, axis=-1, keepdims=True), ramps, 4, 4,
               lambda x: nets.deviation(x, 0.125)),
    derivative("norm of a row of zeros", lambda x: x + ops.norm(x, axis=-1, keepdims=True), row(0.0, label=1.0), 4, 4,
               lambda x: x + ops.sqrt(ops.sum(x * x, -1, keepdims=True) + 0.125)),
    Fault("root in a nested block", nets.root_in_block, planted(0.0, (1, 2)), "gradient", "block/root", "none", ALL,
          HALVES, count=1, nan=0, size=16, words=HAS_IT),
    Fault("root of a weight of 0", chain(d1, lambda: nets.Weighted(ops.sqrt, 0.0, name="scale"), head),
          filled(1.0, label=1.0), "parameter", "scale", "network", ALL, HALVES, count=4, nan=0, size=4, words=HAS_IT,
          cured=chain(d1, lambda: nets.Weighted(ops.sqrt, 0.125, name="scale"), head)),
    Fault("distance of equal rows", plain, row(0.0), "gradient", None, "none", ALL, HALVES, count=1, nan=1, size=4,
          loss=nets.distance, words="the loss function"),
    Fault("0/0 in a cell", cells(cell_dense(0.25), nets.CellUnit, cell_dense(2.0**-8, 1)), row(0.0), "forward", "1",
          "none", ("O0", "O1", "O2"), HALVES, count=4, nan=4, size=16, words="look at its weights and its inputs"),
    Fault("a row that is all masked", inside(lambda x: ops.softmax(ops.where(x > 0, x, -np.inf), axis=-1)), row(0.0),
          "forward", "inside", "none", ("O0", "O1", "O2"), HALVES, count=4, nan=4, size=16,
          words="look at its weights and its inputs"),
    Fault("0 to the power of -1", inside(lambda x: x**-1.0), planted(0.0, (1, 2)), "forward", "inside", "none",
          ("O0", "O2"), HALVES, count=1, nan=0, size=16, words="look at its weights and its inputs"),
    *(Fault(name, inside(function), filled(-12.0), "gradient", "d1", "to_float", count=16, nan=16, size=16, dtype=HALF,
            keep=("inside",), words=KEEP, fused=True)
      for name, function in (("swish by hand", nets.swish), ("sigmoid by hand", nets.sigmoid))),
    Fault("gradients that explode backward", chain(d1, lambda: dense("d2", weight=2.0**12),
                                                   lambda: dense("d3", weight=2.0**12), head), filled(2.0**-20),
          "gradient", "d1", "to_float", EVERY, count=16, nan=0, size=16, dtype=HALF, largest=2.0**21, keep=("d1", "d2"),
          words="no scale helps: keep layer d1 in float32, to_float(mixtrain.float32), and so d2"),
]


# ---- loss scales ----------------------------------------------------------------------------------------------------
def scaled(name: str, network: Callable[[], Any], batch: Any, scale: float, helps: float, kind: str = "", **more: Any
           ) -> Fault:
    return Fault(name, network, batch, kind, more.pop("layer", None), "scale", EVERY, dtype=HALF, scale=scale,
                 helps=helps, words=f"scale {helps:.10g} would do", **more)


def searched(name: str, network: Callable[[], Any], batch: Any, power: int) -> Fault:
    return Fault(name, network, batch, "", None, "scale", EVERY, dtype=HALF, scale=2.0**power)


def last() -> Any:
    return dense("head", 1, 1.0)


IN_HEAD = {"kind": "gradient", "layer": "head", "count": 4, "nan": 0, "size": 4}
SCALES = [
    scaled("one layer", chain(last), filled(1.0), 2.0**24, 2.0**15, **IN_HEAD, largest=2.0**22),
    scaled("only the weights' gradient", chain(last), filled(1.0), 2.0**17, 2.0**15,
           **{**IN_HEAD, "kind": "parameter"}, largest=2.0**17),
    scaled("factor 3", chain(last), filled(1.0), 3.0**15, 3.0**10, **IN_HEAD, largest=3.0**15 / 4,
           settings=lambda: {"loss_scale_manager": mixtrain.DynamicLossScaleManager(3.0**15, 3, 1000)}),
    scaled("constant scale", chain(last), filled(1.0), 2.0**24, 2.0**15, **IN_HEAD, largest=2.0**22,
           settings=lambda: {"loss_scale_manager": mixtrain.FixedLossScaleManager(2.0**24)}),
    scaled("through time", nets.looped(lambda cell: cell, weight=1.0, out=2.0**-8), filled(2.0**-14, ROWS, 5, 2),
           2.0**20, 32.0),
    scaled("positions of a convolution", sequence((4, 4, 1), lambda: conv("conv", 1, 3, 1.0), flat, last),
           filled(1.0, ROWS, 4, 4, 1), 2.0**20, 2.0**12, **IN_HEAD, largest=2.0**18),
    scaled("nan in labels that are left out", chain(last), label(np.nan), 2.0**24, 2.0**16, "gradient", layer="head",
           count=3, size=4, largest=2.0**22, loss=nets.known_labels),
    searched("both directions", sequence((3, 2), lambda: layers.Bidirectional(layers.LSTM(WIDTH)), head),
             varied(ROWS, 3, 2), 30),
    searched("stacked cells", sequence((3, 2), lambda: layers.RNN([layers.LSTMCell(3), layers.GRUCell(3)]), head),
             varied(ROWS, 3, 2), 30),
    searched("two recurrent layers", sequence((3, 2), lambda: layers.GRU(4, return_sequences=True),
                                              lambda: layers.LSTM(4), head), varied(ROWS, 3, 2), 30),
    searched("transformer", nets.transformer, lambda: (np.arange(24, dtype=np.int32).reshape(ROWS, 6) % 8,
                                                       np.ones((ROWS, 1), np.float32)), 24),
    searched("group normalization", sequence((4, 4, 4), lambda: layers.Conv2D(4, 3), lambda:
                                             layers.GroupNormalization(2), layers.PReLU, flat, head),
             varied(ROWS, 4, 4, 4), 28),
    searched("spectral normalization", sequence((4,), lambda: layers.SpectralNormalization(layers.Dense(4)), last),
             varied(ROWS, 4), 24),
    searched("cell with an LSTM", nets.CellRecurrent, varied(ROWS, 3, 2), 28),
    searched("cell with a convolution", lambda: nets.CellConvolution(0.25), varied(ROWS, 1, 4, 4), 30),
    searched("autoencoder", sequence((4,), lambda: layers.Dense(2, "tanh"), lambda: layers.Dense(4), last),
             varied(ROWS, 4), 24),
]


# ---- inputs ---------------------------------------------------------------------------------------------------------
def wrong_input(name: str, network: Callable[[], Any], batch: Any, count: int, size: int, nan: int = 0, column: int = 0,
                **more: Any) -> Fault:
    more = {"levels": ("O0", *EVERY), "halves": HALVES, "words": f"{count} of {size} values not finite", **more}
    return Fault(name, network, batch, "input", None, "data", column=column, count=count, nan=nan, size=size, **more)


def too_large(name: str, network: Callable[[], Any], batch: Any, count: int, size: int, largest: float, **more: Any
              ) -> Fault:
    more = {"levels": EVERY, **more}
    return wrong_input(name, network, batch, count, size, dtype=HALF, largest=largest, halves=(HALF,),
                       words=f"{count} of {size} values above 65504, the largest", **more)


def one_feature() -> Batch:
    x, y = filled(1.0)()
    x[:, 2] = -70000.0
    return x, y


def pixels() -> Batch:
    x, y = filled(1.0, ROWS, 4, 4, 1)()
    x[0, 1, 1], x[2, 3, 3] = np.inf, -np.inf
    return x, y


def towers() -> Batch:
    user, item = (np.ones((ROWS, 16), np.float32) for _ in range(2))
    item[1, 3] = np.nan
    return {"user": user, "item": item}, np.zeros((ROWS, 1), np.float32)


INPUTS = [
    too_large("one feature", plain, one_feature, 4, 16, 70000.0),
    too_large("rescaled too late", chain(lambda: layers.Rescaling(1e-5), d1, head), filled(1e5), 16, 16, 1e5,
              levels=("O2", "O3")),
    too_large("into a signal's convolution", sequence(
        (8, 1), lambda: conv("conv", 2, 2, 0.5, layers.Conv1D), flat, head), planted(-1e5, (1, 3, 0), ROWS, 8, 1), 1,
              32, 1e5),
    too_large("into two directions", sequence((3, 2), lambda: layers.Bidirectional(layers.GRU(2)), head),
              planted(1e6, (1, 2, 0), ROWS, 3, 2), 1, 24, 1e6),
    too_large("into attention", nets.attention_of(1.0), planted(1e6, (1, 2, 0), ROWS, 3, WIDTH), 1, 48, 1e6),
    too_large("into two layers", nets.gated, planted(-1e5, (1, 2)), 1, 16, 1e5),
    too_large("into a cell", cells(cell_dense(0.25), cell_dense(0.25, 1)), planted(-1e5, (1, 2)), 1, 16, 1e5),
    too_large("into float16 by to_float", nets.half_dense(1.0), planted(1e6, (1, 2)), 1, 16, 1e6, levels=("O0",)),
    wrong_input("inf and -inf in an image", sequence((4, 4, 1), lambda: conv("conv", 1, 3, 1.0), flat, head), pixels, 2,
                64),
    wrong_input("all nan", plain, filled(np.nan), 16, 16, 16),
    wrong_input("inf in the labels", plain, label(np.inf), 1, 4, 0, 1, levels=("O0", "O2"), loss="mse"),
    wrong_input("nan in one of two inputs", nets.two_towers, towers, 1, 64, 1, levels=("O0", "O2")),
    wrong_input("nan in sample weights", plain, weights(np.nan), 1, 4, 1, 2, **SAMPLE_WEIGHT, levels=("O0", "O2")),
    wrong_input("inf in sample weights", plain, weights(np.inf), 1, 4, 0, 2, **SAMPLE_WEIGHT, levels=("O0", "O2")),
    Fault("nan in the data, and a large layer", chain(lambda: dense("d2", weight=2.0**15), weak(14)),
          planted(np.nan, (1, 2)), "input", None, "none", EVERY, column=0, count=1, nan=1, size=16,
          words="1 of 16 values not finite (1 NaN)"),
]


# ---- learning rates -------------------------------------------------------------------------------------------------
def exploding(name: str, network: Callable[[], Any], batch: Any, rate: float, steps: int, **more: Any) -> Fault:
    return Fault(name, network, batch, "", None, "rate", **{
        "levels": EVERY, "loss": "mse", "rate": rate, "scale": 1.0, "steps": steps, "words": "lower the learning rate",
        **more})


RATES = [
    exploding("convolution that explodes", sequence((4, 4, 1), lambda: conv("conv1", 4, 3, 0.5), flat, last),
              filled(1.0, ROWS, 4, 4, 1, label=1.0), 0.5, 30),
    exploding("cells that explode", cells(cell_dense(0.5), cell_dense(0.5), cell_dense(0.5, 1)),
              filled(1.0, label=1.0), 1.0, 40),
    exploding("float32 that explodes", deep, filled(1.0, label=1.0), 1.0, 40, levels=("O0",)),
    exploding("embedding that explodes", sequence((3,), lambda: layers.Embedding(5, WIDTH), flat, last, dtype="int32"),
              tokens, 2.0, 60),
    exploding("blocks that explode", lambda: keras.Sequential([
        keras.Input((WIDTH,)), nets.Block(0.5, 0.5, name="b0"), nets.Block(0.5, 0.5, name="b1"), last()]),
        filled(1.0, label=1.0), 1.0, 40),
]

MODEL_FAULTS = [*WITHIN, *ABOVE, *LOSSES, *GRADIENTS, *SCALES, *INPUTS, *RATES]
