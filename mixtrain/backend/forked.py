"""Detects whether this process was forked after the backend had started: it lacks the threads of the backend."""

from __future__ import annotations

import os
from collections.abc import Callable


class _Fork:
    after_start = False


def note_forks(has_started: Callable[[], bool]) -> None:
    """Note in each process that is forked from now on whether the backend had started before."""

    def note() -> None:
        _Fork.after_start = _Fork.after_start or has_started()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=note)


def forked_after_start() -> bool:
    """Whether the backend would hang here, waiting for threads that only the parent process has."""
    return _Fork.after_start
