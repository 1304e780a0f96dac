"""The MLP's step in plain TensorFlow: matrix products and SGD with momentum in a `tf.function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from benchmarks.contender import Contender, Round
from benchmarks.contenders.feed import batches
from benchmarks.networks.in_numpy import mlp
from benchmarks.workloads import Workload


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build network and data; return a function that compiles the step."""
    layers = [tuple(map(tf.Variable, layer)) for layer in mlp(workload)]
    weights = [weight for layer in layers for weight in layer]
    data = batches(workload, steps)

    def prepare() -> Round:
        moments = [tf.Variable(tf.zeros_like(weight)) for weight in weights]

        @tf.function
        def step(x: Any, y: Any) -> Any:
            with tf.GradientTape() as tape:
                for kernel, bias in layers[:-1]:
                    x = tf.nn.relu(x @ kernel + bias)
                logits = x @ layers[-1][0] + layers[-1][1]
                value = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, logits))
            for weight, moment, gradient in zip(weights, moments, tape.gradient(value, weights), strict=True):
                moment.assign(0.9 * moment - 0.01 * gradient)
                weight.assign_add(moment)
            return value

        def run() -> float:
            value = 0.0
            for batch in data:
                value = step(*batch)
            return float(value)

        return run

    return prepare
