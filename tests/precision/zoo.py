"""The network zoo: Keras networks of every kind, and the page that says what each level makes of them."""

from __future__ import annotations

import dataclasses
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

import mixtrain
from mixtrain import amp, backend
from tests.precision import zoo_more as more, zoo_networks as networks
from tests.precision.compiled_graph import (
    Operation,
    arithmetic_among,
    casts_among,
    dtypes_under,
    half_units,
    nodes_of,
)

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "network_zoo.md"
BATCH = 2

# What a column of the table means: the level and the half-precision dtype.
LEVELS = {
    "O0": ("O0", "float16"), "O1": ("O1", "float16"), "O2": ("O2", "float16"), "O2 bfloat16": ("O2", "bfloat16"),
    "O3": ("O3", "float16"),
}

# What each class of layer computes with, as its graph shows it.
KINDS: dict[str, tuple[str, ...]] = {
    "Conv2D": ("Conv2D",), "DepthwiseConv2D": ("DepthwiseConv2dNative",), "Dense": ("MatMul", "BatchMatMulV2"),
    "SeparableConv2D": ("DepthwiseConv2dNative", "Conv2D"), "EinsumDense": ("Einsum", "MatMul", "BatchMatMulV2"),
    "ReLU": ("Relu",), "Add": ("AddV2",), "Multiply": ("Mul",), "MaxPooling2D": ("MaxPool",),
    "BatchNormalization": ("FusedBatchNormV3", "Rsqrt", "SquaredDifference"), "Softmax": ("Softmax",),
    "LayerNormalization": ("Rsqrt", "SquaredDifference"), "GroupNormalization": ("Rsqrt", "SquaredDifference"),
    "RMSNormalization": ("Rsqrt",), "UnitNormalization": ("Mul",), "LSTMCell": ("MatMul", "Sigmoid", "Tanh"),
    "GRUCell": ("MatMul", "Sigmoid", "Tanh"), "SimpleRNNCell": ("MatMul", "Tanh"), "Gain": ("Mul",),
    "Mixer": ("MatMul", "BatchMatMulV2", "Tanh"), "Gate": ("Sigmoid", "Mul"),
    "TimeDistributed": ("MatMul",),
}


@dataclasses.dataclass(frozen=True)
class Entry:
    """One network of the zoo.

    Attributes:
        make: Returns the network, built.
        inputs: Structure of input shapes, without the batch.
        outputs: Structure of output shapes, without the batch.
        formats: What layers compute in at O0, O1, O2, O3, by path: "h" for half, "f" for float32.
        words: Inputs are integers below this; 0 for float inputs.
        large: Whether it is one of `keras.applications`.
        uncalled: Paths of layers that Keras computes without calling them.
    """

    make: Callable[[], Any]
    inputs: Any
    outputs: Any
    formats: dict[str, str]
    words: int = 0
    large: bool = False
    uncalled: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.make.__name__

    def batch(self, rows: int = BATCH) -> tuple[Any, Any]:
        """Return one batch of inputs and labels, the same ones every time."""
        rng = np.random.default_rng(0)

        def draw(shape: Any) -> np.ndarray:
            return rng.uniform(0, 1, (rows, *shape.sizes)).astype(np.float32)

        def count(shape: Any) -> np.ndarray:
            return rng.integers(1, self.words, (rows, *shape.sizes)).astype(np.int32)

        inputs = keras.tree.map_structure(count if self.words else draw, self.inputs)
        return inputs, keras.tree.map_structure(draw, self.outputs)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """A shape that `keras.tree` does not look into."""

    sizes: tuple[int, ...]


def _s(*sizes: int) -> Sizes:
    return Sizes(sizes)


_IMAGE, _CLASSES = _s(8, 8, 3), _s(5)
_SIDE = {"mobile_net_v2": 32, "resnet50_v2": 32, "efficient_net_v2_b0": 32, "conv_next_tiny": 32}

