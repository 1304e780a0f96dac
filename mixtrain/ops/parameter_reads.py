"""How Parameters are read, set for the duration of a call, in this thread only: in which dtype, or which values."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping

import keras

from mixtrain.dtype import DType, bool_, is_complex, is_float
from mixtrain.typing import Tensor, Variable


class Trial:
    """A call with integers as floats, of which no Parameter keeps anything.

    `dtype`: The float dtype in which integers are read. `sources`: By the identity of a Parameter to differentiate by,
    the value that it has at first.
    """

    def __init__(self, dtype: DType, sources: Mapping[int, Tensor]) -> None:
        self.dtype = dtype
        self._sources, self._values = sources, dict(sources)

    def dtype_of(self, stored: DType) -> DType:
        """Return the dtype that a Parameter has in the call, for the one it is stored in."""
        return stored if is_float(stored) or is_complex(stored) or stored == bool_ else self.dtype

    def value_of(self, parameter: Variable, stored: Tensor) -> Tensor:
        """Return the value that a Parameter has in the call; outside it has the value `stored`."""
        if id(parameter) in self._values:
            return self._values[id(parameter)]
        return keras.ops.cast(stored, parameter.stored_dtype)

    def write(self, parameter: Variable, value: Tensor) -> None:
        """Set the value that a Parameter has in the call; what reads it has gradients by the Parameter, not by this."""
        value, source = keras.ops.stop_gradient(value), self._sources.get(id(parameter))
        self._values[id(parameter)] = value if source is None else value + (source - keras.ops.stop_gradient(source))


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
def on_trial(dtype: DType, sources: Mapping[int, Tensor]) -> Iterator[None]:
    """Read integer Parameters as `dtype` in the context, and leave no Parameter what is written there.

    `sources`: As of `Trial`.
    """
    outer = _scope.trial
    _scope.trial = Trial(dtype, sources)
    try:
        yield
    finally:
        _scope.trial = outer


def trial() -> Trial | None:
    """Return the trial that runs in this thread, or None."""
    return _scope.trial
