"""Whether all gradients are finite: each of them counts, small or large, and huge finite numbers are finite."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain import backend

SHAPES = ((3,), (), (200, 100), (2, 2), (0, 4), (4,))
FORMATS = ("float32", "float32", "float32", "float16", "float32", "bfloat16")
HUGE = {"float32": 3e38, "float16": 6e4, "bfloat16": 3e38}


@pytest.mark.parametrize("place", [0, 1, 2, 3, 5])
def test_small_and_large_gradients_of_several_formats_are_all_looked_at(place: int) -> None:
    arrays = [np.full(shape, HUGE[name], np.float32) for shape, name in zip(SHAPES, FORMATS, strict=True)]

    def finite() -> bool:
        tensors = [backend.to_tensor(array, name) for array, name in zip(arrays, FORMATS, strict=True)]
        return bool(backend.all_finite([None, *tensors, backend.to_tensor(np.array([7], np.int32))]))

    assert finite()
    for bad in (np.inf, -np.inf, np.nan):
        arrays[place][(-1,) * len(SHAPES[place])] = bad
        assert not finite()
