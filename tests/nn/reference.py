"""The reference numbers, by file, case and name."""

from __future__ import annotations

import functools
import pathlib
from typing import Any

import numpy as np

_FOLDER = pathlib.Path(__file__).parents[1] / "data"


@functools.cache
def _arrays(file: str) -> dict[str, Any]:
    return dict(np.load(_FOLDER / f"{file}.npz"))


def case(name: str, file: str = "mindspore_reference") -> dict[str, Any]:
    """Return the arrays of one case, by name."""
    arrays = {key.partition("/")[2]: value for key, value in _arrays(file).items() if key.partition("/")[0] == name}
    assert arrays, name
    return arrays


def cases(prefix: str, file: str = "mindspore_reference") -> list[str]:
    """Return the names of the cases that start with `prefix`, in order."""
    return sorted({key.partition("/")[0] for key in _arrays(file) if key.startswith(prefix)})
