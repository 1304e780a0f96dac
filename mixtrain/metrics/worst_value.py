"""`worst_like`: what is reported of a metric that measured nothing, which no callback takes for the best."""

from __future__ import annotations

import math
from typing import Any, Final

import keras
import numpy as np

from mixtrain.typing import Tree

# Keras's `MonitorCallback` (3.15) reads this attribute of a metric for mode="auto"; there is no public name for it.
# tests/metrics/test_worst_value.py fails when it moves.
_DIRECTION: Final = "_direction"
_WORST: Final = {"up": -math.inf, "down": math.inf}
# Ends the names of the losses of several outputs, which are means without a direction.
_LOSS_SUFFIX: Final = "_loss"


def worst_like(value: Tree, name: str, metric: keras.metrics.Metric | None) -> Any:
    """Return the worst value of a metric, in the structure and shape of its result.

    Unlike a first nan, which no later value compares better than, it is never kept as the best of a run.

    `value`: A result of the metric: a number, a tensor, or a dict of them by name. `name`: The name of the result.
    `metric`: The metric; None if it is unknown.

    Returns: -inf where higher is better, inf where lower is better and for the losses of outputs, nan where that is
    unknown: Keras's callbacks then require a mode.

    Example:
        >>> import keras
        >>> worst_like(0.0, "mae", keras.metrics.MeanAbsoluteError()), worst_like(0.0, "a_loss", None)
        (inf, inf)
    """
    if isinstance(value, dict):
        return {key: worst_like(part, key, metric) for key, part in value.items()}
    unknown = math.inf if name.endswith(_LOSS_SUFFIX) else math.nan
    worst = _WORST.get(getattr(metric, _DIRECTION, ""), unknown)
    shape = tuple(np.shape(value))
    return np.full(shape, worst) if shape else worst
