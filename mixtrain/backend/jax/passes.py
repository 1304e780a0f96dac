"""One pass over a stream: its elements one by one, or several stacked, made and put on the device ahead of time."""

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

from mixtrain.backend.ahead import THREAD_NAME, read_ahead
from mixtrain.backend.aligned import aligned_copy
from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.rows import Source, bytes_of, gathered
from mixtrain.backend.rows import Failure

Row = tuple[Any, ...]

# What lies stacked on the device at a time, while as much is prepared.
MAX_BYTES: Final = 2**26
_SINGLES: Final = 8
_FEWEST_SINGLES: Final = 2
_SECONDS_TO_END: Final = 2.0
# What a loop reads comes in up to so many parts, so that the next is read while one runs; a call costs as much as
# some small steps, so parts have no fewer elements.
_PARTS: Final = 4
_FEWEST_OF_PART: Final = 32
# From so many bytes on an element is large: `device_put` takes less time than a compiled copy.
_LARGE: Final = 2**20


class Stacked(Sequence[Row]):
    """Several elements alike, kept as columns that are stacked; a single one is cut out when it is asked for.

    Args:
        columns: The columns, in the structure of an element, each with one row for each element.

    Attributes:
        first: The row of the first element.
    """

    def __init__(self, columns: Any) -> None:
        self.columns = columns
        self.first = 0
        self._rows = self._count = len(keras.tree.flatten(columns)[0])

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        place = np.int32(self.first + index % len(self))
        columns = keras.tree.flatten(self.columns)
        if not all(isinstance(column, jax.Array) for column in columns):
            found = [column[place] for column in columns]
        elif self._rows == _power(self._rows):
            found = _row(columns, place)
        else:  # It would be compiled for each length.
            found = jax.device_put([np.asarray(column)[place] for column in columns])
        return keras.tree.pack_sequence_as(self.columns, found)


class _StackedPart(Stacked):
    """Some neighbors of several elements alike: the columns stay whole, so that nothing is copied.

    Args:
        columns: As of `Stacked`.
        first: The row of the first element.
        count: How many elements there are.
    """

    def __init__(self, columns: Any, first: int, count: int) -> None:
        super().__init__(columns)
        self.first = first
        self._count = count


@jax.jit
def _row(columns: list[Any], place: Any) -> list[Any]:
    return [jax.lax.dynamic_index_in_dim(column, place, keepdims=False) for column in columns]


@dataclasses.dataclass
class _Chunk:
    """Elements that are ready: stacked on the host, and on the device; there, one alone has no axis for it.

    Attributes:
        used: How many of them were given out.
    """

    host: tuple[np.ndarray, ...]
    device: Row
    stacked: bool
    used: int = 0

    @property
    def left(self) -> int:
        """How many are left."""
        return len(self.host[0]) - self.used

    def next(self) -> Row:
        """Return the element that is given out next."""
        return on_device(tuple(column[self.used] for column in self.host)) if self.stacked else self.device

    def one(self) -> Row:
        """Give out an element."""
        element = self.next()
        self.used += 1
        return element

    def several(self, count: int) -> Row:
        """Give out elements, stacked."""
        whole = self.stacked and count == len(self.host[0])
        start, self.used = self.used, self.used + count
        return self.device if whole else on_device(tuple(column[start : self.used] for column in self.host))


