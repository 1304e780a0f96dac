"""`EpochResults`: what Keras reports of an epoch whose steps were all skipped."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.keras.nothing_measured import with_bests_checked
from mixtrain.keras.optimizer import PreparedOptimizer
from mixtrain.metrics.worst_value import worst_like
from mixtrain.network.interpose import Forward, interpose

# Keras's name of the metric that is the mean of the loss.
_LOSS: Final = "loss"


class EpochResults:
    """The results of a model's metrics; those of an epoch whose steps were all skipped are not zeros.

    A skipped step leaves metrics as they were. If no step since their reset was applied, the loss is the mean over the
    skipped steps whose loss was finite, as `Model` reports it, and nan if there is none. Each other metric, of which
    nothing was measured, has the worst value of its direction: callbacks that keep the best epoch do not keep this one.

    `model`: The prepared model, referenced weakly. `optimizers`: Those that scale losses; the first keeps the sums.
    """

    def __init__(self, model: keras.Model, optimizers: Sequence[PreparedOptimizer]) -> None:
        self._model = weakref.ref(model)
        self._optimizers = list(optimizers)
        self._in_step = False
        self._nothing_measured = False
        self._counts_at_reset = (0, 0)

    def install(self, model: keras.Model) -> list[Callable[[], None]]:
        """Replace methods of the model; return what restores them, to be called last in, first out."""
        return [
            interpose(model, self.during_step, method="test_step"),
            interpose(model, self._resetting, method="reset_metrics"),
            interpose(model, self._resulting, method="get_metrics_result"),
            interpose(model, lambda fit: with_bests_checked(fit, lambda: self._nothing_measured), method="fit"),
        ]

    def during_step(self, original: Forward) -> Forward:
        """Return a step of training or evaluation within which the results of metrics are their own."""

        @functools.wraps(original)
        def step(*args: Any) -> Any:
            self._in_step = True
            try:
                return original(*args)
            finally:
                self._in_step = False

        return step

    def note_skipped(self) -> None:
        """Add the loss of a skipped step, if it is finite, to the sum of such losses; called inside the step.

        Without an applied step since the reset, the loss metric has the values of this step alone.
        """
        model = self._model()
        metrics = () if model is None else model.metrics
        loss = next((metric for metric in metrics if metric.name == _LOSS and type(metric) is keras.metrics.Mean), None)
        if loss is not None:
            total, count = (keras.ops.cast(variable.value, "float32") for variable in (loss.total, loss.count))
            step = keras.ops.where(keras.ops.isfinite(total), keras.ops.stack([total, count]), 0.0)
            self._skipped_loss.assign(self._skipped_loss.value + step)

    @property
    def _skipped_loss(self) -> keras.Variable:
        return self._optimizers[0].skipped_loss

    def _step_counts(self) -> tuple[int, int]:
        """Return how many updates were applied, and skipped, so far."""
        applied, skipped = zip(*(optimizer.step_counts() for optimizer in self._optimizers), strict=True)
        return sum(applied), sum(skipped)

    # ---- methods of the model -------------------------------------------------------------------------------------
    def _resetting(self, original: Forward) -> Forward:
        @functools.wraps(original)
        def reset_metrics() -> None:
            original()
            self._counts_at_reset = self._step_counts()
            self._skipped_loss.assign(np.zeros(2, np.float32))

        return reset_metrics

    def _resulting(self, original: Forward) -> Forward:
        @functools.wraps(original)
        def get_metrics_result() -> dict[str, Any]:
            results: dict[str, Any] = original()
            if self._in_step or backend.is_tracing():
                return results
            before, now = self._counts_at_reset, self._step_counts()
            applied, skipped = now[0] > before[0], now[1] > before[1]
            if applied or skipped:  # No evaluation.
                self._nothing_measured = not applied
            if applied or not skipped:
                return results
            total, rows = backend.to_numpy(self._skipped_loss)
            loss = float(total) / float(rows) if rows else math.nan
            measured_by = _metrics_by_result(self._model())
            return {
                name: loss if name == _LOSS else worst_like(value, name, measured_by.get(name))
                for name, value in results.items()
            }

        return get_metrics_result


def _metrics_by_result(model: keras.Model | None) -> dict[str, keras.metrics.Metric]:
    """Return the metric of each of a model's results by name, as Keras's `get_metrics_result` names them."""
    named: dict[str, keras.metrics.Metric] = {}
    for metric in () if model is None else model.metrics:
        result = metric.result()
        if not isinstance(result, dict):
            named[metric.name] = metric
            continue
        # Keras keeps the metrics of `compile` in one, whose results have its order and name the outputs too.
        parts = list(getattr(metric, "metrics", ()))
        named |= zip(result, parts if len(parts) == len(result) else [metric] * len(result), strict=True)
    return named
