"""Hand-written training loops: a `tf.function` per step, or the epoch inside one `tf.function`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from benchmarks.contender import Contender, Round
from benchmarks.contenders.feed import batches
from benchmarks.networks.in_keras import loss as make_loss, network, optimizer as make_optimizer
from benchmarks.workloads import Workload


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build network and data; return a function that compiles the step or the loop."""
    model, data = network(workload), batches(workload, steps)

    def prepare() -> Round:
        step = _step(model)
        return _in_graph(step, data, steps) if contender.sink else _on_host(step, data)

    return prepare


def _step(model: Any) -> Callable[[Any, Any], Any]:
    """Return a training step on a batch."""
    optimizer, loss_fn = make_optimizer(), make_loss()
    optimizer.build(model.trainable_variables)

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            value = loss_fn(y, model(x, training=True))
        weights = model.trainable_variables
        optimizer.apply(tape.gradient(value, weights), weights)
        return value

    return step


def _on_host(step: Callable[[Any, Any], Any], data: tf.data.Dataset) -> Round:
    compiled = tf.function(step)

    def run() -> float:
        value = 0.0
        for batch in data:
            value = compiled(*batch)
        return float(value)

    return run


def _in_graph(step: Callable[[Any, Any], Any], data: tf.data.Dataset, steps: int) -> Round:
    @tf.function
    def epoch(iterator: Any, count: Any) -> Any:
        value = tf.constant(0.0)
        for _ in tf.range(count):
            value = step(*next(iterator))
        return value

    return lambda: float(epoch(iter(data), tf.constant(steps)))
