"""The dtype in which Parameters are read, set by a Cell for the duration of its call, in this thread only."""

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
    """Read every floating-point `Parameter` as `dtype` in the context; None reads them in their own dtype."""
    outer = _scope.dtype
    _scope.dtype = dtype
    try:
        yield
    finally:
        _scope.dtype = outer


def parameter_read_dtype() -> DType | None:
    """Return the dtype in which Parameters are currently read, or None for their own."""
    return _scope.dtype
