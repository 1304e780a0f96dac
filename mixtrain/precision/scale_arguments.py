"""The checks of what a loss scale is made of, for all that take these arguments."""

from __future__ import annotations

from typing import Any, Final

from mixtrain import checks
from mixtrain.precision.loss_scale import LARGEST_SCALE, SMALLEST_SCALE, LossScaleRule

STAYING: Final = LossScaleRule(1.0, 1)


def checked_scale(where: str, name: str, value: Any, *, example: float = 1024.0) -> float:
    """Return a loss scale: at least 1, and finite in float32; errors offer `example`.

    Raises:
        TypeError: It is no number.
        ValueError: It is out of range.
    """
    return checks.number(where, name, value, at_least=SMALLEST_SCALE, at_most=LARGEST_SCALE, example=example)


def checked_rule(where: str, scale_factor: Any, scale_window: Any) -> LossScaleRule:
    """Return the rule of a scale that moves: a factor above 1, and a window of at least one step.

    Raises:
        TypeError: The factor is no number, or the window no int.
        ValueError: One is out of range.
    """
    factor = checks.number(where, "scale_factor", scale_factor, above=1.0, at_most=LARGEST_SCALE, example=2)
    return LossScaleRule(factor, checks.integer(where, "scale_window", scale_window, at_least=1, example=2000))
