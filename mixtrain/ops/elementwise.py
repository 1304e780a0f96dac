"""Elementwise functions: dtype promotion, channels-last views, and the public functions made from table rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.dtype import bool_, float32, int32, is_complex, is_float
from mixtrain.ops import nhwc
from mixtrain.ops.inputs import as_floats, is_number, pair, tensor, tensor_dtype
from mixtrain.typing import Tensor, TensorLike, Tree


def unary(where: str, compute: Callable[[Tensor], Tensor], x: TensorLike, *, floats: bool = False) -> Tensor:
    """Apply `compute` to every element; with `floats`, integers are cast to float32 first."""
    x = as_floats(where, x) if floats else tensor(where, x)
    return nhwc.elementwise(compute, x) if isinstance(x, backend.TensorBase) else compute(x)


def binary(
    where: str, compute: Callable[[Tensor, Tensor], Tensor], x: TensorLike, y: TensorLike, *, floats: bool = False,
    tensors: bool = False,
) -> Tensor:
    """Apply `compute` to every pair of elements; with `floats`, integers are cast to float32 first.

    Two bools are computed as 0 and 1, and the result is cast back to bool. With `tensors`, numbers become tensors of
    the dtype of the other argument, for functions that would choose a dtype for them.
    """
    x, y = pair(where, x, y)
    if floats:
        x, y = _as_float(x), _as_float(y)
    elif _is_bool(x) and _is_bool(y):
        return keras.ops.cast(compute(_as_int(x), _as_int(y)), bool_)
    if tensors and is_number(y):
        y = backend.to_tensor(y, tensor_dtype(x))
    if tensors and is_number(x):
        x = backend.to_tensor(x, tensor_dtype(y))
    if is_number(y):
        return nhwc.elementwise(lambda value: compute(value, y), x)
    if is_number(x):
        return nhwc.elementwise(lambda value: compute(x, value), y)
    return nhwc.elementwise(compute, x, y)


def _is_bool(x: Any) -> bool:
    return isinstance(x, (bool, np.bool_)) if is_number(x) else tensor_dtype(x) == bool_


def _as_int(x: Tensor) -> Tensor:
    return int(x) if is_number(x) else keras.ops.cast(x, int32)


def _as_float(x: Tensor) -> Tensor:
    if is_number(x):
        return x if isinstance(x, complex) else float(x)
    return x if is_float(x.dtype) or is_complex(x.dtype) else backend.cast_keeping_layout(x, float32)


def unary_function(
    name: str, compute: Callable[[Tensor], Tensor], doc: str, *, floats: bool = True, parameter: str = "input"
) -> Callable[..., Tensor]:
    """Return the public function of a table row of name, computation and first sentence of the docstring.

    With `floats` integers are cast to float32; `parameter` is MindSpore's name of the parameter, "input" or "x".
    """

    def of_input(input: TensorLike) -> Tensor:
        return unary(f"ops.{name}", compute, input, floats=floats)

    def of_x(x: TensorLike) -> Tensor:
        return unary(f"ops.{name}", compute, x, floats=floats)

    return named(of_x if parameter == "x" else of_input, name, f"{doc} Example: ``ops.{name}(x)``.")


def binary_function(
    name: str, compute: Callable[[Tensor, Tensor], Tensor], doc: str, *, floats: bool = False, tensors: bool = False
) -> Callable[..., Tensor]:
    """Return the public function of a table row with the parameters `input` and `other`; see `unary_function`.

    `tensors`: whether `compute` needs tensors in place of numbers.
    """

    def of_two(input: TensorLike, other: TensorLike) -> Tensor:
        return binary(f"ops.{name}", compute, input, other, floats=floats, tensors=tensors)

    return named(of_two, name, f"{doc} Example: ``ops.{name}(x, y)``.")


def renamed(function: Callable[..., Any], name: str, **parameters: str) -> Callable[..., Any]:
    """Return `function` under another of MindSpore's names for it.

    `parameters`: The names there of those of its parameters that have others here.
    """
    own = {there: here for here, there in parameters.items()}
    signature = inspect.signature(function)
    signature = signature.replace(parameters=[
        parameter.replace(name=own.get(key, key)) for key, parameter in signature.parameters.items()
    ])

    def alias(*args: Any, **kwargs: Any) -> Tree:
        if parameters and kwargs:
            signature.bind(*args, **kwargs)
            kwargs = {parameters.get(key, key): value for key, value in kwargs.items()}
        return function(*args, **kwargs)

    alias.__signature__ = signature  # type: ignore[attr-defined]
    alias.__annotations__ = {own.get(key, key): kind for key, kind in function.__annotations__.items()}
    call = f"ops.{name}({', '.join(signature.parameters)})"
    return named(alias, name, f"Another name of `{function.__name__}`. Example: ``{call}``.")


def named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """Return `function` with the name and docstring of the operation `name`."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def keep_integers(compute: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return a function that applies `compute` to floats and returns integers unchanged."""

    def apply(x: Tensor) -> Tensor:
        return compute(x) if is_float(x.dtype) else keras.ops.convert_to_tensor(x)

    return apply
