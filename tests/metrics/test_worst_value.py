"""The worst value of a metric, by the direction that Keras's callbacks use."""

from __future__ import annotations

import math
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain.metrics.worst_value import worst_like

metrics = keras.metrics


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # If Keras moves `_direction`, which is private, these are nan.
        (metrics.MeanAbsoluteError(), math.inf),
        (metrics.MeanMetricWrapper(keras.losses.mean_squared_error), math.inf),
        (metrics.BinaryAccuracy(), -math.inf),
        (metrics.AUC(), -math.inf),
        (metrics.Mean("own"), math.nan),
        (metrics.Mean("kl_loss"), math.inf),
        (None, math.nan),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_it_is_the_value_that_every_other_improves_on(metric: Any, expected: float) -> None:
    np.testing.assert_equal(worst_like(0.5, getattr(metric, "name", "own"), metric), expected)


def test_it_has_the_structure_of_the_result() -> None:
    value = {"each": keras.ops.ones((2, 3)), "mean": keras.ops.ones(()), "kl_loss": 1.0}
    expected = {"each": np.full((2, 3), np.nan), "mean": math.nan, "kl_loss": math.inf}
    np.testing.assert_equal(worst_like(value, "own", metrics.Mean("own")), expected)
    np.testing.assert_equal(worst_like(keras.ops.ones(2), "f1", metrics.F1Score()), np.full(2, -np.inf))
