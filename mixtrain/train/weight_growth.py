"""`WeightGrowth`: by which factor the weight of a network that grew most has grown since a run began."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from mixtrain import backend
from mixtrain.dtype import as_dtype, is_float

# Factors that are a learning rate's doing: in the first steps, and in any number of steps.
_SOON: Final = 2.0**4
_SOON_STEPS: Final = 1000
_EVER: Final = 2.0**8


class WeightGrowth:
    """The largest value of each weight at the start of a run; they are read from the device at the start and for
    `since`.

    Weights that start near 0 grow in any training; they count from the magnitude that is usual for their shape.
    """

    def __init__(self, weights: Iterable[Any]) -> None:
        self._weights = [weight for weight in weights if hasattr(weight, "dtype") and is_float(as_dtype(weight.dtype))]
        # That of a vector, as of biases and scales, is 1.
        shapes = [(1, *weight.shape) if len(weight.shape) > 1 else (1, 1) for weight in self._weights]
        usual = [max(math.prod(shape[2:]), math.prod(shape[:-1]), 1) ** -0.5 for shape in shapes]
        self._start = self._largest()
        self._base = np.maximum(self._start, usual)

    def _largest(self) -> np.ndarray:
        arrays = (backend.to_numpy(weight).astype(np.float32) for weight in self._weights)
        largest = np.array([np.abs(array).max(initial=0) for array in arrays], np.float32)
        return np.where(largest <= np.finfo(np.float32).max, largest, np.inf)

    def since(self, steps: int) -> float | None:
        """Return the factor by which the weight has grown that grew most in some steps, inf if it is not finite; None
        if the growth is that of training."""
        if not (self._start < np.inf).all():
            return None
        now = self._largest()
        factors = now / self._base
        if factors.max(initial=0) < (_SOON if steps <= _SOON_STEPS else _EVER):
            return None
        most = int(factors.argmax())
        return float(now[most] / (self._start[most] or self._base[most]))
