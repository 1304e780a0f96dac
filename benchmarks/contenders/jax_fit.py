"""Keras's own `compile` and `fit` on JAX, at its defaults, fed from NumPy arrays; no TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.contender import Contender, Round
from benchmarks.networks.in_keras import loss, network, optimizer
from benchmarks.workloads import Workload, arrays


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Return what compiles the network."""
    model = network(workload, contender.policy)
    x, y = (part.reshape(-1, *part.shape[2:]) for part in arrays(workload, steps))

    def prepare() -> Round:
        steps = contender.steps_per_execution
        model.compile(optimizer(), loss(), steps_per_execution=steps, jit_compile=contender.jit)

        def run() -> float:
            loss = model.fit(x, y, workload.batch, epochs=1, shuffle=False, verbose=0).history["loss"][-1]
            # With little of the device's memory rounds were seen that were too short for any training.
            if not math.isfinite(loss):
                raise RuntimeError(f"Keras fit: expected a finite loss; got {loss}")
            return float(loss)

        return run

    return prepare
