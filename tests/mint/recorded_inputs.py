"""The inputs of the recorded calls."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

_draw: Final = np.random.default_rng(3)


def _normal(*shape: int) -> np.ndarray:
    return _draw.standard_normal(shape).astype(np.float32)


INPUTS: Final[dict[str, Any]] = {
    "x": _normal(2, 3), "y": _normal(2, 3), "p": _draw.uniform(0.1, 0.9, (2, 3)).astype(np.float32), "v": _normal(3),
    "u": _normal(2), "s": np.float32(1.5), "a": _normal(2, 3, 4), "e": _normal(2, 4, 5), "r": _normal(4, 3),
    "q": _normal(3, 3) + 3 * np.eye(3, dtype=np.float32), "tri": np.tril(_normal(3, 3)) + 2 * np.eye(3, dtype="f4"),
    "img": _normal(2, 4, 6, 6), "line": _normal(2, 4, 8), "vol": _normal(1, 4, 4, 4, 4),
    "flow": np.tanh(_normal(2, 3, 3, 2)),
    "k2": _normal(3, 4, 3, 3), "k1": _normal(3, 4, 3), "k3": _normal(3, 4, 2, 2, 2), "kt": _normal(4, 3, 3, 3),
    "c4": _normal(4), "g4": _draw.uniform(0.5, 1.5, 4).astype(np.float32),
    "tbc": _normal(5, 2, 3), "ktbc": _normal(3, 3, 2),
    "i": np.array([[-3, 2, 5], [7, -1, 4]], np.int32), "k": np.array([[1, 2, 3], [2, 1, 2]], np.int32),
    "j": np.array([[0, 2, 1], [2, 1, 0]], np.int64), "f3": np.array([2, 0, 2], np.int64),
    "lab": np.array([2, 0], np.int64), "b": np.array([[True, False, True], [False, False, True]]),
    "c": np.array([[True, True, False], [False, True, False]]),
    "n": np.array([[np.nan, 1.0, np.inf], [-np.inf, -2.5, 0.0]], np.float32), "h": _normal(2, 3).astype(np.float16),
    "o": np.array([1.0, 1.0, 2.0, 2.0, 3.0, 1.0], np.float32), "sgn": np.array([1.0, -1.0], np.float32),
    "z": (_normal(2, 3) + 1j * _normal(2, 3)).astype(np.complex64), "one": _normal(1, 3, 1),
    "tied": np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]], np.float32), "big": _normal(2, 3) * 4,
}
