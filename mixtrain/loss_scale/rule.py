"""The loss-scaling rule, written once, and the state that it updates."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks, faces
from mixtrain.typing import Tensor

SMALLEST_SCALE: Final = 1.0
# The floor of `GradScaler`, whose scale may go below 1 as PyTorch's does: smaller float32 numbers may be flushed to 0.
SMALLEST_NORMAL: Final = float(np.finfo(np.float32).tiny)
LARGEST_SCALE: Final = float(np.finfo(np.float32).max)
LARGEST_COUNT: Final = int(np.iinfo(np.int32).max)
# Consecutive overflows after which a run is hopeless, as in MindSpore.
BAD_STEP_MAX: Final = 1000


class Count(enum.IntEnum):
    """The columns of `LossScaleState.counts`."""

    GOOD_STEPS = 0
    OVERFLOWS_IN_A_ROW = 1
    OVERFLOWS_AT_MINIMUM = 2
    APPLIED_STEPS = 3
    SKIPPED_STEPS = 4


def _only(*counts: Count) -> np.ndarray:
    """Return a row with 1 in these columns and 0 in the others."""
    return np.array([count in counts for count in Count], np.int32)


def _all_but(*counts: Count) -> np.ndarray:
    """Return a row with 0 in these columns and 1 in the others."""
    return 1 - _only(*counts)


# A step increments some counts and resets others. All are updated by one addition and one multiplication of the whole
# row, because on a device a small operation costs as much as a larger one.
_ADDED_BY_GOOD_STEP = _only(Count.GOOD_STEPS, Count.APPLIED_STEPS)
_ADDED_BY_OVERFLOW = _only(Count.OVERFLOWS_IN_A_ROW, Count.OVERFLOWS_AT_MINIMUM, Count.SKIPPED_STEPS)
_KEPT_BY_GOOD_STEP = _all_but(Count.OVERFLOWS_IN_A_ROW)
_KEPT_BY_OVERFLOW = _all_but(Count.GOOD_STEPS)
_KEPT_BY_FULL_WINDOW = _only(Count.APPLIED_STEPS, Count.SKIPPED_STEPS)
_KEPT_ABOVE_MINIMUM = _all_but(Count.OVERFLOWS_AT_MINIMUM)
_KEPT_BY_FORGETTING = _all_but(Count.OVERFLOWS_IN_A_ROW, Count.OVERFLOWS_AT_MINIMUM)


@dataclasses.dataclass(frozen=True)
class LossScaleRule:
    """Parameters of a loss scale.

    `factor`: Multiplies the scale after `window` good steps; 1 for a constant loss scale. A number, or in a compiled
    graph a float64 scalar. `window`: Number of consecutive good steps before the scale grows; an int, or in a compiled
    graph an int32 scalar. `backoff`: Multiplies the scale after an overflow; None for 1 / factor. `minimum`: The
    smallest scale. `maximum`: The largest scale.
    """

    factor: Any
    window: Any
    backoff: Any = None
    minimum: float = SMALLEST_SCALE
    maximum: float = LARGEST_SCALE


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


def next_loss_scale(
    rule: LossScaleRule, loss_scale: Tensor, good_steps: Tensor, finite: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the next loss scale and count of good steps after a step.

    After an overflow the scale is divided by the factor (or multiplied by the backoff), but not below the minimum, and
    the count is reset. After a good step the count is incremented; when it reaches the window, the scale is multiplied
    by the factor and the count is reset. The scale stays where it would be infinite in float32, and never exceeds the
    maximum. A product is rounded to float32 once. Scalars are float32, int32 and bool, all NumPy's or all tensors; the
    result is of the same kind.

    Example:
        >>> next_loss_scale(LossScaleRule(2.0, 3), np.float32(16), np.int32(2), np.bool_(True))
        (np.float32(32.0), np.int32(0))

    Source: Micikevicius et al., 2018, section 3.2; MindSpore, `DynamicLossScaleManager`; PyTorch, `GradScaler`.
    """
    full = _fills_window(rule, good_steps)
    if not backend.is_tensor(loss_scale):
        scale = np.float32(_next_scale(np, rule, np.float64(loss_scale), full, finite))
        return scale, np.int32(good_steps + 1 if finite and not full else 0)
    with backend.double_precision():
        scale = _next_scale(keras.ops, rule, keras.ops.cast(loss_scale, "float64"), full, finite)
        count = keras.ops.where(full, np.int32(0), good_steps + np.int32(1))
        return keras.ops.cast(scale, "float32"), _select(keras.ops, finite, count, np.int32(0))


def _fills_window(rule: LossScaleRule, good_steps: Tensor) -> Tensor:
    """Whether one more good step fills the window."""
    window = np.int32(min(rule.window, LARGEST_COUNT)) if isinstance(rule.window, int) else rule.window
    # Not `good_steps + 1 >= window`, which would overflow int32 at the largest count.
    return good_steps >= window - np.int32(1)


def _next_scale(xp: ModuleType, rule: LossScaleRule, scale: Tensor, full: Tensor, finite: Tensor) -> Tensor:
    """Compute the scale after a step in float64; `xp` is `numpy` or `keras.ops`."""
    growth, backoff = _float64(rule.factor), _float64(1.0 / rule.factor if rule.backoff is None else rule.backoff)
    product = scale * _select(xp, finite, xp.where(full, growth, np.float64(1)), backoff)
    result = xp.where(product <= np.float64(LARGEST_SCALE), product, scale)
    # Only an overflow can take the scale below the minimum, so a good step saves the operation.
    if finite is not True:
        result = xp.maximum(result, _select(xp, finite, np.float64(0), np.float64(rule.minimum)))
    return xp.minimum(result, np.float64(rule.maximum)) if rule.maximum < LARGEST_SCALE else result


