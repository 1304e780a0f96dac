"""`now`: what this thread is tracing with JAX; other threads trace functions of their own."""

from __future__ import annotations

import threading
from typing import Any


class _Now(threading.local):
    def __init__(self) -> None:
        self.scopes: list[Any] = []  # The open scopes of variables, the outermost first.
        self.path: Any = None  # The path through the function, where tensors decide branches.
        self.spanning = False  # Whether all processes run the function, so that it may communicate.


now = _Now()
