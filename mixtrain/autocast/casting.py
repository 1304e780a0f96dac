"""The dtype that Parameters are read in: set by a Cell for the time of its call, in this thread only."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from mixtrain.dtype import DType


class _Scope(threading.local):
    dtype: DType | None = None


_scope = _Scope()


@contextlib.contextmanager
def parameters_read_as(dtype: DType | None) -> Iterator[None]:
    """Read every float `Parameter` as `dtype` until the end; None reads them as they are stored."""
    outer = _scope.dtype
    _scope.dtype = dtype
    try:
        yield
    finally:
        _scope.dtype = outer


def parameter_read_dtype() -> DType | None:
    """Return the dtype that Parameters are read in now, or None for their own."""
    return _scope.dtype
