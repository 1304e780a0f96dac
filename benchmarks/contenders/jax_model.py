"""mixtrain's `Model` on a Keras network on JAX, fed from a list of NumPy batches; no TensorFlow."""

from __future__ import annotations

from collections.abc import Callable

import jax

import mixtrain
from benchmarks.contender import Contender, Round
from benchmarks.contenders.ours import trained
from benchmarks.networks import in_keras
from benchmarks.workloads import Workload, arrays


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build network and data; return a function that creates the `Model`."""
    data = list(zip(*arrays(workload, steps), strict=True))
    if contender.resident:
        data = jax.device_put(data)
    mixtrain.set_seed(0)
    network = in_keras.network(workload)
    return lambda: trained(contender, network, in_keras.loss(), in_keras.optimizer(), data)
