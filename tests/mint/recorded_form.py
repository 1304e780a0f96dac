"""The recorded form of a result: all elements of a small array, a sample and a sum of a large one."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

_SHOWN: Final = 8


def form(array: np.ndarray) -> list[Any]:
    """Return the dtype, the shape and the elements of an array; of many, some and a weighted sum of all."""
    wide = array.astype(np.float32) if array.dtype.kind == "f" or array.dtype.name == "bfloat16" else array
    values = (wide.view(np.float32) if array.dtype.kind == "c" else wide).ravel().tolist()
    shown = values
    if len(values) > _SHOWN:
        shown = values[:: -(-len(values) // _SHOWN)]
        shown.append(sum(value * math.cos(number) for number, value in enumerate(values)))
    return [array.dtype.name, list(array.shape), shown]
