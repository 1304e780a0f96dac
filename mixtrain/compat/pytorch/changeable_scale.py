"""`ChangeableScale`: a loss scale whose factors and window may change, as those of PyTorch's and apex's scalers."""

from __future__ import annotations

import dataclasses
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.loss_scale.rule import (
    LARGEST_COUNT,
    LARGEST_SCALE,
    SMALLEST_NORMAL,
    LossScaleRule,
    LossScaleState,
    hidden_variable,
)


class ChangeableScale(LossScaleState):
    """The state of a loss scale whose rule is a variable, so that compiled steps follow without being recompiled."""

    def __init__(self, loss_scale: float, rule: LossScaleRule) -> None:
        super().__init__(loss_scale, rule)
        self._rule_variable = hidden_variable(_rule_values(rule), "rule")

    def rule_on_device(self) -> LossScaleRule:
        return _rule_from(self._rule_variable, self.rule)

    def change_rule(self, rule: LossScaleRule) -> None:
        """Set the factors and the window, also for steps that are already compiled; the bounds of the scale stay."""
        self.rule = dataclasses.replace(rule, minimum=self.rule.minimum, maximum=self.rule.maximum)
        self._rule_variable.assign(_rule_values(rule))


def checked_growth(where: str, growth_factor: Any, backoff_factor: Any, growth_interval: Any) -> LossScaleRule:
    """Return the rule of a dynamic scale with separate factors: growth above 1, backoff between 0 and 1."""
    growth = checks.number(where, "growth_factor", growth_factor, above=1.0, at_most=LARGEST_SCALE, example=2.0)
    backoff = checks.number(where, "backoff_factor", backoff_factor, above=0.0, below=1.0, example=0.5)
    interval = checks.integer(where, "growth_interval", growth_interval, at_least=1, example=2000)
    return LossScaleRule(growth, interval, backoff=backoff, minimum=SMALLEST_NORMAL)


def _rule_values(rule: LossScaleRule) -> np.ndarray:
    """Return the factor, backoff and window of a rule as rows of float32 numbers, which sum to the float64 values.

    Three float32 numbers hold a float64; not every backend has float64 variables.
    """
    remainder = np.array([rule.factor, rule.backoff, min(rule.window, LARGEST_COUNT)], np.float64)
    parts = []
    for _ in range(3):
        parts.append(remainder.astype(np.float32))
        remainder = remainder - parts[-1]
    return np.stack(parts)


def _rule_from(values: keras.Variable, rule: LossScaleRule) -> LossScaleRule:
    """Return a rule with the factor, backoff and window that a variable of `_rule_values` holds now."""
    with backend.double_precision():
        first, second, third = keras.ops.unstack(keras.ops.cast(values, "float64"), 3)
        factor, backoff, window = keras.ops.unstack(first + second + third, 3)
        return dataclasses.replace(rule, factor=factor, backoff=backoff, window=keras.ops.cast(window, "int32"))
