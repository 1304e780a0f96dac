"""The loss scale of apex's scaler: between `min_loss_scale` and `max_loss_scale`, or one that stays."""

from __future__ import annotations

from mixtrain import checks
from mixtrain.loss_scale.rule import LARGEST_SCALE, SMALLEST_NORMAL, LossScaleRule, LossScaleState

_START = 2.0**16


def scale_in_range(where: str, fixed: float | None, smallest: float | None, largest: float) -> LossScaleState:
    """Return the state of a dynamic scale, from 2**16 by factor 2 and window 2000; or of a scale that stays.

    Args:
        where: Who asks, for errors.
        fixed: The scale that stays; None for a dynamic one.
        smallest: What a dynamic scale does not fall below; None for a number next to 0.
        largest: What it does not rise above.

    Raises:
        TypeError: A bound is no number.
        ValueError: A bound is out of range, or they cross.
    """
    floor = SMALLEST_NORMAL
    if smallest is not None:
        floor = checks.number(where, "min_loss_scale", smallest, at_least=SMALLEST_NORMAL, example=1.0)
    ceiling = checks.number(where, "max_loss_scale", largest, at_least=floor, at_most=LARGEST_SCALE, example=2.0**24)
    if fixed is not None:
        return LossScaleState(fixed, LossScaleRule(1.0, 2000, backoff=1.0, floor=SMALLEST_NORMAL), changeable=True)
    rule = LossScaleRule(2.0, 2000, backoff=0.5, floor=floor, ceiling=ceiling)
    return LossScaleState(min(max(_START, floor), ceiling), rule, changeable=True)
