"""`BoundedState`: a loss scale that keeps between apex's `min_loss_scale` and `max_loss_scale`, or that stays."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras

from mixtrain import checks
from mixtrain.precision.loss_scale import LARGEST_SCALE, SMALLEST_NORMAL, LossScaleRule, LossScaleState

_START = 2.0**16


class BoundedState(LossScaleState):
    """A loss-scale state with a largest scale.

    Args:
        loss_scale: The first scale.
        rule: How it moves.
        largest: What it does not rise above.

    Example:
        >>> state = BoundedState(8.0, LossScaleRule(2.0, 1, backoff=0.5), 16.0)
        >>> for finite in (True, True, True):
        ...     state.advance(finite)
        >>> float(state.loss_scale)
        16.0
    """

    def __init__(self, loss_scale: float, rule: LossScaleRule, largest: float) -> None:
        super().__init__(loss_scale, rule, changeable=True)
        self.largest = largest

    @classmethod
    def made(cls, where: str, fixed: float | None, smallest: float | None, largest: float) -> BoundedState:
        """Return the state of apex's scaler: dynamic from 2**16, factor 2, window 2000; or of a scale that stays.

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
        ceiling = checks.number(
            where, "max_loss_scale", largest, at_least=floor, at_most=LARGEST_SCALE, example=2.0**24
        )
        rule = LossScaleRule(2.0, 2000, backoff=0.5, floor=floor)
        if fixed is not None:
            return cls(fixed, dataclasses.replace(rule, factor=1.0, backoff=1.0, floor=SMALLEST_NORMAL), LARGEST_SCALE)
        return cls(min(max(_START, floor), ceiling), rule, ceiling)

    def change_rule(self, rule: LossScaleRule) -> None:
        """Let the scale move by another rule from now on, between the same bounds."""
        super().change_rule(dataclasses.replace(rule, floor=self.rule.floor))

    def advance(self, finite: Any) -> None:
        """Move on by one step, not above the largest scale."""
        super().advance(finite)
        if self.largest < LARGEST_SCALE:
            self.loss_scale.assign(keras.ops.minimum(self.loss_scale, self.largest))
