"""suggest_rules on networks with planted layers: it names them and no others, and none of them can be left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model
from mixtrain.network.walk import tree_of
from tests.backends import quick_only_some
from tests.diagnostics import planted_networks as nets
from tests.diagnostics.planted import ROWS, WIDTH, Inside, cell_dense, cells, chain, dense, head, inside
from tests.diagnostics.planted_networks import sequence, weak

layers, ops = keras.layers, keras.ops
TOLERANCE = 0.1


@dataclasses.dataclass(frozen=True)
class Network:
    """A network, the layers to keep in float32 in the order of the network, and data: a mean and a deviation."""

    name: str
    make: Callable[[], Any]
    guilty: tuple[str, ...]
    mean: float = 0.0
    deviation: float = 1.0
    shape: tuple[int, ...] = (WIDTH,)
    half: str = "float16"
    level: Any = "O2"


def d1() -> Any:
    return dense("d1")


def cancelling(name: str) -> Callable[[], Any]:
    return lambda: Inside(lambda x: (x + 1000) - 1000, name=name)


def difference(x: Any) -> Any:
    """Normalize rows by the difference of two large means."""
    mean = ops.mean(x, axis=-1, keepdims=True)
    variance = ops.mean(x * x, axis=-1, keepdims=True) - mean * mean
    return (x - mean) / ops.sqrt(ops.abs(variance) + 1e-2)


def square(x: Any) -> Any:
    return x * x / 4096


def block(*middle: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: keras.Sequential([keras.Input((WIDTH,)), *(make() for make in middle)], name="block")


BRAIN = {"half": "bfloat16"}
NETWORKS = [
    Network("large weights", chain(d1, lambda: dense("d2", weight=2.0**15), lambda: layers.ReLU(name="relu"),
                                   lambda: dense("d3", weight=2.0**-14), head), ("d2", "relu", "d3"), 2.0, 0.5),
    Network("variance", inside(nets.by_hand), ("inside",), 0.0, 300.0),
    Network("root of a mean of squares", inside(nets.rms), ("inside",), 300.0, 30.0),
    Network("difference of means", inside(difference), ("inside",), 30.0),
    Network("cancellation", chain(d1, cancelling("inside"), head), ("inside",), **BRAIN),
    Network("two layers", chain(d1, cancelling("first"), lambda: dense("d2"), cancelling("second"), head),
            ("first", "second"), **BRAIN),
    Network("three layers", chain(d1, cancelling("first"), lambda: dense("d2"), cancelling("second"),
                                  lambda: dense("d3"), cancelling("third"), head),
            ("first", "second", "third"), **BRAIN),
    Network("nested", chain(d1, block(lambda: layers.ReLU(), cancelling("inside")), head), ("block/inside",), **BRAIN),
    Network("cells", cells(cell_dense(0.25), nets.Pow8, cell_dense(2.0**-8, 1)), ("1",), 6.0),
    Network("recurrent", nets.looped(lambda cell: cell), ("rec", "head"), 1.0, 0.25, (5, 2)),
    Network("attention", sequence((3, WIDTH), lambda: Inside(nets.attend, name="attend"),
                                  layers.GlobalAveragePooling1D, head), ("attend",), 200.0, 10.0, (3, WIDTH)),
    Network("temperature", inside(lambda x: ops.softmax(x / 1e-4, axis=-1)), ("inside",), 0.0, 20.0),
    Network("convolution", sequence((4, 4, 2), lambda: layers.SeparableConv2D(
        2, 3, use_bias=False, depthwise_initializer=nets.constant(2.0**14),
        pointwise_initializer=nets.constant(2.0**-12), name="separable"), nets.pool, head), ("separable",), 1.0, 0.25,
            (4, 4, 2)),
    Network("softplus", inside(lambda x: ops.log(1 + ops.exp(x))), ("inside",), 12.0),
    Network("logarithm of a softmax", inside(lambda x: ops.log(ops.softmax(x, axis=-1))), ("inside",), 0.0, 20.0),
    Network("shared", nets.shared_twice, ("shared", "head"), 1.0, 0.125),
    Network("blocks", nets.Blocks, ("b1",), 1.0, 0.125),
    Network("Lambda", chain(d1, lambda: layers.Lambda(square, name="square"), head), ("square",), 400.0, 20.0),
    Network("gradients", chain(d1, lambda: dense("d2", weight=2.0**12), lambda: dense("d3", weight=2.0**12), head),
            ("d1", "d2"), 2.0**-20, 0.0),
    Network("derivative", inside(nets.swish), ("inside",), -12.0, 0.25),
    Network("everything in half", chain(d1, lambda: layers.LayerNormalization(name="norm"), cancelling("inside"), head),
            ("inside",), level="O3", **BRAIN),
    Network("weights in the range of float32", chain(d1, lambda: dense("d2", weight=1e5), weak(14)), ("d2",), 0.01,
            0.001),
]


def suggested(network: Network, kept: tuple[str, ...]) -> mixtrain.Suggestion:
    """Return what is suggested where some layers are in float32."""
    keras.utils.set_random_seed(0)
    mixtrain.set_seed(0)
    made = network.make()
    for node in tree_of(made).walk():
        if node.path in kept:
            mixtrain.to_float(node.layer, mixtrain.float32)
    draw = np.random.default_rng(0)
    x = network.mean + network.deviation * draw.standard_normal((ROWS, *network.shape))
    data = [(x.astype(np.float32), draw.standard_normal((ROWS, 1)).astype(np.float32))]
    model = Model(
        made, "mse", keras.optimizers.SGD(0.0), amp_level=network.level,
        loss_scale_manager=DynamicLossScaleManager(8.0), cast_model_type=getattr(mixtrain, network.half),
    )
    return mixtrain.suggest_rules(model, data, TOLERANCE, steps=0)


@pytest.mark.parametrize("network", quick_only_some(NETWORKS, (1, 4)), ids=lambda network: network.name)
def test_the_planted_layers_and_no_others_are_kept_in_float32(network: Network) -> None:
    result = suggested(network, ())
    assert result.error > TOLERANCE and sorted(result.paths) == sorted(network.guilty)
    assert suggested(network, network.guilty).error <= TOLERANCE
    for path in network.guilty:
        others = tuple(other for other in network.guilty if other != path)
        assert suggested(network, others).error > TOLERANCE, path


def test_there_are_twenty_networks() -> None:
    assert len({network.name for network in NETWORKS}) == len(NETWORKS) >= 20
