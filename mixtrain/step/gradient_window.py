"""`GradientWindow`: accumulates the gradients of several batches until the optimizer gets their mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.dtype import float32
from mixtrain.typing import Tensor

# The entries of `counts`.
ACCUMULATED: Final = 0
REJECTED: Final = 1


class GradientWindow:
    """A window of batches whose gradients make up one update.

    Each batch is weighted by its number of rows, so the update equals that of one batch with all of the rows. If the
    gradients of one batch are not finite, the whole window is rejected: nothing of it is applied.

    `steps`: Number of batches in a window. `weights`: The variables that are differentiated.

    Attributes:
        counts: int32 (2,): the number of batches accumulated so far, and 1 if the window is rejected.
    """

    def __init__(self, steps: int, weights: Sequence[Tensor]) -> None:
        self._steps = steps
        self.counts = keras.Variable(np.zeros(2, np.int32), trainable=False, name="window_counts")
        # Sums are never cleared: the first batch of a window overwrites them. Setting `counts` back to 0 is enough to
        # start a window over.
        self._rows = keras.Variable(np.float32(0), trainable=False, name="window_rows")
        options = {"trainable": False, "autocast": False, "name": "accumulated"}
        self._sums = [keras.Variable(np.zeros(tuple(weight.shape), np.float32), **options) for weight in weights]
        # Of the next values of a window the largest is applied, as in Keras.
        self._largest = [backend.takes_next_value(weight) for weight in weights]
        self._missing: list[bool] = [False] * len(self._sums)

    def variables(self) -> list[keras.Variable]:
        """Return the variables of the window: the counts, the number of rows, and the gradient sum of each weight."""
        return [self.counts, self._rows, *self._sums]

    def add(self, gradients: Sequence[Tensor], rows: Tensor | int, apply: Callable[[list[Tensor]], None]) -> None:
        """Accumulate the gradients of a batch, and apply the mean after the last batch of the window.

        Args:
            gradients: Finite gradients, in the order of the weights; None for a weight without a gradient.
            rows: The weight of the batch; None if gradients are sums over rows, whose sum the window applies.
            apply: Updates the weights from a list of gradients.
        """
        accumulated, rejected = (backend.snapshot(self.counts)[index] for index in (ACCUMULATED, REJECTED))
        started = keras.ops.cast(accumulated > 0, float32)
        weight = keras.ops.ones(()) if rows is None else keras.ops.cast(rows, float32)
        # Without rows the divisor is 1 for the whole window: the mean of it is the sum.
        self._rows.assign(backend.snapshot(self._rows) * started + (weight if rows is not None else 1 - started))
        self._missing = [gradient is None for gradient in gradients]
        for total, gradient, takes_largest in zip(self._sums, gradients, self._largest, strict=True):
            if gradient is not None:
                value = backend.snapshot(total)
                # Not a product with `started`: an infinite sum of an earlier window times 0 would be NaN.
                previous = keras.ops.where(accumulated > 0, value, keras.ops.zeros_like(value))
                # Next values are magnitudes and scales, at least 0.
                total.assign(
                    keras.ops.maximum(previous, gradient) if takes_largest
                    else previous + backend.densified(gradient) * weight
                )
        full = accumulated + 1 >= self._steps
        applies = keras.ops.logical_and(full, rejected == 0)
        backend.cond(applies, lambda: apply(self._mean()), lambda: None)
        self._advance(full, accumulated, rejected)

    def reject(self) -> None:
        """Count a batch whose gradients are not finite: the window it belongs to is not applied."""
        accumulated = backend.snapshot(self.counts)[ACCUMULATED]
        self._advance(accumulated + 1 >= self._steps, accumulated, keras.ops.ones_like(accumulated))

    def end(self, apply: Callable[[list[Tensor]], None]) -> None:
        """Apply the mean of a window that is not full, and start the next."""
        counts = backend.snapshot(self.counts)
        applies = keras.ops.logical_and(counts[ACCUMULATED] > 0, counts[REJECTED] == 0)
        backend.cond(applies, lambda: apply(self._mean()), lambda: None)
        self.counts.assign(keras.ops.zeros_like(counts))

    def _mean(self) -> list[Tensor]:
        rows = backend.snapshot(self._rows)
        triples = zip(self._sums, self._missing, self._largest, strict=True)
        return [
            None if missing else backend.snapshot(total) / (1.0 if takes_largest else rows)
            for total, missing, takes_largest in triples
        ]

    def _advance(self, full: Tensor, accumulated: Tensor, rejected: Tensor) -> None:
        counts = keras.ops.stack([accumulated + 1, rejected])
        self.counts.assign(keras.ops.where(full, keras.ops.zeros_like(counts), counts))
