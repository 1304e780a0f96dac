"""How many operations, or bytes, a training step of a network takes, counted by XLA on the step written by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from benchmarks.contenders.jax_hand import training
from benchmarks.workloads import Workload, arrays


def answer(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a step under each policy that is told takes of what is counted.

    Args:
        told: "workload", the fields of a `Workload`, "policies", Keras dtype policies, and "count", either "flops" or
            "bytes".
    """
    workload = Workload(**{**told["workload"], "shape": tuple(told["workload"]["shape"])})
    return {policy: cost(workload, policy, told["count"]) for policy in told["policies"]}


def cost(workload: Workload, policy: str, count: str) -> float:
    """Return the operations that are written in a step, or the bytes that its compiled form reads and writes.

    What is not compiled yet XLA counts on a CPU alone, which has no attention in float16: in bfloat16 a step has the
    same operations.
    """
    policy = policy.replace("mixed_float16", "mixed_bfloat16") if count == "flops" else policy
    step, state = training(workload, policy)
    # Shapes are all that is needed of a batch; one sample is made.
    x, y = (part[0] for part in arrays(dataclasses.replace(workload, batch=1), 1))
    batch = tuple(jax.ShapeDtypeStruct((workload.batch, *part.shape[1:]), part.dtype) for part in (x, y))
    held = jax.tree.map(lambda value: jax.ShapeDtypeStruct(value.shape, value.dtype), state)
    lowered = jax.jit(step, donate_argnums=0).lower(held, batch)
    analysis = lowered.cost_analysis() if count == "flops" else lowered.compile().cost_analysis()
    facts = analysis[0] if isinstance(analysis, list) else analysis  # Some versions give it in a list.
    return float(facts["flops" if count == "flops" else "bytes accessed"])
