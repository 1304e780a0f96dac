"""The loss-scaling rule, written once, and the one state that it moves."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend

SMALLEST_SCALE: Final = 1.0
SMALLEST_NORMAL: Final = float(np.finfo(np.float32).tiny)
LARGEST_SCALE: Final = float(np.finfo(np.float32).max)
LARGEST_COUNT: Final = int(np.iinfo(np.int32).max)
BAD_STEP_MAX: Final = 1000


class Count(enum.IntEnum):
    """The columns of `LossScaleState.counts`."""

    GOOD_STEPS = 0
    OVERFLOWS_IN_A_ROW = 1
    OVERFLOWS_AT_MINIMUM = 2
    APPLIED_STEPS = 3
    SKIPPED_STEPS = 4


def _only(*counts: Count) -> np.ndarray:
    """Return 1 in these columns and 0 in the others."""
    return np.array([count in counts for count in Count], np.int32)


def _all_but(*counts: Count) -> np.ndarray:
    """Return 0 in these columns and 1 in the others."""
    return 1 - _only(*counts)


# A step adds 1 to some counts and sets others to 0. All are moved by one addition and one multiplication, for on a
# device a small operation costs as much as a larger one.
_ADDED_BY_GOOD_STEP = _only(Count.GOOD_STEPS, Count.APPLIED_STEPS)
_ADDED_BY_OVERFLOW = _only(Count.OVERFLOWS_IN_A_ROW, Count.OVERFLOWS_AT_MINIMUM, Count.SKIPPED_STEPS)
_KEPT_BY_GOOD_STEP = _all_but(Count.OVERFLOWS_IN_A_ROW)
_KEPT_BY_OVERFLOW = _all_but(Count.GOOD_STEPS)
_KEPT_BY_FULL_WINDOW = _only(Count.APPLIED_STEPS, Count.SKIPPED_STEPS)
_KEPT_ABOVE_MINIMUM = _all_but(Count.OVERFLOWS_AT_MINIMUM)
_KEPT_BY_FORGETTING = _all_but(Count.OVERFLOWS_IN_A_ROW, Count.OVERFLOWS_AT_MINIMUM)


@dataclasses.dataclass(frozen=True)
class LossScaleRule:
    """How a loss scale moves.

    Attributes:
        factor: What the scale is multiplied by after `window` good steps; 1 for a constant loss scale. A number, or in
            a compiled graph a float64 scalar.
        window: Good steps in a row before the scale grows; likewise, int32.
        backoff: What it is multiplied by after an overflow; None for 1 / factor.
        minimum: The smallest scale.
        maximum: The largest scale.
    """

    factor: Any
    window: Any
    backoff: Any = None
    minimum: float = SMALLEST_SCALE
    maximum: float = LARGEST_SCALE


def next_loss_scale(rule: LossScaleRule, loss_scale: Any, good_steps: Any, finite: Any) -> tuple[Any, Any]:
    """Return the loss scale and the count of good steps after one step.

    Overflow: the scale is divided by the factor (or multiplied by the backoff), not below the minimum, and the count
    restarts. Otherwise the count grows; once it reaches the window the scale is multiplied by the factor (left alone
    where that is not finite in float32, and not above the maximum) and the count restarts. Products are rounded to
    float32 once.

    Args:
        rule: Factors, window, minimum and maximum.
        loss_scale: float32 scalar, a NumPy one or a tensor.
        good_steps: int32 scalar of the same kind.
        finite: bool scalar of the same kind, or Python's own: whether the step's gradients were finite.

    Returns:
        ``(loss_scale, good_steps)``, of the same kind.

    Example:
        >>> next_loss_scale(LossScaleRule(2.0, 3), np.float32(16), np.int32(2), np.bool_(True))
        (np.float32(32.0), np.int32(0))

    Source: Micikevicius et al., 2018, section 3.2; MindSpore, `DynamicLossScaleManager`; PyTorch, `GradScaler`.
    """
    full = _fills(rule, good_steps)
    if not backend.is_tensor(loss_scale):
        scale = np.float32(_moved(np, rule, np.float64(loss_scale), full, finite))
        return scale, np.int32(good_steps + 1 if finite and not full else 0)
    with backend.double_precision():
        scale = _moved(keras.ops, rule, keras.ops.cast(loss_scale, "float64"), full, finite)
        counted = keras.ops.where(full, np.int32(0), good_steps + np.int32(1))
        return keras.ops.cast(scale, "float32"), _chosen(keras.ops, finite, counted, np.int32(0))


def _fills(rule: LossScaleRule, good_steps: Any) -> Any:
    """Whether one more good step fills the window."""
    window = np.int32(min(rule.window, LARGEST_COUNT)) if isinstance(rule.window, int) else rule.window
    return good_steps >= window - np.int32(1)


def _moved(xp: Any, rule: LossScaleRule, before: Any, full: Any, finite: Any) -> Any:
    """Return the loss scale after one step, float64, by NumPy's or Keras's operations."""
    factor, backoff = _wide(rule.factor), _wide(1.0 / rule.factor if rule.backoff is None else rule.backoff)
    moved = before * _chosen(xp, finite, xp.where(full, factor, np.float64(1)), backoff)
    moved = xp.where(moved <= np.float64(LARGEST_SCALE), moved, before)
    if finite is not True:
        moved = xp.maximum(moved, _chosen(xp, finite, np.float64(0), np.float64(rule.minimum)))
    return xp.minimum(moved, np.float64(rule.maximum)) if rule.maximum < LARGEST_SCALE else moved


def _chosen(xp: Any, finite: Any, one: Any, other: Any) -> Any:
    """Return one value or the other; where Python knows which, without an operation."""
    if isinstance(finite, bool):
        return one if finite else other
    return xp.where(finite, one, other)


def _wide(number: Any) -> Any:
    """Return a number in float64, where the product of two float32 numbers is exact; a tensor is so already."""
    return np.float64(number) if isinstance(number, (int, float)) else number


class LossScaleState:
    """The live loss scale of one training run and the counts kept beside it, as device variables.

    Attributes:
        rule: How the scale moves; `change_rule` changes it.
        loss_scale: float32 variable.
        counts: int32 variable, one number for each `Count`.
        before_reading: Called before the host reads a variable, where somebody else holds its value meanwhile.
    """

    def __init__(self, loss_scale: float, rule: LossScaleRule, *, changeable: bool = False) -> None:
        self.rule = rule
        # Compiled steps read a changeable rule from here.
        self._live = _variable(_numbers(rule), "rule") if changeable else None
        self.loss_scale = _variable(np.float32(loss_scale), "loss_scale")
        self.counts = _variable(np.zeros(len(Count), np.int32), "counts")
        self.before_reading: Callable[[], None] = _nothing

    def present_scale(self) -> float:
        """Return the live scale, read from the device."""
        self.before_reading()
        return float(backend.to_numpy(self.loss_scale))

    def present_count(self, count: Count) -> int:
        """Return one of the counts, read from the device."""
        self.before_reading()
        return int(backend.to_numpy(self.counts)[count])

    @property
    def good_steps(self) -> Any:
        """Good steps since the scale last moved or a step overflowed, an int32 scalar."""
        return self.counts[Count.GOOD_STEPS]

    @property
    def overflows_in_a_row(self) -> Any:
        """Overflows since the last good step, an int32 scalar."""
        return self.counts[Count.OVERFLOWS_IN_A_ROW]

    @property
    def overflows_at_minimum(self) -> Any:
        """Overflows at the smallest scale since it was last larger, or good for a window, an int32 scalar."""
        return self.counts[Count.OVERFLOWS_AT_MINIMUM]

    @property
    def applied_steps(self) -> Any:
        """Steps whose update was applied, an int32 scalar."""
        return self.counts[Count.APPLIED_STEPS]

    @property
    def skipped_steps(self) -> Any:
        """Steps that overflowed, an int32 scalar."""
        return self.counts[Count.SKIPPED_STEPS]

    def variables(self) -> list[keras.Variable]:
        """Return everything that a step moves; a checkpoint holds these."""
        return [self.loss_scale, self.counts]

    def advance(self, finite: Any) -> None:
        """Move on by one step, in a compiled graph or from Python.

        Args:
            finite: bool scalar, a tensor or Python's own: whether the step's gradients were finite.
        """
        if backend.is_tensor(finite) or backend.is_tracing():
            xp, scale, counts = keras.ops, backend.snapshot(self.loss_scale), backend.to_tensor(self.counts)
            rule = self.rule if self._live is None else _read(self.rule, self._live)
        else:
            rule = self.rule
            # From Python the arithmetic is NumPy's: single operations of the backend would cost milliseconds.
            xp, scale, counts = np, np.float32(backend.to_numpy(self.loss_scale)), backend.to_numpy(self.counts)
            finite = bool(finite)
        scale, counts = _advanced(xp, rule, scale, counts, finite)
        self.loss_scale.assign(scale)
        self.counts.assign(counts)

    def change_rule(self, rule: LossScaleRule) -> None:
        """Let the scale move by another rule's factors and window from now on, in steps that are compiled already too.

        Its bounds stay what they were.
        """
        self.rule = dataclasses.replace(rule, minimum=self.rule.minimum, maximum=self.rule.maximum)
        if self._live is not None:
            self._live.assign(_numbers(rule))

    def forget_overflows(self) -> None:
        """Let the counts that end a run start again."""
        self.counts.assign(backend.to_numpy(self.counts) * _KEPT_BY_FORGETTING)

    def overflow_count(self) -> int:
        """Return the larger of the two overflow counts that end a run; it grows by at most 1 a step."""
        counts = backend.to_numpy(self.counts)
        return int(max(counts[Count.OVERFLOWS_IN_A_ROW], counts[Count.OVERFLOWS_AT_MINIMUM]))


def _nothing() -> None:
    """Do nothing."""


def _advanced(xp: Any, rule: LossScaleRule, loss_scale: Any, counts: Any, finite: Any) -> tuple[Any, Any]:
    """Return the loss scale and the counts after one step, all at once, by NumPy's or Keras's operations."""
    good_steps = counts[Count.GOOD_STEPS]
    scale, _ = next_loss_scale(rule, loss_scale, good_steps, finite)
    at_minimum = loss_scale <= np.float32(rule.minimum)
    good, overflowed = (
        xp.where(at_minimum, kept, kept * _KEPT_ABOVE_MINIMUM) for kept in (_KEPT_BY_GOOD_STEP, _KEPT_BY_OVERFLOW)
    )
    kept = _chosen(xp, finite, xp.where(_fills(rule, good_steps), _KEPT_BY_FULL_WINDOW, good), overflowed)
    return scale, (counts + _chosen(xp, finite, _ADDED_BY_GOOD_STEP, _ADDED_BY_OVERFLOW)) * kept


def _numbers(rule: LossScaleRule) -> np.ndarray:
    """Return what of a rule may change: factor, backoff and window, each as three float32 numbers that sum to it.

    Not every backend has float64 variables.
    """
    rest = np.array([rule.factor, rule.backoff, min(rule.window, LARGEST_COUNT)], np.float64)
    parts = []
    for _ in range(3):
        parts.append(rest.astype(np.float32))
        rest = rest - parts[-1]
    return np.stack(parts)


def _read(rule: LossScaleRule, numbers: keras.Variable) -> LossScaleRule:
    """Return a rule with the numbers that a variable holds now."""
    with backend.double_precision():
        first, second, third = keras.ops.unstack(keras.ops.cast(numbers, "float64"), 3)
        factor, backoff, window = keras.ops.unstack(first + second + third, 3)
        return dataclasses.replace(rule, factor=factor, backoff=backoff, window=keras.ops.cast(window, "int32"))


def _variable(value: Any, name: str) -> keras.Variable:
    return keras.Variable(value, trainable=False, dtype=value.dtype.name, autocast=False, name=name)