ZOO = [
    Entry(networks.sequential, _IMAGE, _CLASSES, {
        "conv": "fhhh", "depthwise": "fhhh", "separable": "fhhh", "norm": "ffff", "relu": "ffhh", "pool": "ffhh",
        "drop": "ffhh", "head": "fhhh", "softmax": "ffff",
    }),
    Entry(networks.augmentation, _IMAGE, _CLASSES, {"rescale": "ffhh", "conv": "fhhh", "head": "fhhh"}),
    Entry(networks.several_ends, [_s(6), _s(4)], {"mean": _s(1), "label": _CLASSES}, {
        "left": "fhhh", "right": "fhhh", "join": "ffhh", "mean": "fhhh", "label": "ffff",
    }),
    Entry(networks.subclassed, _s(6), _CLASSES, {"": "ffhh", "first": "fhhh", "inner": "fhhh", "norm": "ffff"}),
    Entry(networks.nested, _s(6), _CLASSES, {
        "outer": "ffhh", "outer/inner": "ffhh", "outer/inner/fc": "fhhh", "outer/inner/norm": "ffff", "head": "fhhh",
    }),
    Entry(networks.shared, [_s(6), _s(6)], _CLASSES, {"twice": "fhhh", "tower": "ffhh", "tower/fc": "fhhh"}),
    Entry(networks.recurrent, _s(4), _CLASSES, {
        "words": "ffhh", "lstm": "fhhh", "lstm/lstm_cell": "fhhh", "stack": "fhhh", "simple": "fhhh", "head": "fhhh",
    }, words=7),
    Entry(networks.bidirectional, _s(4, 6), _CLASSES, {
        "both": "ffhh", "both/forward_gru": "fhhh", "both/backward_gru": "fhhh", "each": "fhhh", "each/fc": "fhhh",
        "head": "fhhh",
    }),
    Entry(networks.attention, _s(4), _CLASSES, {
        "attention": "ffhh", "attention/query": "fhhh", "attention/attention_output": "fhhh", "grouped": "ffhh",
        "grouped/key": "fhhh", "norm": "ffff", "mixed": "fhhh", "words": "ffhh", "head": "fhhh",
    }, words=7, uncalled=frozenset({"attention/softmax", "grouped/softmax_1", "grouped/dropout_1"})),
    Entry(networks.normalizations, _s(4, 6), _CLASSES, {
        "features": "ffff", "batch": "ffff", "layer": "ffff", "group": "ffff", "rms": "ffff", "unit": "ffff",
        "spectral": "ffff", "spectral/fc": "fhhh", "head": "fhhh",
    }),
    Entry(networks.custom, _s(6), _CLASSES, {
        "gain": "ffhh", "mixer": "ffhh", "block": "ffhh", "block/fc": "fhhh", "block/gate": "ffhh", "head": "fhhh",
    }),
    Entry(networks.operations, [_s(3, 4), _s(4, 5)], _CLASSES, {"fc": "fhhh"}),
    Entry(more.convolutions, _s(6, 4), _CLASSES, {
        "line": "fhhh", "separable": "fhhh", "depthwise": "fhhh", "longer": "fhhh", "wider": "fhhh", "solid": "fhhh",
        "film": "fhhh", "leaky": "ffhh", "slope": "ffhh",
    }),
    Entry(more.masked, _s(4, 6), _CLASSES, {
        "gaps": "ffhh", "norm": "ffff", "both": "ffhh", "both/forward_lstm": "fhhh", "gru": "fhhh",
    }),
    Entry(more.plain_attention, _s(4, 6), _CLASSES, {
        "scaled": "ffhh", "value": "fhhh", "added": "ffhh", "dot": "fhhh",
    }),
    Entry(more.image_normalizations, _s(6, 6, 3), _CLASSES, {
        "conv": "fhhh", "fused": "ffff", "by_row": "ffff", "instance": "ffff", "layer": "ffff",
    }),
    Entry(more.regularized, _s(6), _CLASSES, {
        "holder": "ffhh", "holder/fc": "fhhh", "holder/inner": "ffhh", "holder/inner/deep": "fhhh",
        "holder/activity": "ffhh",
    }),
    Entry(more.raw_variables, _s(6), _CLASSES, {"raw": "ffhh", "relu": "ffhh", "head": "fhhh"}),
    *(
        Entry(make, _s(_SIDE[make.__name__], _SIDE[make.__name__], 3), _CLASSES, formats, large=True)
        for make, formats in (
            (networks.mobile_net_v2, {"Conv1": "fhhh", "bn_Conv1": "ffff", "predictions": "ffff"}),
            (networks.resnet50_v2, {"conv1_conv": "fhhh", "post_bn": "ffff", "predictions": "ffff"}),
            (networks.efficient_net_v2_b0, {"stem_conv": "fhhh", "stem_bn": "ffff", "predictions": "ffff"}),
            (networks.conv_next_tiny, {"convnext_tiny_head_dense": "ffff"}),
        )
    ),
]


