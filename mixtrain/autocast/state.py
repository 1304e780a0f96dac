"""The autocast in force, in this thread and task only, and the dtype to which it casts the arguments of operators."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.autocast.operator_lists import RECURRENT_ROWS, TABLE, OperatorClass, normal
from mixtrain.dtype import DType, as_dtype, float32, float64, wider
from mixtrain.typing import Tensor, TensorLike, Tree

_FLOATS: Final = ("float16", "bfloat16", "float32", "float64")


@dataclasses.dataclass(frozen=True)
class Autocast:
    """The settings of an autocast.

    Attributes:
        dtype: The half dtype.
        own_rows: The user's rows, which override the table's: normalized names and their classes.
        covering: Whether everything computes in half, as inside a recurrent layer, so that operators cast nothing.
    """

    dtype: DType
    own_rows: tuple[tuple[str, OperatorClass], ...] = ()
    covering: bool = False

    def listed(self, name: str) -> OperatorClass | None:
        """Return the class of an operator's row, for any spelling of its name; None without a row."""
        key = normal(name)
        return dict(self.own_rows).get(key) or TABLE.get(key)

    def is_recurrent(self, name: str) -> bool:
        """Whether a layer computes entirely in half, including everything inside it."""
        return normal(name) in RECURRENT_ROWS and self.listed(name) == "half"

    def cast(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, numpy_as_float32: bool = False
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Cast the floating-point arguments of an operator to the dtype of its class; float64 is never narrowed.

        Tensors in tuples, lists and dicts are cast too. `numpy_as_float32`: Whether NumPy float64 arrays count as
        float32, as in `mixtrain.ops`.
        """
        kind = self.listed(name) or "inputs"
        if self.covering or kind == "inputs":
            return args, kwargs
        dtypes = float_dtypes((args, kwargs), numpy_as_float32)
        if not dtypes or (float64 in dtypes and kind != "promote"):
            return args, kwargs
        dtype = {"half": self.dtype, "float32": float32, "promote": widest(dtypes)}[kind]
        if dtypes == {dtype}:
            return args, kwargs
        return _cast_all(args, dtype, numpy_as_float32), _cast_all(kwargs, dtype, numpy_as_float32)


# A stack, so that the same `autocast` object can be entered again, and by several threads.
_stack: ContextVar[tuple[Autocast | None, ...]] = ContextVar("mixtrain_autocast", default=())


def autocast_in_force() -> Autocast | None:
    """Return the autocast in force here, or None."""
    stack = _stack.get()
    return stack[-1] if stack else None


def enter_autocast(state: Autocast | None) -> None:
    """Put an autocast in force until `leave_autocast`; None for none."""
    _stack.set((*_stack.get(), state))


def leave_autocast() -> None:
    """Restore what was in force before the last `enter_autocast`."""
    _stack.set(_stack.get()[:-1])


@contextlib.contextmanager
def autocasting(state: Autocast | None) -> Iterator[None]:
    """Put an autocast in force for the duration of a context; None for none."""
    enter_autocast(state)
    try:
        yield
    finally:
        leave_autocast()


def widest(dtypes: set[DType]) -> DType:
    """Return the widest of some floating-point dtypes; float32 for float16 with bfloat16."""
    return functools.reduce(wider, dtypes)


def float_dtypes(values: Tree, numpy_as_float32: bool = False) -> set[DType]:
    """Return the dtypes of the floating-point tensors, variables and arrays in a structure."""
    dtypes = {_float_dtype(value, numpy_as_float32) for value in _leaves(values)}
    return {dtype for dtype in dtypes if dtype is not None}


def is_symbolic(values: Tree) -> bool:
    """Whether a structure contains a `KerasTensor`: a model is being built, and nothing is computed."""
    return any(isinstance(value, keras.KerasTensor) for value in _leaves(values))


def _leaves(values: Tree) -> Iterator[Any]:
    if isinstance(values, dict):
        values = tuple(values.values())
    if isinstance(values, (tuple, list)):
        for value in values:
            yield from _leaves(value)
    else:
        yield values


def _float_dtype(value: Any, numpy_as_float32: bool) -> DType | None:
    """Return the dtype of a floating-point tensor, variable or array; None for any other value."""
    if isinstance(value, np.ndarray):
        name = "float32" if numpy_as_float32 and value.dtype == np.float64 else value.dtype.name
    elif backend.is_tensor(value) or isinstance(value, keras.Variable):
        name = getattr(value.dtype, "name", value.dtype)
    else:
        return None
    return as_dtype(name) if name in _FLOATS else None


def _cast_all(values: Tree, dtype: DType, numpy_as_float32: bool) -> Tree:
    """Cast the floating-point tensors of a structure."""

    def cast(value: Any) -> Any:
        if _float_dtype(value, numpy_as_float32) in (None, dtype):
            return value
        tensor = value if backend.is_tensor(value) else backend.to_tensor(value)
        return keep_mask(value, backend.cast_keeping_layout(tensor, dtype))

    return _map(cast, values)


def keep_mask(value: TensorLike, cast_value: Tensor) -> Tensor:
    """Return a cast tensor with the mask that Keras's layers and losses read from the original."""
    mask = backend.mask_of(value) if backend.is_tensor(value) else None
    if mask is not None:
        backend.set_mask(cast_value, mask)
    return cast_value


def _map(function: Callable[[Any], Any], values: Tree) -> Tree:
    if isinstance(values, dict):
        return {key: _map(function, value) for key, value in values.items()}
    if isinstance(values, (tuple, list)):
        mapped = [_map(function, value) for value in values]
        if hasattr(values, "_fields"):  # A named tuple.
            return type(values)(*mapped)
        return tuple(mapped) if isinstance(values, tuple) else mapped
    return function(values)