class Pass(Iterator[Row]):
    """The elements of one pass, in any mixture of one by one and several at once.

    A thread makes them. While the reader works on what it got, the thread prepares as much again: what the reader is
    thought to ask for next.

    Args:
        source: Makes the elements.
        like: An element in the structure in which elements come out; by default a tuple of columns.
        failure: Where an exception of the source is left too when it is raised.
        singles: How many single elements are made ahead at most; fewer where they are large.

    Attributes:
        element_bytes: Size of an element in memory; None where it is not known. Elements may differ.
    """

    def __init__(
        self, source: Source, *, like: Row | None = None, failure: Failure | None = None, singles: int = _SINGLES
    ) -> None:
        self.element_bytes = self._known_bytes = source.element_bytes
        self._like = like
        self._failure = failure
        self._singles = singles
        self._requests: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._waiting: collections.deque[int] = collections.deque()
        self._held: _Chunk | None = None
        self._asked = 0
        self._any_length = describe_device().kind == "CPU"
        # A copy to a device with its own memory waits for what the device was asked to compute before it.
        self._chunks_ahead = 1 if self._any_length else 2
        self._chunks = read_ahead(_producer(source, self._requests, jax.config.jax_default_device), depth=singles + 1)
        self._end = weakref.finalize(self, self._requests.put, None)
        _open.add(self)

    def __next__(self) -> Row:
        chunk = self._front(0)
        element = chunk.one()
        self._held = chunk if chunk.left else None
        return self._arranged(element)

    def chunk(self, count: int) -> tuple[Row, int, int]:
        """Return the elements that are ready, stacked; none of them is given out before `use`.

        What makes them ready goes by the most that were ever wanted, so that whoever takes some of a chunk in turn sees
        chunks of one length, for which it is compiled.

        Args:
            count: How many are wanted at most; fewer come at the end of a chunk, at that of the pass, before an element
                of another shape, and where `count` would need much memory.

        Returns:
            ``(columns, first, count)``: which of the rows of the columns is the next element, and how many there are
            from there on of those that are wanted.

        Raises:
            StopIteration: There are no more.
            Exception: What making the next element raised.
        """
        chunk = self._ready(count)
        given = min(chunk.left, count)
        if given == chunk.left:
            for _ in range(self._chunks_ahead - len(self._waiting)):
                self._request(self._part(self._asked))
        return self._arranged(chunk.device), chunk.used, given

    def peek(self, count: int) -> Row:
        """Return the next element, of which `chunk` is then asked with that count."""
        return self._arranged(self._ready(count).next())

    def use(self, count: int) -> None:
        """Give out so many of the elements of `chunk`."""
        chunk = self._front(0)
        chunk.used += count
        self._held = chunk if chunk.left else None

    def together(self, count: int, following: int) -> Stacked | None:
        """Return the next elements, at most `count`; None where there are no more.

        On a GPU their number is a power of two, so that what is compiled for a number of them is compiled for few.

        Args:
            count: How many at most.
            following: How many are likely to be asked for once these have come.
        """
        length = (lambda count: count) if self._any_length else _power
        most = length(count)
        try:
            chunk = self._front(self._fitting(most))
        except StopIteration:
            return None
        given = length(min(most, chunk.left))
        following = length(following)
        if not (self._any_length and chunk.stacked):
            return Stacked(self._give(given, following=following))
        part = _StackedPart(self._arranged(chunk.device), chunk.used, given)
        chunk.used += given
        self._used(chunk, following)
        return part

    def close(self) -> None:
        """End the pass and what it reads from."""
        self._end()
        self._chunks.close()  # type: ignore[attr-defined]

    def _front(self, count: int) -> _Chunk:
        """Return what is given out next; where nothing is ready, ask for `count` elements stacked, 0 for single ones.
        """
        if self._held is not None:
            return self._held
        for _ in range(int(not self._waiting) if count else self._missing_singles()):
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
        self._held = _Chunk(host, device, stacked=bool(self._waiting.popleft()))
        return self._held

    def _ready(self, count: int) -> _Chunk:
        """Return what is given out next, stacked; where nothing is ready, as many as were ever wanted."""
        self._asked = max(self._asked, count)
        chunk = self._front(self._part(self._asked))
        if not chunk.stacked:
            chunk.device, chunk.stacked = on_device(chunk.host), True
        return chunk

    def _give(self, count: int, *, following: int) -> Row:
        """Return `count` elements of those that are ready; have `following` more made ready where they are the last."""
        chunk = self._front(count)
        columns = chunk.several(count)
        self._used(chunk, following)
        return self._arranged(columns)

    def _used(self, chunk: _Chunk, following: int) -> None:
        if not chunk.left:
            self._held = None
            if not self._waiting:
                self._request(self._fitting(following))

    def _request(self, count: int) -> None:
        self._waiting.append(count)
        self._requests.put(count)

    def _missing_singles(self) -> int:
        """Return how many single elements to ask for: several at once, for waking the thread costs more than one."""
        ahead = self._singles
        if self._known_bytes is not None:
            ahead = min(ahead, max(_FEWEST_SINGLES, MAX_BYTES // max(1, self._known_bytes)))
        return ahead - len(self._waiting) if len(self._waiting) <= ahead // 2 else 0

    def _part(self, count: int) -> int:
        """Return how many elements come at once where a loop is to take `count` in turn: all parts of one length."""
        fitting = self._fitting(count)
        even = (count // parts for parts in range(_PARTS, 1, -1) if count % parts == 0)
        return next((part for part in even if _FEWEST_OF_PART <= part < fitting), fitting)

    def _fitting(self, count: int) -> int:
        """Return how many elements come at once where `count` are to come: parts of one length where that can be."""
        if self._known_bytes is None:
            return 1
        most = max(1, MAX_BYTES // max(1, self._known_bytes))
        parts = math.ceil(count / most)
        even = (count // number for number in range(parts, 2 * parts) if count % number == 0)
        return next(even, math.ceil(count / parts))

    def _arranged(self, columns: Row) -> Row:
        return columns if self._like is None else keras.tree.pack_sequence_as(self._like, list(columns))


def on_device(columns: tuple[np.ndarray, ...]) -> Row:
    """Return columns as arrays of the device; text stays as it is."""
    if all(column.dtype.kind not in "USO" for column in columns):
        return jax.device_put(columns)  # type: ignore[no-any-return]
    return tuple(column if column.dtype.kind in "USO" else jax.device_put(column) for column in columns)


class DevicePut:
    """Puts elements on the device, one at a time.

    Small ones alike go by a compiled copy, which takes a quarter of `device_put`'s time. It is compiled for each form
    of an element, so it waits for two alike in a row. Large ones a CPU takes over where they lie: to copy 64 MiB into
    new memory of XLA's takes eight times as long as into NumPy's.
    """

    _before: tuple[Any, ...] | None = None
    _lent: Row = ()

    @property
    def ahead(self) -> bool:
        """Whether it is worth while to put an element before the step of the one before it.

        The device has a memory of its own, and copies into it while it computes what was asked for before.
        """
        return describe_device().kind != "CPU"

    def __call__(self, columns: tuple[np.ndarray, ...]) -> Row:
        """Put an element into whose arrays nobody will write any more."""
        form = tuple((column.shape, column.dtype) for column in columns)
        numeric = all(column.dtype.kind not in "USO" for column in columns)
        known, self._before = numeric and form == self._before, form
        return _copied(columns) if known and bytes_of(columns) < _LARGE else on_device(columns)

    def lend(self, columns: tuple[np.ndarray, ...]) -> Row:
        """Put an element into whose arrays their owner may write again once `take_back` has returned."""
        if self.ahead:
            self._lent = on_device(columns)
            return self._lent
        return self(tuple(map(aligned_copy if bytes_of(columns) >= _LARGE else np.array, columns)))

    def take_back(self) -> None:
        """Return when nothing that was lent is read any more."""
        jax.block_until_ready(self._lent)
        self._lent = ()


@jax.jit
def _copied(columns: Row) -> Row:
    return columns


def _producer(
    source: Source, requests: queue.SimpleQueue[int | None], device: Any
) -> Callable[[], Iterator[tuple[tuple[np.ndarray, ...], Row]]]:
    """Return what makes, in a thread, for each request elements on the host and on the device."""

    def produce() -> Iterator[tuple[tuple[np.ndarray, ...], Row]]:
        with contextlib.ExitStack() as closing:
            if device is not None:
                closing.enter_context(jax.default_device(device))  # A thread begins without the device that was chosen.
            read, put = gathered(source.open(closing)), DevicePut()
            for count in iter(requests.get, None):
                host = read(count or 1)
                if host is None:
                    return
                yield host, on_device(host) if count else put(tuple(column[0] for column in host))

    return produce


def _power(count: int) -> int:
    return 1 << (count.bit_length() - 1)


_open: weakref.WeakSet[Pass] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """End the threads before Python takes down what they use: one inside JAX would bring down the process."""
    for one in list(_open):
        one.close()
    for thread in threading.enumerate():
        if thread.name == THREAD_NAME:
            thread.join(_SECONDS_TO_END)