def planned(network: Any, column: str) -> amp.PrecisionPlan:
    """Return a network's plan for a column of the table."""
    level, half = LEVELS[column]
    return amp.plan_precision(network, level, cast_model_type=half)


def loss(outputs: Any, label: Any) -> Any:
    """Return the sum of the mean squared errors of all outputs."""
    pairs = zip(keras.tree.flatten(outputs), keras.tree.flatten(label), strict=True)
    return sum(keras.ops.mean(keras.ops.square(result - expected)) for result, expected in pairs)


def model_of(network: Any, column: str) -> mixtrain.Model:
    """Return the Model that trains a network in one column's precision."""
    level, half = LEVELS[column]
    manager = mixtrain.FixedLossScaleManager(8.0) if level != "O0" and half == "float16" else None
    optimizer = keras.optimizers.SGD(1e-3)
    return mixtrain.Model(
        network, loss, optimizer, amp_level=level, cast_model_type=half, loss_scale_manager=manager,
        explain_overflow=False,  # No step is tried in float32.
    )


def forward_nodes(network: Any, inputs: Any) -> list[Any]:
    """Return the nodes of a network's forward pass in training, traced under the plan in force.

    They are those of a device with half kernels; others get float32 ones, fed with half values.
    """
    tensors = keras.tree.map_structure(backend.to_tensor, inputs)
    with half_units():
        return nodes_of(lambda data: network(data, training=True), tensors)


def disagreements(plan: amp.PrecisionPlan, nodes: list[Any]) -> tuple[int, list[str]]:
    """Return how many rows a traced forward pass could be held against, and those that it contradicts, in words."""
    result: list[Operation] = arithmetic_among(nodes)
    checked, wrong = 0, []
    for row in plan.rows:
        dtypes = dtypes_under(result, row.path.split("/")[-1], *KINDS[row.layer]) if row.layer in KINDS else set()
        checked += bool(dtypes)
        if dtypes and dtypes != {row.compute_dtype.name}:
            wrong.append(f"{row.path}: the table says {row.compute_dtype}, computed {sorted(dtypes)}")
    return checked, wrong


def line(name: str, column: str, plan: amp.PrecisionPlan, nodes: list[Any]) -> str:
    """Return one line of the page."""
    half = sum(row.compute_dtype == plan.half for row in plan.rows)
    verdict = "no" if disagreements(plan, nodes)[1] else "ok"
    return f"| {name} | {column} | {verdict} | {half} | {len(plan.rows) - half} | {casts_among(nodes)} |"


def lines_of(entry: Entry) -> list[str]:
    """Return the lines of one network."""
    keras.utils.clear_session(free_memory=False)
    network, result = entry.make(), []
    for column in LEVELS:
        applied = amp.apply_plan(network, planned(network, column))
        result.append(line(entry.name, column, applied.plan, forward_nodes(network, entry.batch()[0])))
        applied.undo()
    return result


def page() -> str:
    """Return the page."""
    table = [text for entry in ZOO for text in lines_of(entry)]
    return "\n".join([HEAD, *table, ""])


HEAD = """# The network zoo

How each level plans Keras networks of many kinds. `python -m tests.precision.zoo --write` generates this page.
`tests/precision/test_zoo.py` keeps it up to date: it trains each network for one step at each level, compares the plan
with the dtypes of each layer's inputs and outputs and with the operations of the compiled graph, undoes the plan, and
checks that Keras's own `fit` still runs.

- **ok**: every layer computes in the dtype of the plan, wherever the forward pass of a training step shows it. The step
  is traced for a device that multiplies half-precision numbers.
- **half layers, float32 layers**: rows of the plan, including the network itself and layers inside composite layers.
- **casts**: casts between floating-point dtypes in that forward pass, including those of parameters. The body of a loop
  counts once. These are the counts with Keras 3.15; other versions place some casts elsewhere.

| network | level | ok | half layers | float32 layers | casts |
|---|---|---|---|---|---|"""


if __name__ == "__main__":
    text = page()
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
