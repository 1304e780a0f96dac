"""`OneThread`: a network is trained, evaluated or run by one thread at a time."""

from __future__ import annotations

import threading
import weakref
from types import TracebackType
from typing import Any, Final

from mixtrain import backend


class OneThread:
    """Refuses a second thread while a first one uses a network; the first may come again, as callbacks do.

    Training and prediction switch one network between two modes, and its weights are written in place: at the same time
    they would change each other's numbers.

    Example:
        >>> use = OneThread()
        >>> with use.of("Model.train"), use.of("Model.predict"):
        ...     pass
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._first = ""

    def of(self, where: str) -> _Use:
        """Return what a call holds while it uses the network.

        Args:
            where: The call, such as "Model.train".
        """
        return _Use(self, where)

    def begin(self, where: str) -> None:
        """Begin a call.

        Raises:
            RuntimeError: Another thread has begun one; or the process was forked after the backend had started.
        """
        if backend.forked_after_start():
            raise RuntimeError(
                f"{where}: expected a process in which the backend can start; got one forked from a process "
                "where it had started, whose threads stayed there. Write "
                'multiprocessing.get_context("spawn"), or fork before anything is computed.'
            )
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"{where}: expected a network that no other thread uses; got one that is busy in {self._first} of "
                "another thread. Write thread.join() before, or give each thread a network of its own."
            )
        self._first = self._first or where

    def end(self, where: str) -> None:
        """End a call."""
        if self._first == where:
            self._first = ""
        self._lock.release()


class _Use:
    __slots__ = ("_use", "_where")

    def __init__(self, use: OneThread, where: str) -> None:
        self._use, self._where = use, where

    def __enter__(self) -> None:
        self._use.begin(self._where)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._use.end(self._where)


_uses: Final[weakref.WeakKeyDictionary[Any, OneThread]] = weakref.WeakKeyDictionary()
_making: Final = threading.Lock()


def use_of(network: Any) -> OneThread:
    """Return the use of a network, one for all Models of it."""
    with _making:
        return _uses.setdefault(network, OneThread())
