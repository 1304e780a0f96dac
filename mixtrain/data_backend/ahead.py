"""Reading ahead: a thread makes the next elements while the reader uses the current one."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

THREAD_NAME: Final = "mixtrain-read-ahead"


def read_ahead(produce: Callable[[], Iterator[Any]], *, depth: int = 4) -> Iterator[Any]:
    """Yield the elements of a generator that runs in a thread of its own.

    `produce`: A generator function; called, run and closed in the thread. `depth`: The maximum number of elements that
    wait for the reader.

    Raises: BaseException raised by `produce`, after the elements before it.
    """
    ready: queue.Queue[tuple[bool, Any]] = queue.Queue(depth)
    stop = threading.Event()
    worker = threading.Thread(target=_work, args=(produce, ready, stop), name=THREAD_NAME, daemon=True)
    worker.start()
    try:
        while True:
            is_element, value = ready.get()
            if is_element:
                yield value
            elif value is None:
                return
            else:
                raise value
    finally:
        value = None  # The traceback of an exception refers to this frame: a cycle until collected.
        stop.set()
        with contextlib.suppress(queue.Empty):
            ready.get_nowait()  # Wakes a worker that waits for space in the queue, which then sees `stop`.


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
