"""Reading ahead: a thread prepares the next elements while the reader works on this one."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

THREAD_NAME: Final = "mixtrain-read-ahead"


def read_ahead(produce: Callable[[], Iterator[Any]], *, depth: int = 4) -> Iterator[Any]:
    """Yield what `produce` yields, made in a thread of its own.

    Args:
        produce: A generator function; called, run and closed in the thread.
        depth: How many elements may wait for the reader.

    Raises:
        BaseException: Whatever `produce` raised, as itself and in its place in the order.
    """
    ready: queue.Queue[tuple[bool, Any]] = queue.Queue(depth)
    stop = threading.Event()
    worker = threading.Thread(target=_work, args=(produce, ready, stop), name=THREAD_NAME, daemon=True)
    worker.start()
    try:
        while True:
            more, value = ready.get()
            if more:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        value = None  # An exception knows this frame, which would know it: both would stay until collected.
        stop.set()
        with contextlib.suppress(queue.Empty):
            ready.get_nowait()  # Lets a worker that waits for an empty queue see `stop`.


def _work(produce: Callable[[], Iterator[Any]], ready: queue.Queue[tuple[bool, Any]], stop: threading.Event) -> None:
    """Put ``(True, element)`` for each element, then ``(False, error or None)``, until `stop` is set."""
    try:
        with contextlib.closing(produce()) as elements:  # type: ignore[type-var]
            for element in elements:
                ready.put((True, element))
                if stop.is_set():
                    return
    except BaseException as error:
        ready.put((False, error))
    else:
        ready.put((False, None))
