"""Keras's own `compile` and `fit` with defaults."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.contender import Contender, Round
from benchmarks.contenders.feed import batches
from benchmarks.networks.in_keras import loss, network, optimizer
from benchmarks.workloads import Workload


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build network and data; return a function that compiles the network."""
    model, data = network(workload, contender.policy), batches(workload, steps)

    def prepare() -> Round:
        steps = contender.steps_per_execution
        model.compile(optimizer(), loss(), steps_per_execution=steps, jit_compile=contender.jit)
        return lambda: model.fit(data, epochs=1, shuffle=False, verbose=0)

    return prepare
