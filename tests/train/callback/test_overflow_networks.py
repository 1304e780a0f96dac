"""OverflowMonitor names planted faults in networks of the size that people train: LeNet, ResNet-20, a transformer."""

from __future__ import annotations

import contextlib
import pathlib
import runpy
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, Model, RangeMonitor, backend, nn
from mixtrain.network.walk import tree_of
from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import on_jax_only_some

pytestmark = pytest.mark.slow
EXAMPLES = pathlib.Path(__file__).parents[3] / "examples"
layers = keras.layers


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a call of the group feed run three steps; losses that are not finite are expected here."""
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 3)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
        yield


def example(script: str, name: str) -> Any:
    return runpy.run_path(str(EXAMPLES / script))[name]


def transformer() -> keras.Model:
    """Two blocks of attention and a multilayer perceptron, each beside a residual connection."""
    inputs = x = keras.Input((8, 16))
    for number in range(2):
        attended = layers.MultiHeadAttention(2, 8, name=f"attention{number}")(x, x)
        x = layers.LayerNormalization(name=f"norm{number}")(x + attended)
        wide = layers.Dense(32, activation="relu", name=f"wide{number}")(x)
        x = x + layers.Dense(16, name=f"narrow{number}")(wide)
    return keras.Model(inputs, layers.Dense(10, name="head")(layers.GlobalAveragePooling1D()(x)))


CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def exploding(labels: Any, logits: Any) -> Any:
    """Return a loss that float32 does not hold."""
    return CROSS_ENTROPY(labels, logits) * 3e38 * 1e3


# How each is made, the shape of its input, and the layer whose weights grow until its output overflows.
NETWORKS: dict[str, tuple[Callable[[], Any], tuple[int, ...], str]] = {
    "LeNet": (lambda: example("lenet_digits.py", "LeNet5")(), (1, 32, 32), "fc2"),
    "ResNet-20": (lambda: example("cifar10_resnet.py", "ResNet")(20), (3, 32, 32), ""),
    "Keras ResNet-20": (lambda: example("cifar10_resnet.py", "keras_resnet")(20), (32, 32, 3), ""),
    "transformer": (transformer, (8, 16), "wide1"),
}


def weighted(network: Any) -> list[tuple[str, Any]]:
    """Return the convolutions and dense layers of a network by path, in order."""
    kinds = (nn.Conv2d, nn.Dense, layers.Conv2D, layers.Dense)
    return [(node.path, node.layer) for node in tree_of(network).walk() if isinstance(node.layer, kinds)]


def made(name: str) -> tuple[Any, list[tuple[str, Any]], list[Any]]:
    """Return a network, its convolutions and dense layers, and five batches."""
    make, shape, _ = NETWORKS[name]
    network = make()
    draw = np.random.default_rng(3)
    batches = [
        (draw.standard_normal((4, *shape)).astype(np.float32), draw.integers(0, 10, 4).astype(np.int32))
        for _ in range(5)
    ]
    if isinstance(network, keras.Model):
        network.build((None, *shape))
    return network, weighted(network), batches


def grow(layer: Any, power: float) -> None:
    """Multiply a layer's weights by a power of two."""
    weight = layer.weight if isinstance(layer, nn.Cell) else layer.kernel
    weight.assign(backend.to_numpy(weight) * np.float32(2.0**power))


def trained(network: Any, batches: list[Any], feed: str, manager: DynamicLossScaleManager, **options: Any) -> Model:
    """Train an epoch at O2; return the Model."""
    params = network.trainable_params() if isinstance(network, nn.Cell) else network.trainable_variables
    loss = options.pop("loss", CROSS_ENTROPY)
    callbacks = options.pop("callbacks", None)
    model = Model(network, loss, nn.SGD(params, 1e-6), amp_level="O2", loss_scale_manager=manager, **options)
    model.train(1, batches, callbacks=callbacks, dataset_sink_mode=feed == "sink", verbose=0)
    return model


def overflows(name: str, plant: str, feed: str) -> tuple[str, Any]:
    """Train with a fault; return the layer that it is in, and the records of the steps that were skipped."""
    network, result, batches = made(name)
    path, layer = next((row for row in result if row[0] == NETWORKS[name][2]), result[len(result) // 2])
    if plant == "input":
        batches[2][0].reshape(-1)[7] = np.nan
    elif plant == "activation":
        grow(layer, 24)
    loss = exploding if plant == "loss" else CROSS_ENTROPY
    manager = DynamicLossScaleManager(2.0**24 if plant == "gradient" else 8.0, 2.0**4)
    return path, trained(network, batches, feed, manager, loss=loss, explain_overflow=True).overflows


FEEDS = pytest.mark.parametrize("feed", on_jax_only_some(("groups", "sink")))
EACH = pytest.mark.parametrize("name", [*NETWORKS])


@FEEDS
@EACH
def test_a_nan_in_the_input_is_named(name: str, feed: str) -> None:
    _, records = overflows(name, "input", feed)
    assert [(item.step, item.finding.kind, item.finding.count) for item in records] == [(3, "input", 1)]


@FEEDS
@EACH
def test_the_layer_whose_activations_overflow_is_named(name: str, feed: str) -> None:
    path, records = overflows(name, "activation", feed)
    assert [item.step for item in records] == [1, 2, 3, 4, 5]
    assert {(item.finding.kind, item.finding.layer) for item in records} == {("forward", path)}
    assert all(item.finding.largest > 65504 for item in records)


@FEEDS
@EACH
def test_a_loss_that_overflows_is_told_from_the_network(name: str, feed: str) -> None:
    _, records = overflows(name, "loss", feed)
    assert [(item.finding.kind, item.finding.layer) for item in records] == [("loss", None)] * 5


@EACH
@pytest.mark.parametrize("scale", [1.0, 2.0**20])
def test_gradients_that_underflow_without_a_scale_are_named_by_their_layers(name: str, scale: float) -> None:
    network, result, batches = made(name)
    grow(result[-1][1], -26)
    monitor = RangeMonitor(every=5)
    # At this rate float32 moves weights that start at 0, which LeNet has none of.
    told = scale == 1 and name != "LeNet"
    with pytest.warns(UserWarning, match=r"flushes \d+% of") if told else contextlib.nullcontext():
        trained(network, batches[:1], "groups", DynamicLossScaleManager(scale), callbacks=[monitor])
    flushed = {row.path for row in monitor.records.underflowing() if row.kind == "parameter"}
    *before, head = [path for path, _ in result]
    assert flushed & {*before, head} == (set(before) if scale == 1 else set())


@FEEDS
@EACH
def test_gradients_that_overflow_are_told_the_scale_that_would_do(name: str, feed: str) -> None:
    _, records = overflows(name, "gradient", feed)
    assert records and {item.finding.kind for item in records} <= {"gradient", "parameter"}
    assert all(item.finding.forward_finite for item in records)
    assert records[-1].finding.scale == records[-1].next_loss_scale
