"""How many operations and bytes a training step of a network takes, counted by XLA on the step written by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from benchmarks.contenders.jax_hand import training
from benchmarks.workloads import Workload, arrays


def answer(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cost of a step under each policy that is told.

    Args:
        told: "workload", the fields of a `Workload`, and "policies", Keras dtype policies.
    """
    workload = Workload(**{**told["workload"], "shape": tuple(told["workload"]["shape"])})
    return {policy: cost(workload, policy) for policy in told["policies"]}


def cost(workload: Workload, policy: str) -> dict[str, float]:
    """Return the operations that are written in a step, and the bytes that its compiled form reads and writes."""
    step, state = training(workload, policy)
    # Shapes are all that is needed of a batch; one sample is made.
    x, y = (part[0] for part in arrays(dataclasses.replace(workload, batch=1), 1))
    batch = tuple(jax.ShapeDtypeStruct((workload.batch, *part.shape[1:]), part.dtype) for part in (x, y))
    lowered = jax.jit(step, donate_argnums=0).lower(state, batch)
    written, compiled = _facts(lowered.cost_analysis()), _facts(lowered.compile().cost_analysis())
    return {"flops": written["flops"], "bytes": compiled["bytes accessed"]}


def _facts(analysis: Any) -> Mapping[str, float]:
    """Return an analysis; some versions give it in a list."""
    facts: Mapping[str, float] = analysis[0] if isinstance(analysis, list) else analysis
    return facts
