"""Checks of the arguments of loss-scale managers, update cells and scalers."""

from __future__ import annotations

from typing import Any, Final

from mixtrain import checks
from mixtrain.loss_scale.rule import LARGEST_SCALE, SMALLEST_NORMAL, SMALLEST_SCALE, LossScaleRule

# The rule of a constant scale: growing and backing off multiply by 1.
STATIC: Final = LossScaleRule(1.0, 1)


def checked_scale(
    where: str, name: str, value: Any, *, example: float = 1024.0, minimum: float = SMALLEST_SCALE
) -> float:
    """Check a loss scale: at least `minimum` and finite in float32. Errors suggest `example`."""
    return checks.number(where, name, value, at_least=minimum, at_most=LARGEST_SCALE, example=example)


def checked_rule(where: str, scale_factor: Any, scale_window: Any) -> LossScaleRule:
    """Return the rule of a dynamic scale: a factor above 1 and a window of at least one step."""
    factor = checks.number(where, "scale_factor", scale_factor, above=1.0, at_most=LARGEST_SCALE, example=2)
    return LossScaleRule(factor, checks.integer(where, "scale_window", scale_window, at_least=1, example=2000))


def checked_growth(where: str, growth_factor: Any, backoff_factor: Any, growth_interval: Any) -> LossScaleRule:
    """Return the rule of a dynamic scale with separate factors: growth above 1, backoff between 0 and 1."""
    growth = checks.number(where, "growth_factor", growth_factor, above=1.0, at_most=LARGEST_SCALE, example=2.0)
    backoff = checks.number(where, "backoff_factor", backoff_factor, above=0.0, below=1.0, example=0.5)
    interval = checks.integer(where, "growth_interval", growth_interval, at_least=1, example=2000)
    return LossScaleRule(growth, interval, backoff=backoff, minimum=SMALLEST_NORMAL)
