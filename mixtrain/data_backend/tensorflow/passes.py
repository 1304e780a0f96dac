"""One pass over a stream: elements one by one, or stacked ones that are read in one call."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from mixtrain.backend.signatures import Row
from mixtrain.backend.tensorflow.compile import graph_function
from mixtrain.backend.tensorflow.elements import Stacked
from mixtrain.backend.tensorflow.repeat import repeated


class _Gathered(Stacked):
    """Elements of an iterator; the last one, which is read most often, is kept separately too."""

    def __init__(self, columns: Row, last: Row) -> None:
        super().__init__(columns)
        self._last = last

    def __getitem__(self, index: Any) -> Any:
        return self._last if index in (-1, len(self) - 1) else super().__getitem__(index)


def element_bytes(spec: Any) -> int | None:
    """Return the size of an element in bytes; None where a dimension is unknown, so that elements may differ."""
    specs = tf.nest.flatten(spec)
    known = all(isinstance(part, tf.TensorSpec) and part.shape.is_fully_defined() for part in specs)
    return sum(math.prod(part.shape) * part.dtype.size for part in specs) if known else None


def element_reader(iterator: Any) -> Callable[[], Any]:
    """Return a function like ``next(iterator)``, which takes a quarter of the time for elements of plain tensors.

    `iterator`: An iterator of `tf.data`, which the caller keeps alive; its element may have any structure.
    """
    spec = iterator.element_spec
    parts = tf.nest.flatten(spec)
    resources = tf.nest.flatten(iterator, expand_composites=True)
    if len(resources) != 1 or not parts or not all(type(part) is tf.TensorSpec for part in parts):
        return functools.partial(next, iterator)
    get_next = functools.partial(
        tf.raw_ops.IteratorGetNext,
        iterator=resources[0],
        output_types=[part.dtype for part in parts],
        output_shapes=[part.shape for part in parts],
    )
    is_flat = isinstance(spec, tuple) and len(spec) == len(parts) and not hasattr(spec, "_fields")
    pack = tuple if is_flat else functools.partial(tf.nest.pack_sequence_as, spec)

    def read() -> Any:
        try:
            return pack(get_next())
        except tf.errors.OutOfRangeError:
            raise StopIteration from None

    return read


class Pass(Iterator[Row]):
    """The elements of one pass.

    `iterator`: The backend's own iterator. `size`: Number of elements, or None where it is unknown. `raise_pending`:
    Raises the pending exception of Python code in the stream, if there is one.

    Attributes:
        iterator, raise_pending: The arguments.
        element_bytes: Size of an element in bytes; None where a dimension is unknown, so that elements may differ.
    """

    def __init__(self, iterator: Any, size: int | None, raise_pending: Callable[[], None]) -> None:
        self.iterator = iterator
        self._next = element_reader(iterator)
        self._remaining = size
        self.raise_pending = raise_pending
        self.element_bytes = element_bytes(iterator.element_spec)

    def __next__(self) -> Row:
        element: Row = self._read(self._next)
        if self._remaining is not None:
            self._remaining -= 1
        return element

    def reserve(self, count: int) -> int:
        """Skip the next elements, which the caller reads from `iterator`.

        `count`: The maximum number of elements; the last element of the pass is never among them.

        Returns: The number of elements, 0 or at least 2; 0 where elements may differ.
        """
        if self.element_bytes is None or not self._remaining:
            return 0
        count = min(count, self._remaining - 1)
        if count < 2:
            return 0
        self._remaining -= count
        return count

    def take_stacked(self, count: int, following: int) -> Stacked | None:
        """Return the next elements, stacked; None at the end of the pass and where elements may differ.

        `count`: The maximum number of elements; None is returned for fewer than 2. `following`: The number of elements
        that are likely to be read next. (Nothing is prepared here.)

        Raises: Exception raised while one of them was made; those before it are lost.
        """
        del following
        if self.element_bytes is None or not self._remaining or count < 2:
            return None
        count = min(count, self._remaining)
        gather = _compiled_gather(str(self.iterator.element_spec))
        columns, last = self._read(lambda: gather(self.iterator, tf.constant(count)))
        self._remaining -= count
        return _Gathered(columns, last)

    def _read(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except tf.errors.OpError:
            self.raise_pending()
            raise


@functools.cache
def _compiled_gather(spec: str) -> Callable[..., Row]:
    """Return `_gather`, compiled once for each spec and not for each pass."""
    del spec
    return graph_function(_gather)


def _gather(iterator: Any, count: Any) -> tuple[Row, Row]:
    columns = repeated(lambda index: tuple(tf.nest.flatten(next(iterator))), count)
    last = [column[-1] for column in columns]
    return tuple(tf.nest.pack_sequence_as(iterator.element_spec, list(parts)) for parts in (columns, last))
