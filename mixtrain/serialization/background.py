"""Background writing: one thread writes one file at a time, before the next one is written or read."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any, Final

_EXECUTOR: Final = concurrent.futures.ThreadPoolExecutor(1, "mixtrain-save-checkpoint")
_pending: list[concurrent.futures.Future[None]] = []


def in_background(write: Callable[..., None], *args: Any) -> None:
    _pending.append(_EXECUTOR.submit(write, *args))


def async_ckpt_thread_status() -> bool:
    """Whether the thread is writing a checkpoint. Example: ``async_ckpt_thread_status()``."""
    return not all(pending.done() for pending in _pending)


def finish_writing() -> None:
    """Wait for the files that are being written."""
    while _pending:
        _pending.pop(0).result()
