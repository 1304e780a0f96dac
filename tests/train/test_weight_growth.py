"""WeightGrowth: each weight counts from its own start, so that a small one cannot hide behind a large one."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from mixtrain.train.weight_growth import WeightGrowth


@pytest.mark.parametrize(("index", "factor", "told"), [(0, 16, 16.0), (1, 2.0**13, 2.0**13), (1, 2.0**5, None)])
def test_the_weight_that_grew_most_counts(index: int, factor: float, told: float | None) -> None:
    table, small = keras.Variable(np.full((4, 4), 1e3)), keras.Variable(np.full((4, 4), 2.0**-10))
    growth = WeightGrowth([table, small])
    (table, small)[index].assign((table, small)[index] * factor)
    # A matrix of 4 x 4 that starts near 0 counts from 1 / sqrt(4), and is told from its start.
    assert growth.since(1000) == told


def test_a_vector_counts_from_1_at_least() -> None:
    bias = keras.Variable(np.zeros(4))
    growth = WeightGrowth([bias])
    bias.assign(np.full(4, 15.0))
    assert growth.since(10) is None
    bias.assign(np.full(4, np.nan))
    assert growth.since(10) == np.inf
