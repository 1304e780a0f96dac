"""One pass over a stream: elements one by one or stacked, made and copied to the device ahead of time."""

from __future__ import annotations

import atexit
import collections
import contextlib
import dataclasses
import math
import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import jax
import keras
import numpy as np

from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.elements import DevicePut, Row, Stacked, StackedPart, bytes_of, on_device, power_of_two
from mixtrain.backend.jax.tensor import refuse_unstorable
from mixtrain.backend.refused_batch import Unstorable
from mixtrain.data_backend.ahead import THREAD_NAME, read_ahead
from mixtrain.data_backend.jax.rows import Source, gathered
from mixtrain.data_backend.rows import Failure

# The maximum size of the stacked elements on the device, while as many are prepared.
MAX_BYTES: Final = 2**26
_SINGLES: Final = 8
_MIN_SINGLES: Final = 2
_JOIN_TIMEOUT: Final = 2.0
# The elements of a loop come in up to so many parts, so that the next part is read while one runs. A call costs as
# much as some small steps, so a part has a minimum number of elements.
_MAX_PARTS: Final = 4
_MIN_PART: Final = 32


@dataclasses.dataclass
class _Chunk:
    """Elements that are ready, on the host and on the device.

    Attributes:
        host: The elements, stacked.
        device: The same on the device; a single element where not `stacked`.
        stacked: Whether `device` has an axis for the elements.
        used: The number of elements that were returned.
    """

    host: tuple[np.ndarray, ...]
    device: Row
    stacked: bool
    used: int = 0

    @property
    def remaining(self) -> int:
        """The number of elements that were not returned yet."""
        return len(self.host[0]) - self.used

    def peek(self) -> Row:
        """Return the next element, which stays in the chunk."""
        return on_device(tuple(column[self.used] for column in self.host)) if self.stacked else self.device

    def take_one(self) -> Row:
        """Take the next element."""
        element = self.peek()
        self.used += 1
        return element

    def take(self, count: int) -> Row:
        """Take the next elements, stacked."""
        all_rows = self.stacked and count == len(self.host[0])
        start, self.used = self.used, self.used + count
        return self.device if all_rows else on_device(tuple(column[start : self.used] for column in self.host))


