"""Whether this process was forked from one in which the backend had started, whose threads it does not have."""

from __future__ import annotations

import os
from collections.abc import Callable


class _Fork:
    after_start = False


def note_forks(has_started: Callable[[], bool]) -> None:
    """Note from here on in each forked process whether the backend had started before.

    Args:
        has_started: Whether the backend has computed anything.
    """

    def note() -> None:
        _Fork.after_start = _Fork.after_start or has_started()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=note)


def forked_after_start() -> bool:
    """Whether what the backend computes here would wait forever, for threads that are in another process alone."""
    return _Fork.after_start
