"""Rows that the loaders of torch and grain read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_draw = np.random.default_rng(0)
X = _draw.standard_normal((20, 6)).astype(np.float32)
Y = X @ _draw.standard_normal((6, 1)).astype(np.float32)
BATCH = 8  # The last batch holds 4.


class Rows:
    """Rows by index: what grain calls a data source and torch a map-style dataset."""

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        return X[index], Y[index]

    def __repr__(self) -> str:
        return "Rows()"


def rows() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows one by one."""
    yield from zip(X, Y, strict=True)
