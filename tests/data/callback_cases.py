"""The sequences on which callbacks' decisions are recorded, and what the callbacks are made with."""

from __future__ import annotations

from typing import Any

# Powers of two apart, so that no decision hangs on rounding.
_FALLING = [2.0, 1.0, 0.5, 0.5, 0.75, 0.25, 0.25, 0.25, 0.5, 0.125]
_RISING = [0.25, 0.5, 0.5, 0.375, 0.75, 0.75, 0.5, 0.75, 0.5, 0.875]
_NAN = [2.0, float("nan"), 1.0, float("nan"), float("nan"), float("nan"), 0.5]

STOPPING: dict[str, tuple[dict[str, Any], list[float]]] = {
    "defaults": ({}, _FALLING),
    "patience_2": ({"patience": 2}, _FALLING),
    "patience_3": ({"patience": 3}, _FALLING),
    "loss": ({"monitor": "loss", "patience": 2}, _FALLING),
    "accuracy": ({"monitor": "accuracy", "patience": 3}, _RISING),
    "max": ({"mode": "max", "patience": 2}, _FALLING),
    "min": ({"monitor": "accuracy", "mode": "min", "patience": 2}, _RISING),
    "min_delta": ({"min_delta": -0.375, "patience": 2}, _FALLING),
    "baseline": ({"baseline": 0.375, "patience": 4}, _FALLING),
    "baseline_not_reached": ({"monitor": "accuracy", "baseline": 0.875, "patience": 4}, _RISING),
    "nan": ({"patience": 3}, _NAN),
}
REDUCING: dict[str, tuple[dict[str, Any], list[float]]] = {
    "defaults": ({}, _FALLING),
    "patience_0": ({"patience": 0}, _FALLING),
    "patience_1": ({"patience": 1}, _FALLING),
    "patience_2": ({"factor": 0.5, "patience": 2}, _FALLING),
    "cooldown": ({"factor": 0.5, "patience": 1, "cooldown": 2}, _FALLING),
    "accuracy": ({"monitor": "accuracy", "factor": 0.25, "patience": 1}, _RISING),
    "max": ({"mode": "max", "factor": 0.5, "patience": 2, "cooldown": 1}, _FALLING),
    "min_delta": ({"min_delta": 0.375, "factor": 0.5, "patience": 2}, _FALLING),
    "min_lr": ({"factor": 0.5, "patience": 1, "min_lr": 0.2, "cooldown": 1}, [1.0] * 8),
    "nan": ({"factor": 0.5, "patience": 2}, _NAN),
}
SCHEDULED_STEPS = 6
FUNCTIONS: dict[str, tuple[float, Any]] = {
    "decay": (0.1, lambda rate, step: rate * 0.9),
    "steps": (0.5, lambda rate, step: rate / 2 if step % 3 == 0 else rate),
    "of_the_step": (1.0, lambda rate, step: 1.0 / step),
    "small": (1e-5, lambda rate, step: rate * 0.5),
}
