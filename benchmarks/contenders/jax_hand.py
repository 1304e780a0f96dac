"""Hand-written training loops on JAX: a jitted step, or `lax.scan` over the epoch in one compiled call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from benchmarks.contender import Contender, Round
from benchmarks.networks.in_keras import loss as make_loss, network, optimizer as make_optimizer
from benchmarks.workloads import Workload, arrays

State = tuple[list[Any], list[Any], list[Any]]


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build the data; return a function that builds the network and compiles the step or the loop."""
    x, y = arrays(workload, steps)

    def prepare() -> Round:
        step, state = training(workload, contender.policy)
        if contender.sink:
            return _in_scan(step, state, x, y)
        batches = list(zip(x, y, strict=True))
        return _on_host(step, state, jax.device_put(batches) if contender.resident else batches)

    return prepare


def training(workload: Workload, policy: str = "float32") -> tuple[Callable[[State, Any], tuple[State, Any]], State]:
    """Return a pure training step and its initial state.

    Args:
        workload: The workload.
        policy: The Keras dtype policy of the network.

    Returns:
        A function of state and batch that returns the next state and the loss; the state: trainable and other
        variables of the network, and the optimizer's.
    """
    model, optimizer, loss_fn = network(workload, policy), make_optimizer(), make_loss()
    optimizer.build(model.trainable_variables)

    def loss_of(weights: Any, others: Any, x: Any, y: Any) -> tuple[Any, Any]:
        logits, others = model.stateless_call(weights, others, x, training=True)
        return loss_fn(y, logits), others

    def step(state: State, batch: Any) -> tuple[State, Any]:
        weights, others, moments = state
        (value, others), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights, others, *batch)
        weights, moments = optimizer.stateless_apply(moments, gradients, weights)
        return (weights, others, moments), value

    variables = (model.trainable_variables, model.non_trainable_variables, optimizer.variables)
    return step, tuple([variable.value for variable in group] for group in variables)  # type: ignore[return-value]


def _on_host(step: Callable[..., Any], state: State, batches: Sequence[Any]) -> Round:
    compiled = jax.jit(step, donate_argnums=0)

    def run() -> float:
        nonlocal state
        value: Any = 0.0
        for batch in batches:
            state, value = compiled(state, batch)
        return float(jax.block_until_ready(value))

    return run


def _in_scan(step: Callable[..., Any], state: State, x: Any, y: Any) -> Round:
    compiled = jax.jit(lambda state, batches: jax.lax.scan(step, state, batches), donate_argnums=0)

    def run() -> float:
        nonlocal state
        state, values = compiled(state, (x, y))
        return float(jax.block_until_ready(values)[-1])

    return run
