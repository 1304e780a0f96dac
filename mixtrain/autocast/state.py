"""The autocast in force, in this thread and task only, and what it casts an operator's arguments to."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.autocast.operator_lists import RECURRENT_ROWS, TABLE, OperatorClass, normal
from mixtrain.dtype import DType, as_dtype, float32, float64, wider

_FLOATS: Final = ("float16", "bfloat16", "float32", "float64")


@dataclasses.dataclass(frozen=True)
class Autocast:
    """What an autocast does.

    Attributes:
        dtype: The half format.
        own_rows: The user's rows, which come before the table's: normalized names and their classes.
        covering: Whether all that is computed is in half already, as inside a recurrent layer.
    """

    dtype: DType
    own_rows: tuple[tuple[str, OperatorClass], ...] = ()
    covering: bool = False

    def listed(self, name: str) -> OperatorClass | None:
        """Return the class of the row of an operator, in any spelling; None where there is no row."""
        key = normal(name)
        return dict(self.own_rows).get(key) or TABLE.get(key)

    def class_of(self, name: str) -> OperatorClass:
        """Return the class of an operator as it counts here."""
        return "inputs" if self.covering else self.listed(name) or "inputs"

    def is_recurrent(self, name: str) -> bool:
        """Whether a layer computes wholly in half, with all that is inside it."""
        return normal(name) in RECURRENT_ROWS and self.listed(name) == "half"

    def target(self, kind: OperatorClass, formats: set[DType]) -> DType | None:
        """Return the format that an operator of a class computes in, given those of its float arguments.

        None where it takes its arguments as they come: float64 is never narrowed.
        """
        if not formats or kind == "inputs" or (float64 in formats and kind != "promote"):
            return None
        return {"half": self.dtype, "float32": float32, "promote": widest(formats)}[kind]

    def cast(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, numpy_as_float32: bool = False
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of an operator with its float tensors cast as its class says.

        Args:
            name: The operator, in any spelling.
            args: Its arguments; tensors in tuples, lists and dicts are seen.
            kwargs: Its keyword arguments.
            numpy_as_float32: Whether float64 arrays of NumPy's mean float32, as in `mixtrain.ops`.
        """
        kind = self.class_of(name)
        if kind == "inputs":
            return args, kwargs
        found = float_formats((args, kwargs), numpy_as_float32)
        dtype = self.target(kind, found)
        if dtype is None or found == {dtype}:
            return args, kwargs
        return _mapped(args, dtype, numpy_as_float32), _mapped(kwargs, dtype, numpy_as_float32)


# A stack, so that the same `autocast` object can be entered again, and by several threads.
_stack: ContextVar[tuple[Autocast | None, ...]] = ContextVar("mixtrain_autocast", default=())


def autocast_in_force() -> Autocast | None:
    """Return the autocast in force here, or None."""
    stack = _stack.get()
    return stack[-1] if stack else None


def enter_autocast(state: Autocast | None) -> None:
    """Put an autocast in force, or with None none, until `leave_autocast`."""
    _stack.set((*_stack.get(), state))


def leave_autocast() -> None:
    """Put back what was in force before the last `enter_autocast`."""
    _stack.set(_stack.get()[:-1])


@contextlib.contextmanager
def autocasting(state: Autocast | None) -> Iterator[None]:
    """Put an autocast in force, or with None none, until the end."""
    enter_autocast(state)
    try:
        yield
    finally:
        leave_autocast()


def widest(formats: set[DType]) -> DType:
    """Return the widest of float formats; float16 with bfloat16 gives float32."""
    first, *others = formats
    for other in others:
        first = wider(first, other)
    return first


def float_formats(values: Any, numpy_as_float32: bool = False) -> set[DType]:
    """Return the formats of the float tensors, variables and arrays in a structure."""
    formats = {_float_format(value, numpy_as_float32) for value in _leaves(values)}
    return {dtype for dtype in formats if dtype is not None}


def is_symbolic(values: Any) -> bool:
    """Whether a structure holds Keras's symbols: a model is being built, nothing is computed."""
    return any(isinstance(value, keras.KerasTensor) for value in _leaves(values))


def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, dict):
        values = tuple(values.values())
    if isinstance(values, (tuple, list)):
        for value in values:
            yield from _leaves(value)
    else:
        yield values


def _float_format(value: Any, numpy_as_float32: bool) -> DType | None:
    """Return the format of a float tensor, variable or array; None for all else."""
    if isinstance(value, np.ndarray):
        name = "float32" if numpy_as_float32 and value.dtype == np.float64 else value.dtype.name
    elif backend.is_tensor(value) or isinstance(value, keras.Variable):
        name = getattr(value.dtype, "name", value.dtype)
    else:
        return None
    return as_dtype(name) if name in _FLOATS else None


def _mapped(values: Any, dtype: DType, numpy_as_float32: bool) -> Any:
    """Return a structure with its float tensors cast."""

    def cast(value: Any) -> Any:
        found = _float_format(value, numpy_as_float32)
        if found is None or found == dtype:
            return value
        tensor = value if backend.is_tensor(value) else backend.to_tensor(value)
        return keep_mask(value, backend.cast_keeping_layout(tensor, dtype))

    return _map(cast, values)


def keep_mask(value: Any, cast_value: Any) -> Any:
    """Return a cast tensor with the mask that Keras's layers and losses read from the one it was made of."""
    mask = backend.mask_of(value) if backend.is_tensor(value) else None
    if mask is not None:
        backend.give_mask(cast_value, mask)
    return cast_value


def _map(function: Callable[[Any], Any], values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _map(function, value) for key, value in values.items()}
    if isinstance(values, (tuple, list)):
        mapped = [_map(function, value) for value in values]
        if hasattr(values, "_fields"):  # A named tuple.
            return type(values)(*mapped)
        return tuple(mapped) if isinstance(values, tuple) else mapped
    return function(values)
