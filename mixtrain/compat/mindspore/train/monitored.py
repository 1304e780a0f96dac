"""What callbacks look at and change: monitored values, whether higher or lower is better, and the learning rate."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import checks
from mixtrain.train.callback.rates import rate_of
from mixtrain.train.callback.steps import any_applied, epoch_of
from mixtrain.train.run_context import CallbackArguments
from mixtrain.train.training_metrics import last_values

Mode = Literal["auto", "min", "max"]
BETTER_WHEN_LOWER: Final = (
    "hausdorff_distance", "mae", "mse", "loss", "perplexity", "mean_surface_distance", "root_mean_square_distance",
    "eval_loss",
)


@dataclasses.dataclass(frozen=True)
class Direction:
    """Whether lower or higher is better, and the smallest change that counts as an improvement."""

    lower: bool
    min_delta: float

    @property
    def worst(self) -> float:
        """The value that every number improves on."""
        return math.inf if self.lower else -math.inf

    def better(self, value: float, than: float) -> bool:
        """Whether a value is an improvement; NaN never is."""
        return value < than - self.min_delta if self.lower else value > than + self.min_delta


def direction(where: str, monitor: Any, mode: Any, min_delta: Any) -> Direction:
    """Return the direction of a monitored value: "auto" decides by its name, and `min_delta` loses its sign."""
    checks.instance(where, "monitor", monitor, str, 'monitor="eval_loss"')
    checks.instance(where, "mode", mode, str, 'mode="auto"')
    checks.one_of(where, "mode", mode, ("auto", "min", "max"))
    lower = mode == "min" or (mode == "auto" and monitor in BETTER_WHEN_LOWER)
    return Direction(lower, abs(checks.number(where, "min_delta", min_delta, example=0.0)))


def rate_variable(where: str, arguments: CallbackArguments) -> keras.Variable:
    """Return the variable of the optimizer's learning rate; an error where it is a schedule or differs by group."""
    rate = rate_of(arguments)
    if not isinstance(rate, keras.Variable):
        kind = "one for each group" if isinstance(rate, tuple) else "none" if rate is None else "a schedule"
        raise ValueError(
            f"{where}: expected an optimizer with one learning rate that can be set; got {kind}. "
            "Write learning_rate=0.1, a plain number, in the optimizer."
        )
    return rate


def monitored_value(where: str, monitor: str, arguments: CallbackArguments) -> float | None:
    """Return a monitored value at the end of an epoch.

    "loss" is the loss of the last applied step. Any other name is looked up in the results of the evaluation, and then
    in the training values of Keras metrics. None if no step of the epoch was applied, so that nothing can have
    improved, and, after a warning, if no value has that name.
    """
    if "epoch_results" in arguments and not any_applied(arguments.epoch_results):
        return None
    results = dict(arguments.get("eval_results") or {})
    if monitor == "loss" or monitor not in results:
        records = epoch_of(arguments)
        results = last_values(records) | results
    if monitor == "loss":
        losses = records.loss[~records.overflow]
        value = losses[-1] if len(losses) else None
    else:
        value = results.get(monitor)
    if value is None:
        names = ", ".join(["loss", *(name for name in results if name != "loss")])
        warnings.warn(
            f"{where}: monitor={monitor!r} has no value in epoch {arguments.get('cur_epoch_num', 1)}, so nothing is "
            f"decided; there are {names}. Write one of them, or fit with a valid_dataset.",
            stacklevel=3,
        )
        return None
    if np.ndim(value):
        raise checks.fail_value(where, f"monitor={monitor!r} must be a scalar", value, 'monitor="eval_loss"')
    return float(value)
