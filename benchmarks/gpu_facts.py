"""What follows from answers about a device: whether traces follow the rule, and which ceiling limits a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from benchmarks.contender import Contender
from benchmarks.gpu_cases import BFLOAT16, FLOAT16, FLOAT32, TF32

# The precision of a ceiling, the Keras policy whose step was counted, and who trains with it.
PRECISIONS: Final[tuple[tuple[str, str, Contender], ...]] = (
    ("float32", "float32", FLOAT32),
    ("tensorfloat32", "float32", TF32),
    ("float16", "mixed_float16", FLOAT16),
    ("bfloat16", "mixed_bfloat16", BFLOAT16),
)


def scales_by_rule(
    overflows: Sequence[bool], *, dynamic: bool, first: float, factor: float, window: int
) -> list[float]:
    """Return the scale of each step, before it moves, computed apart from the library.

    Args:
        overflows: Which steps overflow.
        dynamic: Whether the scale moves.
        first: The scale of the first step.
        factor: What it moves by.
        window: Good steps in a row before it grows.
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


def trace_rows(here: Mapping[str, Any], on_cpu: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return what the traces of loss scales show, a row for each manager and feed.

    Args:
        here: The answer of `benchmarks.gpu_traces` on this device.
        on_cpu: The answer on the CPU; None where this device is it.
    """
    rows = []
    for name, found in here["traces"].items():
        scales, planted = found["scales"], here["planted"]
        dynamic = name.startswith("dynamic")
        told = here["rule"] if dynamic else {**here["rule"], "first": 1024.0}
        rule = scales_by_rule(planted, dynamic=dynamic, **told)
        rows.append({
            "what": name,
            "steps": len(scales),
            "overflows": sum(found["overflows"]),
            "as_planted": found["overflows"] == planted,
            "as_the_rule": scales == rule,
            "as_on_cpu": None if on_cpu is None else found == on_cpu["traces"][name],
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
        ceilings: What the device can do at most.
    """
    medians = {row["name"]: row["median"] for row in record["contenders"]}
    rows = []
    for precision, policy, contender in PRECISIONS:
        flops, size = cost["flops"][policy], cost["bytes"][policy]
        arithmetic = 1e-9 * flops / ceilings[f"{precision} products"]["value"]
        moved = 1e-6 * size / ceilings["copy"]["value"]
        seen = medians.get(contender.name)
        rows.append({
            "network": record["race"],
            "precision": precision,
            "gflop": 1e-9 * flops,
            "gbyte": 1e-9 * size,
            "flop_a_byte": flops / size,
            "arithmetic_ms": arithmetic,
            "bytes_ms": moved,
            "limit": "arithmetic" if arithmetic >= moved else "bytes",
            "seen_ms": seen,
            "share": None if seen is None else max(arithmetic, moved) / seen,
        })
    return rows
