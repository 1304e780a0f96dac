"""Keras's own `compile` and `fit` on JAX, with defaults, fed from NumPy arrays; no TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.contender import Contender, Round
from benchmarks.networks.in_keras import loss, network, optimizer
from benchmarks.workloads import Workload, arrays


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build network and data; return a function that compiles the network."""
    model = network(workload, contender.policy)
    x, y = (array.reshape(-1, *array.shape[2:]) for array in arrays(workload, steps))

    def prepare() -> Round:
        steps = contender.steps_per_execution
        model.compile(optimizer(), loss(), steps_per_execution=steps, jit_compile=contender.jit)

        def run() -> float:
            loss = model.fit(x, y, workload.batch, epochs=1, shuffle=False, verbose=0).history["loss"][-1]
            # With little free device memory, rounds have been too short for any training.
            if not math.isfinite(loss):
                raise RuntimeError(f"Keras fit: expected a finite loss; got {loss}")
            return float(loss)

        return run

    return prepare
