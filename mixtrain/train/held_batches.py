"""Batches of Python code that may run together: held as NumPy arrays until it is known how many do."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend

Batch = tuple[Any, ...]

# Booleans, integers and floats; what else there is, the backend takes or refuses when it is read.
_PLAIN_KINDS: Final = frozenset("biuf")


@functools.lru_cache(maxsize=64)
def _held_dtype(dtype: np.dtype) -> np.dtype | None:
    """Return the dtype in which an array of a dtype is held; None for one that is not held."""
    return np.dtype(backend.held_format(dtype.name)) if dtype.kind in _PLAIN_KINDS else None


def hold(part: Any) -> Any:
    """Return a copy of a NumPy array, in the format of its tensor; of anything else a tensor.

    Whoever gave the array may write the next batch into it.
    """
    dtype = _held_dtype(part.dtype) if type(part) is np.ndarray else None
    return backend.to_tensor(part) if dtype is None else np.array(part, dtype)


class HeldBatches(Iterator[Batch]):
    """Batches whose parts are held: one tensor for all that run together is made in less time than one for each.

    Args:
        batches: They, as `hold` made them.
    """

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches = iter(batches)
        self._put = backend.DevicePut()

    def __next__(self) -> Batch:
        return next(self._batches)

    def released(self, group: Sequence[Batch]) -> Sequence[Batch]:
        """Return batches alike that run together, as tensors."""
        if len(group) > 1 and all(isinstance(part, np.ndarray) for part in keras.tree.flatten(group[0])):
            return _Together(group, self._tensors)
        return [*map(self._tensors, group)]

    def _tensors(self, batch: Batch) -> Batch:
        if all(isinstance(part, np.ndarray) for part in batch):
            return self._put(batch)
        return keras.tree.map_structure(backend.to_tensor, batch)  # type: ignore[no-any-return]


class _Together(backend.Stacked):
    """Batches alike, stacked; one alone is made of its NumPy arrays when it is asked for, the last once.

    Args:
        batches: They, of NumPy arrays.
        tensors: Makes tensors of one of them.
    """

    def __init__(self, batches: Sequence[Batch], tensors: Callable[[Batch], Batch]) -> None:
        self._held = keras.tree.map_structure(lambda *parts: np.stack(parts), *batches)
        self._tensors = tensors
        super().__init__(keras.tree.map_structure(backend.to_tensor, self._held))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return super().__getitem__(index)
        return self._last if index in (-1, len(self) - 1) else self._one(index)

    @functools.cached_property
    def _last(self) -> Batch:
        return self._one(-1)

    def _one(self, index: int) -> Batch:
        return self._tensors(keras.tree.map_structure(lambda column: column[index], self._held))
