"""`OneThread`: lets only one thread at a time train, evaluate or run a network."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Final

from mixtrain import backend
from mixtrain.typing import Network


class OneThread:
    """Refuses a second thread while another uses a network; nested calls of one thread, as in callbacks, are allowed.

    Training and prediction switch a network between two modes, and training writes its weights in place: calls at the
    same time would change each other's results.

    Example:
        >>> use = OneThread()
        >>> with use.of("Model.train"), use.of("Model.predict"):
        ...     pass
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # The outermost call, for the error in other threads.
        self._call = ""

    @contextlib.contextmanager
    def of(self, where: str) -> Iterator[None]:
        """Use the network for the duration of a call, such as "Model.train".

        Raises: RuntimeError if another thread uses it, or the process was forked after the backend had started.
        """
        if backend.forked_after_start():
            raise RuntimeError(
                f"{where}: expected a process in which the backend can start; got one forked from a process "
                "where it had started, whose threads stayed there. Write "
                'multiprocessing.get_context("spawn"), or fork before anything is computed.'
            )
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(
                f"{where}: expected a network that no other thread uses; got one that is busy in {self._call} of "
                "another thread. Write thread.join() before, or give each thread a network of its own."
            )
        outer, self._call = self._call, self._call or where
        try:
            yield
        finally:
            self._call = outer
            self._lock.release()


_uses: Final[weakref.WeakKeyDictionary[Any, OneThread]] = weakref.WeakKeyDictionary()
_uses_lock: Final = threading.Lock()


def use_of(network: Network) -> OneThread:
    """Return the `OneThread` of a network, shared by all Models of it."""
    with _uses_lock:
        return _uses.setdefault(network, OneThread())
