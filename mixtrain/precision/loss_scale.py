"""The loss-scaling rule, written once, and the one state that it moves."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import keras
import numpy as np

from mixtrain import engine

SMALLEST_SCALE: Final = 1.0
LARGEST_SCALE: Final = float(np.finfo(np.float32).max)
BAD_STEP_MAX: Final = 1000


@dataclasses.dataclass(frozen=True)
class LossScaleRule:
    """How a loss scale moves.

    Attributes:
        factor: What the scale is divided by after an overflow and multiplied by after `window` good steps; 1 for a
            scale that stays.
        window: Good steps in a row before the scale grows.
    """

    factor: float
    window: int


def next_loss_scale(rule: LossScaleRule, loss_scale: Any, good_steps: Any, finite: Any) -> tuple[Any, Any]:
    """Return the loss scale and the count of good steps after one step.

    Overflow: the scale is divided by the factor, not below 1, and the count restarts. Otherwise the count grows; once
    it reaches the window the scale is multiplied by the factor (left alone where that is not finite in float32) and
    the count restarts.

    Args:
        rule: Factor and window.
        loss_scale: float32 scalar, a NumPy one or a tensor.
        good_steps: int32 scalar of the same kind.
        finite: bool scalar of the same kind: whether the step's gradients were finite.

    Returns:
        ``(loss_scale, good_steps)``, of the same kind.

    Example:
        >>> next_loss_scale(LossScaleRule(2.0, 3), np.float32(16), np.int32(2), np.bool_(True))
        (np.float32(32.0), np.int32(0))

    Source: Micikevicius et al., 2018, section 3.2; MindSpore, `DynamicLossScaleManager`.
    """
    xp: Any = np if isinstance(finite, (bool, np.bool_)) else keras.ops
    factor = np.float32(rule.factor)
    counted = good_steps + np.int32(1)
    full = counted >= np.int32(rule.window)
    fits = loss_scale <= np.float32(LARGEST_SCALE) / factor
    grown = xp.where(xp.logical_and(full, fits), loss_scale * xp.where(fits, factor, np.float32(1)), loss_scale)
    lowered = xp.maximum(loss_scale / factor, np.float32(SMALLEST_SCALE))
    scale = xp.where(finite, grown, lowered)
    count = xp.where(xp.logical_and(finite, xp.logical_not(full)), counted, np.int32(0))
    return (scale[()], count[()]) if xp is np else (scale, count)


class LossScaleState:
    """The live loss scale of one training run and the counts kept beside it, as device variables.

    Attributes:
        rule: How the scale moves.
        loss_scale: float32 variable.
        good_steps: int32 variable: good steps since the scale last moved or a step overflowed.
        overflows_in_a_row: int32 variable.
        overflows_at_floor: int32 variable: overflows at the smallest scale since it was last larger, or good for a
            window.
        applied_steps: int64 variable: steps whose update was applied.
        skipped_steps: int64 variable: steps that overflowed.
    """

    def __init__(self, loss_scale: float, rule: LossScaleRule) -> None:
        self.rule = rule
        self.loss_scale = _variable(np.float32(loss_scale), "loss_scale")
        self.good_steps = _variable(np.int32(0), "good_steps")
        self.overflows_in_a_row = _variable(np.int32(0), "overflows_in_a_row")
        self.overflows_at_floor = _variable(np.int32(0), "overflows_at_floor")
        self.applied_steps = _variable(np.int64(0), "applied_steps")
        self.skipped_steps = _variable(np.int64(0), "skipped_steps")

    def variables(self) -> list[keras.Variable]:
        """Return everything that a step moves; a checkpoint holds these."""
        return [
            self.loss_scale, self.good_steps, self.overflows_in_a_row, self.overflows_at_floor, self.applied_steps,
            self.skipped_steps,
        ]

    def advance(self, finite: Any) -> None:
        """Move on by one step, in a compiled graph or from Python.

        Args:
            finite: bool scalar: whether the step's gradients were finite.
        """
        ops = keras.ops
        finite = finite if engine.is_tensor(finite) else engine.to_tensor(bool(finite))
        scale = ops.convert_to_tensor(self.loss_scale)
        at_floor = scale <= SMALLEST_SCALE
        scale_after, good_steps = next_loss_scale(self.rule, scale, ops.convert_to_tensor(self.good_steps), finite)
        bad = ops.cast(ops.logical_not(finite), "int32")
        self.overflows_in_a_row.assign((self.overflows_in_a_row + 1) * bad)
        recovered = ops.logical_and(finite, good_steps == 0)  # a full window of good steps
        stays = ops.logical_and(at_floor, ops.logical_not(recovered))
        floor_count = ops.where(stays, self.overflows_at_floor + bad, 0)
        self.overflows_at_floor.assign(floor_count)
        self.applied_steps.assign(self.applied_steps + ops.cast(finite, "int64"))
        self.skipped_steps.assign(self.skipped_steps + ops.cast(bad, "int64"))
        self.loss_scale.assign(scale_after)
        self.good_steps.assign(good_steps)

    def forget_overflows(self) -> None:
        """Let the counts that end a run start again."""
        self.overflows_in_a_row.assign(0)
        self.overflows_at_floor.assign(0)

    def overflow_count(self) -> int:
        """Return the larger of the two overflow counts that end a run; it grows by at most 1 a step."""
        return max(int(engine.to_numpy(self.overflows_in_a_row)), int(engine.to_numpy(self.overflows_at_floor)))


def _variable(value: np.generic, name: str) -> keras.Variable:
    return keras.Variable(value, trainable=False, dtype=value.dtype.name, autocast=False, name=name)
