"""One pass over a stream: its elements one by one, or several at once, which then come to Python in one call."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from mixtrain.engine.tensorflow.compile import graph_function

Row = tuple[Any, ...]


class Stacked(Sequence[Row]):
    """Several elements alike, kept as columns that are stacked; a single one is cut out when it is asked for.

    Args:
        columns: The columns, in the structure of an element, each with one row for each element.
    """

    def __init__(self, columns: Row) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return int(tf.nest.flatten(self.columns)[0].shape[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return tf.nest.map_structure(lambda column: column[index], self.columns)


class Pass(Iterator[Row]):
    """The elements of one pass.

    Args:
        iterator: The engine's own iterator.
        left: Number of elements, or None where it is unknown.
        raise_pending: Raises what Python code below the stream raised, if anything.

    Attributes:
        element_bytes: Size of an element in memory; None where shapes are open, so that elements may differ.
    """

    def __init__(self, iterator: Any, left: int | None, raise_pending: Callable[[], None]) -> None:
        self._iterator = iterator
        self._left = left
        self._raise_pending = raise_pending
        specs = tf.nest.flatten(iterator.element_spec)
        closed = all(isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined() for spec in specs)
        self.element_bytes = sum(math.prod(spec.shape) * spec.dtype.size for spec in specs) if closed else None

    def __next__(self) -> Row:
        element: Row = self._read(lambda: next(self._iterator))
        if self._left is not None:
            self._left -= 1
        return element

    def together(self, count: int) -> Stacked | None:
        """Return the next `count` elements, fewer at the end; None where that cannot be, or none are left.

        Raises:
            Exception: What making one of them raised; those before it are lost.
        """
        if self.element_bytes is None or not self._left:
            return None
        count = min(count, self._left)
        gather = _gather_of(str(self._iterator.element_spec))
        found = self._read(lambda: gather(self._iterator, tf.constant(count)))
        self._left -= count
        return Stacked(found)

    def _read(self, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except tf.errors.OpError:
            self._raise_pending()
            raise


@functools.cache
def _gather_of(spec: str) -> Callable[..., Row]:
    """Return the compiled gathering of elements of one kind: passes come and go."""
    del spec
    return graph_function(_gather)


def _gather(iterator: Any, count: Any) -> Row:
    first = next(iterator)

    def array(value: Any) -> Any:
        return tf.TensorArray(value.dtype, size=count, element_shape=value.shape).write(0, value)

    arrays = [array(value) for value in tf.nest.flatten(first)]

    def body(index: Any, *arrays: Any) -> tuple[Any, ...]:
        values = tf.nest.flatten(next(iterator))
        return (index + 1, *(array.write(index, value) for array, value in zip(arrays, values, strict=True)))

    _, *arrays = tf.while_loop(
        lambda index, *_: index < count, body, (tf.constant(1), *arrays), parallel_iterations=1
    )
    found: Row = tf.nest.pack_sequence_as(first, [array.stack() for array in arrays])
    return found
