"""The loss scale of apex's scaler: constant, or between `min_loss_scale` and `max_loss_scale`."""

from __future__ import annotations

from mixtrain import checks
from mixtrain.compat.pytorch.changeable_scale import ChangeableScale
from mixtrain.loss_scale.rule import LARGEST_SCALE, SMALLEST_NORMAL, LossScaleRule

_START = 2.0**16


def scale_in_range(where: str, constant: float | None, minimum: float | None, maximum: float) -> ChangeableScale:
    """Return the state of a dynamic loss scale, initially 2**16 with factor 2 and window 2000, or of a constant one.

    `where`: Name of the caller, for errors. `constant`: The constant scale; None for a dynamic one. `minimum`: Minimum
    of a dynamic scale; None for the smallest normal number. `maximum`: Maximum of a dynamic scale.

    Raises: TypeError if a bound is not a number. ValueError if a bound is out of range, or they cross.
    """
    minimum = SMALLEST_NORMAL if minimum is None else minimum
    minimum = checks.number(where, "min_loss_scale", minimum, at_least=SMALLEST_NORMAL, example=1.0)
    maximum = checks.number(where, "max_loss_scale", maximum, at_least=minimum, at_most=LARGEST_SCALE, example=2.0**24)
    if constant is not None:
        return ChangeableScale(constant, LossScaleRule(1.0, 2000, backoff=1.0, minimum=SMALLEST_NORMAL))
    rule = LossScaleRule(2.0, 2000, backoff=0.5, minimum=minimum, maximum=maximum)
    return ChangeableScale(min(max(_START, minimum), maximum), rule)