def _select(xp: ModuleType, finite: Tensor, good: Tensor, overflowed: Tensor) -> Tensor:
    """Return `good` where the step is finite, else `overflowed`; for a Python bool without an operation."""
    if isinstance(finite, bool):
        return good if finite else overflowed
    return xp.where(finite, good, overflowed)


def _float64(number: Any) -> Any:
    """Convert a number to float64, where products of float32 numbers are exact; a tensor is float64 already."""
    return np.float64(number) if isinstance(number, (int, float)) else number


def _count(doc: str, count: Count) -> property:
    """Return the property of a `LossScaleState` that reads one of its counts on the device."""
    return property(lambda state: state.counts[count], doc=f"{doc}, an int32 scalar.")


class LossScaleState:
    """Static or dynamic loss scale of a training run and its counters, as device variables.

    `rule`: The parameters of the scale. `loss_scale`: float32 variable. `counts`: int32 variable with a column for each
    `Count`. `before_reading`: Called before the host reads a variable; writes back values that a running loop holds.
    """

    def __init__(self, loss_scale: float, rule: LossScaleRule) -> None:
        self.rule = rule
        # Scripts read and set it, as `scale_sense` of their train cell.
        self.loss_scale = faces.visible_variable(np.float32(loss_scale), "loss_scale")
        self.counts = hidden_variable(np.zeros(len(Count), np.int32), "counts")
        self.before_reading: Callable[[], None] = _nothing

    def current_scale(self) -> float:
        """Return the current scale, read from the device."""
        self.before_reading()
        return float(backend.to_numpy(self.loss_scale))

    def current_count(self, count: Count) -> int:
        """Return one of the counts, read from the device."""
        self.before_reading()
        return int(backend.to_numpy(self.counts)[count])

    good_steps = _count("Good steps since the scale last changed or a step overflowed", Count.GOOD_STEPS)
    overflows_in_a_row = _count("Overflows since the last good step", Count.OVERFLOWS_IN_A_ROW)
    overflows_at_minimum = _count(
        "Overflows at the smallest scale since it was last larger or a window was full", Count.OVERFLOWS_AT_MINIMUM
    )
    applied_steps = _count("Steps whose update was applied", Count.APPLIED_STEPS)
    skipped_steps = _count("Steps that overflowed", Count.SKIPPED_STEPS)

    def variables(self) -> list[keras.Variable]:
        """Return the variables that a step updates; a checkpoint contains them."""
        return [self.loss_scale, self.counts]

    def advance(self, finite: Tensor) -> None:
        """Update scale and counts after a step, compiled or from Python; `finite` is a bool scalar tensor or a bool."""
        if backend.is_tensor(finite) or backend.is_tracing():
            xp, scale, counts = keras.ops, backend.snapshot(self.loss_scale), backend.to_tensor(self.counts)
            rule = self.rule_on_device()
        else:
            rule = self.rule
            # From Python, NumPy computes: single operations of a backend would cost milliseconds.
            xp, scale, counts = np, np.float32(backend.to_numpy(self.loss_scale)), backend.to_numpy(self.counts)
            finite = bool(finite)
        scale, counts = _next_state(xp, rule, scale, counts, finite)
        self.loss_scale.assign(scale)
        self.counts.assign(counts)

    def rule_on_device(self) -> LossScaleRule:
        """Return the rule for a step on the device; that of a subclass may change, and be in variables."""
        return self.rule

    def forget_overflows(self) -> None:
        """Reset the overflow counts that end a run."""
        self.counts.assign(backend.to_numpy(self.counts) * _KEPT_BY_FORGETTING)

    def overflow_count(self) -> int:
        """Return the larger of the two overflow counts that end a run; it increases by at most 1 per step."""
        counts = backend.to_numpy(self.counts)
        return int(max(counts[Count.OVERFLOWS_IN_A_ROW], counts[Count.OVERFLOWS_AT_MINIMUM]))


def _nothing() -> None:
    """Do nothing."""


def _next_state(
    xp: ModuleType, rule: LossScaleRule, loss_scale: Tensor, counts: Tensor, finite: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute the scale and the counts after a step; `xp` is `numpy` or `keras.ops`."""
    good_steps = counts[Count.GOOD_STEPS]
    scale, _ = next_loss_scale(rule, loss_scale, good_steps, finite)
    at_minimum = loss_scale <= np.float32(rule.minimum)
    good, overflowed = (
        xp.where(at_minimum, kept, kept * _KEPT_ABOVE_MINIMUM) for kept in (_KEPT_BY_GOOD_STEP, _KEPT_BY_OVERFLOW)
    )
    kept = _select(xp, finite, xp.where(_fills_window(rule, good_steps), _KEPT_BY_FULL_WINDOW, good), overflowed)
    return scale, (counts + _select(xp, finite, _ADDED_BY_GOOD_STEP, _ADDED_BY_OVERFLOW)) * kept


def hidden_variable(value: np.ndarray | np.generic, name: str) -> keras.Variable:
    """Return a new variable that is not trained, and that no script sees."""
    return keras.Variable(value, trainable=False, dtype=value.dtype.name, autocast=False, name=name)
