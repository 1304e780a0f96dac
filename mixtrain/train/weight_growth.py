"""`WeightGrowth`: by which factor the largest weight of a network has grown since a run began."""

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
    """The largest weight at the start of a run; the weights are read from the device at the start and for `since`.

    Matrices that start near 0 grow in any training; they count from the magnitude that is usual for their shape.
    """

    def __init__(self, weights: Iterable[Any]) -> None:
        self._weights = [weight for weight in weights if hasattr(weight, "dtype") and is_float(as_dtype(weight.dtype))]
        shapes = [tuple(weight.shape) for weight in self._weights if len(weight.shape) > 1]
        usual = (max(math.prod(shape[1:]), math.prod(shape[:-1]), 1) ** -0.5 for shape in shapes)
        self._start = max([self._largest(), *usual])

    def _largest(self) -> float:
        values = (np.abs(backend.to_numpy(weight).astype(np.float32)) for weight in self._weights)
        largest = max((float(value.max(initial=0)) for value in values), default=0.0)
        return largest if largest <= np.finfo(np.float32).max else np.inf

    def since(self, steps: int) -> float | None:
        """Return the factor by which the largest weight has grown in some steps, inf if it is not finite; None if the
        growth is that of training."""
        if not 0 < self._start < np.inf:
            return None
        factor = self._largest() / self._start
        return factor if factor >= (_SOON if steps <= _SOON_STEPS else _EVER) else None
