"""Derived results: whether traces follow the loss-scale rule, and which ceiling limits a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.contender import Contender
from benchmarks.gpu_cases import BFLOAT16, FLOAT16, FLOAT32, TF32

# Precision of the ceiling, Keras policy of the counted step, contender with that precision.
PRECISIONS: Final[tuple[tuple[str, str, Contender], ...]] = (
    ("float32", "float32", FLOAT32),
    ("tensorfloat32", "float32", TF32),
    ("float16", "mixed_float16", FLOAT16),
    ("bfloat16", "mixed_bfloat16", BFLOAT16),
)


def scales_by_rule(
    overflows: Sequence[bool], *, dynamic: bool, first: float, factor: float, window: int
) -> list[float]:
    """Return the scale that each step uses, computed independently of the library.

    Args:
        overflows: Which steps overflow.
        dynamic: Whether the scale is dynamic.
        first: The scale of the first step.
        factor: Growth and backoff factor.
        window: Consecutive finite steps before the scale grows.
    """
    scales, scale, good = [], first, 0
    for overflow in overflows:
        scales.append(scale)
        good = 0 if overflow else good + 1
        if dynamic and overflow:
            scale = max(scale / factor, 1.0)
        elif dynamic and good == window:
            scale, good = scale * factor, 0
    return scales


def trace_rows(traces: Mapping[str, Any], on_cpu: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Compare traces of loss scales with the rule and the CPU; return a row per manager and feed.

    Args:
        traces: The answer of `benchmarks.gpu_traces` on this device.
        on_cpu: The answer on the CPU; None if this device is the CPU.
    """
    rows = []
    for name, trace in traces["traces"].items():
        scales, planted = trace["scales"], traces["planted"]
        dynamic = name.startswith("dynamic")
        rule = traces["rule"] if dynamic else {**traces["rule"], "first": 1024.0}
        expected = scales_by_rule(planted, dynamic=dynamic, **rule)
        rows.append({
            "what": name,
            "steps": len(scales),
            "overflows": sum(trace["overflows"]),
            "as_planted": trace["overflows"] == planted,
            "as_the_rule": scales == expected,
            "as_on_cpu": None if on_cpu is None else trace == on_cpu["traces"][name],
            "moves": sum(a != b for a, b in zip(scales, scales[1:], strict=False)),
            "last_scale": scales[-1],
        })
    return rows


def limit_rows(
    record: Mapping[str, Any], cost: Mapping[str, Mapping[str, float]], ceilings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return what limits a network in each precision: arithmetic or bytes, each at the measured ceiling.

    Args:
        record: Of the race of step times.
        cost: The "flops" and the "bytes" of a step by policy.
        ceilings: Ceilings of the device.
    """
    medians = {row["name"]: row["median"] for row in record["contenders"]}
    rows = []
    for precision, policy, contender in PRECISIONS:
        flops, size = cost["flops"][policy], cost["bytes"][policy]
        arithmetic = 1e-9 * flops / ceilings[f"{precision} products"]["value"]
        moved = 1e-6 * size / ceilings["copy"]["value"]
        measured = medians.get(contender.name)
        rows.append({
            "network": record["race"],
            "precision": precision,
            "gflop": 1e-9 * flops,
            "gbyte": 1e-9 * size,
            "flop_per_byte": flops / size,
            "arithmetic_ms": arithmetic,
            "bytes_ms": moved,
            "limit": "arithmetic" if arithmetic >= moved else "bytes",
            "measured_ms": measured,
            "share": None if measured is None else max(arithmetic, moved) / measured,
        })
    return rows
