"""The formats of the numbers that a compiled training step adds up between devices or processes."""

from __future__ import annotations

import re
from typing import Any

import keras
import numpy as np

import mixtrain
from mixtrain import DynamicLossScaleManager, Model
from mixtrain.distribution import data_parallel
from tests.backends import ON_TENSORFLOW
from tests.distribution.networks import mlp

X, Y = np.ones((4, 6), np.float32), np.zeros(4, np.int32)
# Two kernels, two biases, scale and shift of the normalization.
WEIGHTS = 6
# The moving statistics of the normalization, and the loss.
OTHERS = 2 + 1


def train_cell(devices: int, reduce_dtype: str = "float32") -> Any:
    """Return the train cell of a classifier in float16, with batch statistics and dropout."""
    network = mlp(keras.layers.BatchNormalization(), keras.layers.Dropout(0.5))
    with data_parallel(devices, reduce_dtype=reduce_dtype):
        model = Model(
            network, keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.Adam(0.01),
            amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2**10, 2, 100),
        )
    return model.train_network.set_train()


def graph_of(step: Any) -> Any:
    """Return TensorFlow's graph of a step."""
    import tensorflow as tf

    step(mixtrain.Tensor(X), mixtrain.Tensor(Y))
    return tf.function(lambda x, y: step(x, y), autograph=False).get_concrete_function(X, Y).graph


def texts(step: Any) -> tuple[str, str]:
    """Return JAX's program of a step, and what XLA has made of it."""
    from mixtrain.backend.jax.group import to_group
    from mixtrain.backend.jax.state import Stateful
    from mixtrain.backend.jax.tensor import stored

    pure = Stateful(step)
    pure.values_before(X, Y)
    values = [[stored(item) for item in kind] for kind in (pure.read, pure.written)]
    lowered = pure._jitted.lower(*(to_group((*values, X, Y)) if pure._spans else (*values, X, Y)))
    return lowered.as_text(), lowered.compile().as_text()


def reduced(step: Any) -> list[str]:
    """Return the formats of what a step adds up, as its program says, one for each tensor that is communicated."""
    if ON_TENSORFLOW:
        kinds = ("AddN", "CollectiveReduceV2", "CollectiveReduceV3")
        return sorted(item.outputs[0].dtype.name for item in graph_of(step).get_operations() if item.type in kinds)
    names = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
    program, _ = texts(step)
    result = re.findall(r'"stablehlo.all_reduce".*?\}\) : \(([^)]*)\) ->', program, re.DOTALL)
    return sorted(names.get(kind, kind) for kind in re.findall(r"tensor<(?:\d+x)*(\w+)>", " ".join(result)))


def compiled(step: Any) -> list[str]:
    """Return the formats of XLA's own reductions, one for each tensor."""
    _, text = texts(step)
    lines = [line for line in text.splitlines() if re.search(r"= .* all-reduce(-start)?\(", line)]
    results = " ".join(line.partition("= ")[2].partition(" all-reduce")[0] for line in lines)
    assert "all-gather" not in text and "all-to-all" not in text and "f16[" in text
    return re.findall(r"(\w+)\[", results)
