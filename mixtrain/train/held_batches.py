"""`HeldBatches`: batches of Python code as NumPy arrays, until it is known how many run in one call."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.data_backend.rows import Failure
from mixtrain.typing import Batch, Tree

# Kinds of dtypes: booleans, integers and floats. Other arrays are converted, or refused, when they are read.
_HELD_KINDS: Final = frozenset("biuf")


@functools.lru_cache(maxsize=64)
def _held_dtype(dtype: np.dtype) -> np.dtype | None:
    """Return the dtype in which an array is held; None if arrays of its dtype are not held."""
    return np.dtype(backend.canonical_dtype(dtype.name)) if dtype.kind in _HELD_KINDS else None


def borrow(part: Tree) -> Tree:
    """Return a NumPy array in the dtype of its tensor, copied only if that differs; a tensor of any other value.

    The dataset may write its next batch into the same array. Raises `Unstorable` where the backend has no tensor.
    """
    backend.refuse_unstorable(part)
    dtype = _held_dtype(part.dtype) if type(part) is np.ndarray else None
    return backend.to_tensor(part) if dtype is None else np.asarray(part, dtype)


def _copy(part: Tree) -> Tree:
    return part.copy() if isinstance(part, np.ndarray) else part


class HeldBatches(Iterator[Batch]):
    """Batches of NumPy arrays: one tensor of all batches that run in a call takes less time than one of each.

    The dataset may write into a batch's arrays as soon as the next is read: by then it must be `copied`, or have gone
    through `to_tensors`. `ahead`: Whether a batch may be read before the step of the one before it has begun.
    """

    def __init__(self, batches: Iterable[Batch], *, ahead: bool = False) -> None:
        self._batches = iter(batches)
        self._put = backend.DevicePut()
        self._reads_ahead = ahead and self._put.ahead
        # Batches with their tensors: the last that was returned, and the next; or the exception of reading the next.
        self._current: tuple[Batch, Batch] | None = None
        self._following: tuple[Batch, Batch] | None = None
        self._failure = Failure()

    def __next__(self) -> Batch:
        self._failure.raise_kept()
        self._current, self._following = self._following, None
        return next(self._batches) if self._current is None else self._current[0]

    def copied(self, batch: Batch) -> Batch:
        """Return a copy of the last batch that was read; then the next may be read."""
        self._put.take_back()
        self._current = None
        return keras.tree.map_structure(_copy, batch)  # type: ignore[no-any-return]

    def to_tensors(self, group: Sequence[Batch]) -> Sequence[Batch]:
        """Return batches of equal shapes that run in a call, as tensors; all but the last are `copied`."""
        if len(group) == 1:
            return [self._single(group[0])]
        if all(isinstance(part, np.ndarray) for part in keras.tree.flatten(group[0])):
            return _StackedArrays(group, self._tensors)  # Stacking copies them.
        return [*map(self._tensors, [*group[:-1], self.copied(group[-1])])]

    def _single(self, batch: Batch) -> Batch:
        tensors = self._lent(batch) if self._current is None else self._current[1]
        if self._reads_ahead:
            self._put.take_back()
            # An exception is raised when the next batch is read, after the step of this one.
            with contextlib.suppress(Exception), self._failure.keeping():
                following = next(self._batches)
                self._following = following, self._lent(following)
        return tensors

    def _lent(self, batch: Batch) -> Batch:
        if not all(isinstance(part, np.ndarray) for part in batch):
            return self._tensors(self.copied(batch))
        return self._put.lend(batch)

    def _tensors(self, batch: Batch) -> Batch:
        if all(isinstance(part, np.ndarray) for part in batch):
            return self._put(batch)
        return keras.tree.map_structure(backend.to_tensor, batch)  # type: ignore[no-any-return]


class _StackedArrays(backend.Stacked):
    """Batches of equal shapes, stacked; a single one becomes tensors when it is read, the last only once."""

    def __init__(self, batches: Sequence[Batch], tensors: Callable[[Batch], Batch]) -> None:
        self._arrays = keras.tree.map_structure(lambda *parts: np.stack(parts), *batches)
        self._tensors = tensors
        super().__init__(keras.tree.map_structure(backend.to_tensor, self._arrays))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return super().__getitem__(index)
        return self._last if index in (-1, len(self) - 1) else self._batch(index)

    @functools.cached_property
    def _last(self) -> Batch:
        return self._batch(-1)

    def _batch(self, index: int) -> Batch:
        return self._tensors(keras.tree.map_structure(lambda column: column[index], self._arrays))
