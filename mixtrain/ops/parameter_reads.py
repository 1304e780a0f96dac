"""How Parameters are read, set for the duration of a call, in this thread only: in which dtype, or which values."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import keras

from mixtrain.dtype import DType, bool_, is_complex, is_float
from mixtrain.typing import Tensor, Variable


class Trial:
    """A call with integers as floats, of which no Parameter keeps anything.

    `dtype`: The float dtype in which integers are read. `values`: By the identity of a Parameter, the value that it has
    in the call: one to differentiate by, or the last one that was written.
    """

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype
        self.values: dict[int, Tensor] = {}

    def dtype_of(self, stored: DType) -> DType:
        """Return the dtype that a Parameter has in the call, for the one it is stored in."""
        return stored if is_float(stored) or is_complex(stored) or stored == bool_ else self.dtype

    def value_of(self, parameter: Variable, stored: Tensor) -> Tensor:
        """Return the value that a Parameter has in the call; outside it has the value `stored`."""
        if id(parameter) in self.values:
            return self.values[id(parameter)]
        return keras.ops.cast(stored, parameter.stored_dtype)


class _Scope(threading.local):
    dtype: DType | None = None
    trial: Trial | None = None


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


@contextlib.contextmanager
def on_trial(dtype: DType) -> Iterator[Trial]:
    """Read integer Parameters as `dtype` in the context, and leave no Parameter what is written there."""
    outer = _scope.trial
    _scope.trial = Trial(dtype)
    try:
        yield _scope.trial
    finally:
        _scope.trial = outer


def trial() -> Trial | None:
    """Return the trial that runs in this thread, or None."""
    return _scope.trial
