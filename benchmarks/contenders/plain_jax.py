"""The MLP's step in plain JAX: matrix products and SGD with momentum under `jax.jit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.contender import Contender, Round
from benchmarks.networks.in_numpy import mlp
from benchmarks.workloads import Workload, arrays


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build network and data; return a function that compiles the step."""
    initial = jax.tree.map(jnp.asarray, mlp(workload))
    data = list(zip(*arrays(workload, steps), strict=True))

    def prepare() -> Round:
        state = initial, jax.tree.map(jnp.zeros_like, initial)
        compiled = jax.jit(_step, donate_argnums=1)

        def run() -> float:
            nonlocal state
            value: Any = 0.0
            for batch in data:
                *state, value = compiled(*state, *batch)  # type: ignore[assignment]
            return float(value)

        return run

    return prepare


def _step(layers: Any, moments: Any, x: Any, y: Any) -> Any:
    value, gradients = jax.value_and_grad(_loss)(layers, x, y)
    moments = jax.tree.map(lambda moment, gradient: 0.9 * moment - 0.01 * gradient, moments, gradients)
    return jax.tree.map(jnp.add, layers, moments), moments, value


def _loss(layers: Any, x: Any, y: Any) -> Any:
    for kernel, bias in layers[:-1]:
        x = jax.nn.relu(x @ kernel + bias)
    logits = x @ layers[-1][0] + layers[-1][1]
    return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(logits), axis=-1))