class Pass(Iterator[Row]):
    """The elements of one pass, one by one, stacked, or in any mixture of both.

    A thread makes them. While the reader works on some, the thread prepares as many as it is likely to read next.

    `source`: Makes the elements. `like`: An element whose structure the returned elements have; by default a tuple of
    columns. `failure`: Stores an exception of the source too, besides raising it. `singles`: The maximum number of
    single elements made ahead; fewer where they are large. `names`: The names of the columns, for errors.

    Attributes:
        element_bytes: Size of an element in bytes; None where it is unknown. Elements may differ.
    """

    def __init__(
        self, source: Source, *, like: Row | None = None, failure: Failure | None = None, singles: int = _SINGLES,
        names: Sequence[str] | None = None,
    ) -> None:
        self.element_bytes = self._known_bytes = source.element_bytes
        self._like = like
        self._failure = failure
        self._singles = singles
        self._requests: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._pending: collections.deque[int] = collections.deque()
        self._current: _Chunk | None = None
        self._max_count = 0
        self._any_length = describe_device().kind == "CPU"
        # A copy to a device with its own memory waits for the computations that were enqueued before it.
        self._chunks_ahead = 1 if self._any_length else 2
        self._chunks = read_ahead(
            _producer(source, self._requests, jax.config.jax_default_device, names), depth=singles + 1
        )
        self._end = weakref.finalize(self, self._requests.put, None)
        _open.add(self)

    def __next__(self) -> Row:
        chunk = self._front(0)
        element = chunk.take_one()
        self._current = chunk if chunk.remaining else None
        return self._pack(element)

    def peek_chunk(self, count: int) -> tuple[Row, int, int]:
        """Return the elements that are ready, stacked; `consume` then takes some of them.

        The length of chunks depends on the largest `count` so far, so that a reader that takes parts of a chunk gets
        chunks of one length, for which it is compiled.

        `count`: The maximum number of elements; there are fewer at the end of a chunk or of the pass, before an element
        of another shape, and where `count` would need much memory.

        Returns: ``(columns, first, count)``: the row of the next element in the columns, and the number of elements
        from there on.

        Raises: StopIteration if the pass has ended. Exception raised while the next element was made.
        """
        chunk = self._stacked_chunk(count)
        available = min(chunk.remaining, count)
        if available == chunk.remaining:
            for _ in range(self._chunks_ahead - len(self._pending)):
                self._request(self._part_size(self._max_count))
        return self._pack(chunk.device), chunk.used, available

    def peek(self, count: int) -> Row:
        """Return the next element without taking it; the next call must be `peek_chunk(count)`."""
        return self._pack(self._stacked_chunk(count).peek())

    def consume(self, count: int) -> None:
        """Take the next `count` elements of `peek_chunk`."""
        chunk = self._front(0)
        chunk.used += count
        self._current = chunk if chunk.remaining else None

    def take_stacked(self, count: int, following: int) -> Stacked | None:
        """Return the next elements, at most `count`; None at the end of the pass.

        On a GPU their number is a power of two, so that functions are compiled for few different numbers.

        `count`: The maximum number of elements. `following`: The number of elements that are likely to be read next.
        """
        length = (lambda count: count) if self._any_length else power_of_two
        max_length = length(count)
        try:
            chunk = self._front(self._chunk_size(max_length))
        except StopIteration:
            return None
        available = length(min(max_length, chunk.remaining))
        following = length(following)
        if self._any_length and chunk.stacked:
            elements: Stacked = StackedPart(self._pack(chunk.device), chunk.used, available)
            chunk.used += available
        else:
            elements = Stacked(self._pack(chunk.take(available)))
        if not chunk.remaining:
            self._current = None
            if not self._pending:
                self._request(self._chunk_size(following))
        return elements

    def close(self) -> None:
        """End the pass and close its source."""
        self._end()
        self._chunks.close()  # type: ignore[attr-defined]

    def _front(self, count: int) -> _Chunk:
        """Return the current chunk; if none is ready, request `count` stacked elements, or single ones if it is 0."""
        if self._current is not None:
            return self._current
        for _ in range(int(not self._pending) if count else self._missing_singles()):
            self._request(count)
        try:
            host, device = next(self._chunks)
        except StopIteration:
            raise
        except BaseException as error:
            if self._failure is not None:
                self._failure.error = error
            raise
        self._known_bytes = bytes_of(host) // len(host[0])
        self._current = _Chunk(host, device, stacked=bool(self._pending.popleft()))
        return self._current

    def _stacked_chunk(self, count: int) -> _Chunk:
        """Return the current chunk, stacked; if none is ready, request as many elements as the largest count so far."""
        self._max_count = max(self._max_count, count)
        chunk = self._front(self._part_size(self._max_count))
        if not chunk.stacked:
            chunk.device, chunk.stacked = on_device(chunk.host), True
        return chunk

    def _request(self, count: int) -> None:
        self._pending.append(count)
        self._requests.put(count)

    def _missing_singles(self) -> int:
        """Return how many single elements to request: several at once, since waking the thread costs more than one."""
        ahead = self._singles
        if self._known_bytes is not None:
            ahead = min(ahead, max(_MIN_SINGLES, MAX_BYTES // max(1, self._known_bytes)))
        return ahead - len(self._pending) if len(self._pending) <= ahead // 2 else 0

    def _part_size(self, count: int) -> int:
        """Return the chunk size for a loop that takes `count` elements in parts of equal length."""
        limit = self._chunk_size(count)
        even = (count // parts for parts in range(_MAX_PARTS, 1, -1) if count % parts == 0)
        return next((size for size in even if _MIN_PART <= size < limit), limit)

    def _chunk_size(self, count: int) -> int:
        """Return the chunk size within `MAX_BYTES` for `count` elements, in chunks of equal length if possible."""
        if self._known_bytes is None:
            return 1
        max_elements = max(1, MAX_BYTES // max(1, self._known_bytes))
        parts = math.ceil(count / max_elements)
        even = (count // divisor for divisor in range(parts, 2 * parts) if count % divisor == 0)
        return next(even, math.ceil(count / parts))

    def _pack(self, columns: Row) -> Row:
        return columns if self._like is None else keras.tree.pack_sequence_as(self._like, list(columns))


def refuse_unstorable_columns(columns: Row, names: Sequence[str] | None) -> None:
    """Refuse elements with integers that do not fit where the device stores them; text stays on the host.

    Raises: Unstorable if there is one; the error has the name, or else the index, of its column.
    """
    for index, column in enumerate(columns):
        try:
            if column.dtype.kind in "iu":
                refuse_unstorable(column)
        except Unstorable as error:
            raise error.of(f"column {index if names is None else repr(names[index])}") from None


def _producer(
    source: Source, requests: queue.SimpleQueue[int | None], device: Any, names: Sequence[str] | None
) -> Callable[[], Iterator[tuple[tuple[np.ndarray, ...], Row]]]:
    """Return a generator function for a thread: it yields for each request elements on the host and on the device."""

    def produce() -> Iterator[tuple[tuple[np.ndarray, ...], Row]]:
        with contextlib.ExitStack() as closing:
            if device is not None:
                closing.enter_context(jax.default_device(device))  # New threads have no default device.
            read, put = gathered(source.open(closing)), DevicePut()
            for count in iter(requests.get, None):
                host = read(count or 1)
                if host is None:
                    return
                refuse_unstorable_columns(host, names)
                yield host, on_device(host) if count else put(tuple(column[0] for column in host))

    return produce


_open: weakref.WeakSet[Pass] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """End the threads before Python shuts down: one that is inside JAX would crash the process."""
    for elements in list(_open):
        elements.close()
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join(_JOIN_TIMEOUT)
