"""The compiled step adds up float32 numbers between devices, each gradient once, and nothing else."""

from __future__ import annotations

import re
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, backend
from mixtrain.distribution import data_parallel
from tests.backends import ON_TENSORFLOW
from tests.distribution.networks import mlp


def train_cell() -> Any:
    """Return the train cell of a classifier in float16 on two devices, with batch statistics and dropout."""
    network = mlp(keras.layers.BatchNormalization(), keras.layers.Dropout(0.5))
    with data_parallel(2):
        model = Model(
            network, keras.losses.SparseCategoricalCrossentropy(from_logits=True), keras.optimizers.Adam(0.01),
            amp_level="O2", loss_scale_manager=DynamicLossScaleManager(2**10, 2, 100),
        )
    return model.train_network.set_train()


X, Y = np.ones((4, 6), np.float32), np.zeros(4, np.int32)
# Two kernels, two biases, scale and shift of the normalization, which moves two statistics; and the loss.
SUMS = 6 + 2 + 1


@pytest.mark.skipif(ON_TENSORFLOW, reason="about XLA's text")
def test_the_program_of_xla_reduces_in_float32_alone() -> None:
    import jax

    from mixtrain.backend.jax.state import Stateful

    step = Stateful(train_cell())
    step.values_before(X, Y)
    values = [[one.value for one in kind] for kind in (step.read, step.written)]
    text = jax.jit(step._pure).lower(*values, X, Y).compile().as_text()
    reduced = [line for line in text.splitlines() if re.search(r"= .* all-reduce(-start)?\(", line)]
    results = [line.partition("= ")[2].partition(" all-reduce")[0] for line in reduced]
    formats = re.findall(r"(\w+)\[", " ".join(results))
    assert set(formats) == {"f32"} and len(formats) == SUMS
    assert "all-gather" not in text and "all-to-all" not in text and "f16[" in text


@pytest.mark.tensorflow
def test_the_graph_adds_up_float32_alone() -> None:
    import tensorflow as tf

    step = train_cell()
    step(mixtrain.Tensor(X), mixtrain.Tensor(Y))
    graph = tf.function(lambda x, y: step(x, y), autograph=False).get_concrete_function(X, Y).graph
    sums = [one for one in graph.get_operations() if one.type == "AddN"]
    products = {one.device for one in graph.get_operations() if one.type == "MatMul"}
    assert {one.outputs[0].dtype for one in sums} == {tf.float32} and len(sums) == SUMS
    assert products == {"/device:CPU:0", "/device:CPU:1"}
    assert backend.to_numpy(step.state.loss_scale) == 2**10
