"""The MLP's initial weights, for steps that are written without layers."""

from __future__ import annotations

import numpy as np

from benchmarks.workloads import Workload


def mlp(workload: Workload) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return kernel and bias of each layer, as Keras's dense layers begin."""
    random = np.random.default_rng(0)
    sizes = [workload.shape[0], *[workload.width] * workload.depth, workload.classes]
    return [
        (random.uniform(-1, 1, (a, b)).astype(np.float32) * np.float32(np.sqrt(6 / (a + b))), np.zeros(b, np.float32))
        for a, b in zip(sizes, sizes[1:], strict=False)
    ]
