"""Count the operations or bytes of a hand-written training step, by XLA's cost analysis and its compiled program."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from benchmarks.contenders.jax_hand import training
from benchmarks.hlo import kernels_of
from benchmarks.workloads import Workload, arrays


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cost of a step under each requested policy.

    Args:
        request: "workload": fields of a `Workload`; "policies": Keras dtype policies; "count": "flops" or "bytes".
    """
    workload = Workload(**{**request["workload"], "shape": tuple(request["workload"]["shape"])})
    return {policy: cost(workload, policy, request["count"]) for policy in request["policies"]}


def cost(workload: Workload, policy: str, count: str) -> float:
    """Return the operations of a lowered step, or the bytes that the compiled step reads and writes.

    XLA analyzes lowered steps only on a CPU, which has no float16 attention. "flops" therefore counts a bfloat16 step,
    which has the same operations. XLA's count of bytes leaves out library calls, such as all convolutions by cuDNN
    (18.1 GB of a step of ResNet-50 in half), so the operands and results of each kernel and call are summed instead.
    """
    policy = policy.replace("mixed_float16", "mixed_bfloat16") if count == "flops" else policy
    step, state = training(workload, policy)
    # Only shapes are needed, so a single sample is generated.
    x, y = (array[0] for array in arrays(dataclasses.replace(workload, batch=1), 1))
    batch = tuple(jax.ShapeDtypeStruct((workload.batch, *array.shape[1:]), array.dtype) for array in (x, y))
    shapes = jax.tree.map(lambda value: jax.ShapeDtypeStruct(value.shape, value.dtype), state)
    lowered = jax.jit(step, donate_argnums=0).lower(shapes, batch)
    if count == "bytes":
        return float(sum(kernel.moved for kernel in kernels_of(lowered.compile().as_text())))
    analysis = lowered.cost_analysis()
    counts = analysis[0] if isinstance(analysis, list) else analysis  # Some versions of JAX return a list.
    return float(counts["flops"])
