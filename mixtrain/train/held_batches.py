"""Batches of Python code that may run together: held as NumPy arrays until it is known how many do."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.backend.rows import Failure

Batch = tuple[Any, ...]

# Booleans, integers and floats; what else there is, the backend takes or refuses when it is read.
_PLAIN_KINDS: Final = frozenset("biuf")


@functools.lru_cache(maxsize=64)
def _held_dtype(dtype: np.dtype) -> np.dtype | None:
    """Return the dtype in which an array of a dtype is held; None for one that is not held."""
    return np.dtype(backend.held_format(dtype.name)) if dtype.kind in _PLAIN_KINDS else None


def borrow(part: Any) -> Any:
    """Return a NumPy array in the format of its tensor, a copy only where it has another; of anything else a tensor.

    Whoever gave the array may write the next batch into it.
    """
    dtype = _held_dtype(part.dtype) if type(part) is np.ndarray else None
    return backend.to_tensor(part) if dtype is None else np.asarray(part, dtype)


def _owned(part: Any) -> Any:
    return part.copy() if isinstance(part, np.ndarray) else part


class HeldBatches(Iterator[Batch]):
    """Batches whose parts stay NumPy arrays: one tensor for all that run together is made in less time than one each.

    A batch's arrays are its maker's, who may write into them when the next is asked for: by then it is `kept`, or
    `released`.

    Args:
        batches: They, as `borrow` made them.
        ahead: Whether a batch may be read before the step of the one before it has begun.
    """

    def __init__(self, batches: Iterable[Batch], *, ahead: bool = False) -> None:
        self._batches = iter(batches)
        self._put = backend.DevicePut()
        self._reads_ahead = ahead and self._put.ahead
        # Batches with their tensors: the last that was given out, and the next; or what reading that raised.
        self._given: tuple[Batch, Batch] | None = None
        self._following: tuple[Batch, Batch] | None = None
        self._failure = Failure()

    def __next__(self) -> Batch:
        self._failure.raise_kept()
        self._given, self._following = self._following, None
        return next(self._batches) if self._given is None else self._given[0]

    def kept(self, batch: Batch) -> Batch:
        """Return the last batch that was read as one of its own; then the next may be read."""
        self._put.take_back()
        self._given = None
        return keras.tree.map_structure(_owned, batch)  # type: ignore[no-any-return]

    def released(self, group: Sequence[Batch]) -> Sequence[Batch]:
        """Return batches alike that run together, as tensors: all but the last are `kept`."""
        if len(group) == 1:
            return [self._alone(group[0])]
        if all(isinstance(part, np.ndarray) for part in keras.tree.flatten(group[0])):
            return _Together(group, self._tensors)  # They are copied at once.
        return [*map(self._tensors, [*group[:-1], self.kept(group[-1])])]

    def _alone(self, batch: Batch) -> Batch:
        tensors = self._lent(batch) if self._given is None else self._given[1]
        if self._reads_ahead:
            self._put.take_back()
            # What ends it comes after this batch.
            with contextlib.suppress(Exception), self._failure.keeping():
                following = next(self._batches)
                self._following = following, self._lent(following)
        return tensors

    def _lent(self, batch: Batch) -> Batch:
        if not all(isinstance(part, np.ndarray) for part in batch):
            return self._tensors(self.kept(batch))
        return self._put.lend(batch)

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
