"""The loss scale of apex's scaler: between `min_loss_scale` and `max_loss_scale`, or a constant one."""

from __future__ import annotations

from mixtrain import checks
from mixtrain.loss_scale.rule import LARGEST_SCALE, SMALLEST_NORMAL, LossScaleRule, LossScaleState

_START = 2.0**16


def scale_in_range(where: str, fixed: float | None, smallest: float | None, largest: float) -> LossScaleState:
    """Return the state of a dynamic scale, from 2**16 by factor 2 and window 2000; or of a constant loss scale.

    Args:
        where: Who asks, for errors.
        fixed: The constant scale; None for a dynamic one.
        smallest: What a dynamic scale does not fall below; None for a number next to 0.
        largest: What it does not rise above.

    Raises:
        TypeError: A bound is not a number.
        ValueError: A bound is out of range, or they cross.
    """
    minimum = SMALLEST_NORMAL
    if smallest is not None:
        minimum = checks.number(where, "min_loss_scale", smallest, at_least=SMALLEST_NORMAL, example=1.0)
    maximum = checks.number(where, "max_loss_scale", largest, at_least=minimum, at_most=LARGEST_SCALE, example=2.0**24)
    if fixed is not None:
        return LossScaleState(fixed, LossScaleRule(1.0, 2000, backoff=1.0, minimum=SMALLEST_NORMAL), changeable=True)
    rule = LossScaleRule(2.0, 2000, backoff=0.5, minimum=minimum, maximum=maximum)
    return LossScaleState(min(max(_START, minimum), maximum), rule, changeable=True)
