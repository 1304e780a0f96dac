"""The shared reference numbers, by case and name."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np

_ARRAYS = dict(np.load(pathlib.Path(__file__).parents[1] / "data" / "mindspore_reference.npz"))


def case(name: str) -> dict[str, Any]:
    """Return the arrays of one case, by name."""
    arrays = {key.partition("/")[2]: value for key, value in _ARRAYS.items() if key.partition("/")[0] == name}
    assert arrays, name
    return arrays


def cases(prefix: str) -> list[str]:
    """Return the names of the cases that start with `prefix`, in order."""
    return sorted({key.partition("/")[0] for key in _ARRAYS if key.startswith(prefix)})
