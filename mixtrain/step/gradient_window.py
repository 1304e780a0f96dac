"""`GradientWindow`: the gradients of several batches, added up until the optimizer is given their mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.dtype import float32

# The entries of `counts`.
TAKEN: Final = 0
REJECTED: Final = 1


class GradientWindow:
    """The window of batches whose gradients one update is made of.

    A batch counts by its rows, so that the update is that of one batch with the rows of all. Where the gradients of one
    of them are not finite the window is rejected: none of it is applied.

    Args:
        steps: How many batches a window has.
        weights: The variables that gradients are taken of.

    Attributes:
        counts: int32 (2,): the batches of the window so far, and whether it is rejected.
    """

    def __init__(self, steps: int, weights: Sequence[Any]) -> None:
        self._steps = steps
        self.counts = keras.Variable(np.zeros(2, np.int32), trainable=False, name="window_counts")
        # What is left of the window before is not added to: nothing is cleared, so a window may be taken up again by
        # its counts alone.
        self._rows = keras.Variable(np.float32(0), trainable=False, name="window_rows")
        options = {"trainable": False, "autocast": False, "name": "accumulated"}
        self._sums = [keras.Variable(np.zeros(tuple(weight.shape), np.float32), **options) for weight in weights]
        self._missing: list[bool] = [False] * len(self._sums)

    def variables(self) -> list[keras.Variable]:
        """Return the variables of the window: its counts, its rows, and the sum of each weight's gradients."""
        return [self.counts, self._rows, *self._sums]

    def add(self, gradients: Sequence[Any], rows: Any, apply: Callable[[list[Any]], None]) -> None:
        """Take in the gradients of a batch; apply their mean where it is the last of the window.

        Args:
            gradients: Of the weights, finite; None for a weight without one.
            rows: What the batch counts for; None where gradients are sums, and the window's is the sum of them.
            apply: Changes the weights by a list of gradients.
        """
        taken, rejected = (backend.snapshot(self.counts)[place] for place in (TAKEN, REJECTED))
        kept = keras.ops.cast(taken > 0, float32)
        weight = keras.ops.ones(()) if rows is None else keras.ops.cast(rows, float32)
        self._rows.assign(backend.snapshot(self._rows) * kept + (weight if rows is not None else 1 - kept))
        self._missing = [gradient is None for gradient in gradients]
        for total, gradient in zip(self._sums, gradients, strict=True):
            if gradient is not None:
                held = backend.snapshot(total)
                before = keras.ops.where(taken > 0, held, keras.ops.zeros_like(held))
                total.assign(before + backend.densified(gradient) * weight)
        full = taken + 1 >= self._steps
        applies = keras.ops.logical_and(full, rejected == 0)
        backend.cond(applies, lambda: apply(self._mean()), lambda: None)
        self._advance(full, taken, rejected)

    def reject(self) -> None:
        """Take in a batch whose gradients are not finite."""
        taken = backend.snapshot(self.counts)[TAKEN]
        self._advance(taken + 1 >= self._steps, taken, keras.ops.ones_like(taken))

    def end(self, apply: Callable[[list[Any]], None]) -> None:
        """Apply what a window has that is not full, and begin another."""
        counts = backend.snapshot(self.counts)
        applies = keras.ops.logical_and(counts[TAKEN] > 0, counts[REJECTED] == 0)
        backend.cond(applies, lambda: apply(self._mean()), lambda: None)
        self.counts.assign(keras.ops.zeros_like(counts))

    def _mean(self) -> list[Any]:
        rows = backend.snapshot(self._rows)
        pairs = zip(self._sums, self._missing, strict=True)
        return [None if missing else backend.snapshot(total) / rows for total, missing in pairs]

    def _advance(self, full: Any, taken: Any, rejected: Any) -> None:
        following = keras.ops.stack([taken + 1, rejected])
        self.counts.assign(keras.ops.where(full, keras.ops.zeros_like(following), following))
