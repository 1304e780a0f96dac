"""One pass over a stream: its elements one by one, or several at once, which then come to Python in one call."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from mixtrain.backend.tensorflow.compile import graph_function
from mixtrain.backend.tensorflow.repeat import Row, repeated


class Stacked(Sequence[Row]):
    """Several elements alike, kept as columns that are stacked; a single one is cut out when it is asked for.

    Args:
        columns: The columns, in the structure of an element, each with one row for each element.
    """

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return int(tf.nest.flatten(self.columns)[0].shape[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        place = index % len(self)
        return tf.nest.map_structure(lambda column: column[place], self.columns)

    def __iter__(self) -> Iterator[Row]:
        for parts in zip(*map(tf.unstack, tf.nest.flatten(self.columns)), strict=True):
            yield tf.nest.pack_sequence_as(self.columns, parts)


class _Gathered(Stacked):
    """Elements of an iterator; the last, which is asked for more than others, came apart too."""

    def __init__(self, columns: Row, last: Row) -> None:
        super().__init__(columns)
        self._last = last

    def __getitem__(self, index: Any) -> Any:
        return self._last if index in (-1, len(self) - 1) else super().__getitem__(index)


class DevicePut:
    """Puts elements on the device, one at a time."""

    @property
    def ahead(self) -> bool:
        """Whether it is worth while to put an element before the step of the one before it."""
        return False

    def __call__(self, columns: tuple[np.ndarray, ...]) -> Row:
        """Put an element into whose arrays nobody will write any more."""
        return tuple(map(tf.convert_to_tensor, columns))

    def lend(self, columns: tuple[np.ndarray, ...]) -> Row:
        """Put an element into whose arrays their owner may write again once `take_back` has returned."""
        return self(tuple(map(np.array, columns)))  # TensorFlow may take over an array where it lies.

    def take_back(self) -> None:
        """Return when nothing that was lent is read any more: what is lent is copied at once."""


def element_bytes(spec: Any) -> int | None:
    """Return the size in memory of an element of some kind; None where shapes are open, so that elements may differ."""
    specs = tf.nest.flatten(spec)
    closed = all(isinstance(part, tf.TensorSpec) and part.shape.is_fully_defined() for part in specs)
    return sum(math.prod(part.shape) * part.dtype.size for part in specs) if closed else None


def element_reader(iterator: Any) -> Callable[[], Any]:
    """Return what reads an iterator's next element, as `next` does; of plain tensors in a quarter of the time.

    Args:
        iterator: TensorFlow's, which the caller keeps; its element may have any structure.
    """
    spec = iterator.element_spec
    parts = tf.nest.flatten(spec)
    held = tf.nest.flatten(iterator, expand_composites=True)
    if len(held) != 1 or not parts or not all(type(part) is tf.TensorSpec for part in parts):
        return functools.partial(next, iterator)
    get_next = functools.partial(
        tf.raw_ops.IteratorGetNext,
        iterator=held[0],
        output_types=[part.dtype for part in parts],
        output_shapes=[part.shape for part in parts],
    )
    in_a_row = isinstance(spec, tuple) and len(spec) == len(parts) and not hasattr(spec, "_fields")
    packed = tuple if in_a_row else functools.partial(tf.nest.pack_sequence_as, spec)

    def read() -> Any:
        try:
            return packed(get_next())
        except tf.errors.OutOfRangeError:
            raise StopIteration from None

    return read


class Pass(Iterator[Row]):
    """The elements of one pass.

    Args:
        iterator: The backend's own iterator.
        left: Number of elements, or None where it is unknown.
        raise_pending: Raises what Python code below the stream raised, if anything.

    Attributes:
        iterator, raise_pending: As given.
        element_bytes: Size of an element in memory; None where shapes are open, so that elements may differ.
    """

    def __init__(self, iterator: Any, left: int | None, raise_pending: Callable[[], None]) -> None:
        self.iterator = iterator
        self._next = element_reader(iterator)
        self._left = left
        self.raise_pending = raise_pending
        self.element_bytes = element_bytes(iterator.element_spec)

    def __next__(self) -> Row:
        element: Row = self._read(self._next)
        if self._left is not None:
            self._left -= 1
        return element

    def leave(self, count: int) -> int:
        """Leave the next elements to somebody else, who reads them from `iterator`.

        Args:
            count: How many at most; the last of all is not among them.

        Returns:
            How many they are, 0 or at least two; 0 where elements may differ.
        """
        if self.element_bytes is None or not self._left:
            return 0
        count = min(count, self._left - 1)
        if count < 2:
            return 0
        self._left -= count
        return count

    def together(self, count: int, following: int) -> Stacked | None:
        """Return the next elements, at most `count`; None where that cannot be, is not worth it, or none are left.

        Args:
            count: How many at most; fewer at the end.
            following: How many are likely to be asked for once these have come. (Nothing is made ready here.)

        Raises:
            Exception: What making one of them raised; those before it are lost.
        """
        del following
        if self.element_bytes is None or not self._left or count < 2:
            return None
        count = min(count, self._left)
        gather = _gather_of(str(self.iterator.element_spec))
        found = self._read(lambda: gather(self.iterator, tf.constant(count)))
        self._left -= count
        return _Gathered(*found)

    def _read(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except tf.errors.OpError:
            self.raise_pending()
            raise


@functools.cache
def _gather_of(spec: str) -> Callable[..., Row]:
    """Return the compiled gathering of elements of one kind: passes come and go."""
    del spec
    return graph_function(_gather)


def _gather(iterator: Any, count: Any) -> tuple[Row, Row]:
    columns = repeated(lambda index: tuple(tf.nest.flatten(next(iterator))), count)
    last = [column[-1] for column in columns]
    return tuple(tf.nest.pack_sequence_as(iterator.element_spec, list(parts)) for parts in (columns, last))
