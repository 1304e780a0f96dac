"""The tensors and helper functions of the expressions of tensor_cases.py, and how a result is written down.

Pure Python and NumPy: the recipe tests/data/make_tensor_reference.py runs it on MindSpore, the tests on mixtrain.
"""

from __future__ import annotations

import copy
import functools
import math
import operator
import pickle
import types
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

DTYPES: Final = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64",
)
FLOATS: Final = DTYPES[6:]
WIDE_UNSIGNED: Final = ("uint16", "uint32", "uint64")

# The operands: a and b of most operators, p and e the base and the exponent of a power.
OPERANDS: Final[dict[str, dict[str, list[Any]]]] = {
    "a": {"b": [True, False, True, False], "u": [7, 4, 9, 3], "i": [7, -4, 9, 3], "f": [7.5, -4.0, 9.0, 3.0]},
    "b": {"b": [True, True, True, True], "u": [2, 3, 2, 3], "i": [2, 3, -2, 3], "f": [2.0, 1.5, -2.0, 3.0]},
    "p": {"b": [True, False, True, False], "u": [2, 3, 1, 3], "i": [2, -3, 1, 3], "f": [2.5, -3.0, 0.5, 3.0]},
    "e": {"b": [True, True, False, True], "u": [2, 1, 3, 2], "i": [2, 1, 3, 2], "f": [2.0, 1.0, 3.0, 2.0]},
}


def arrays() -> dict[str, tuple[Any, str]]:
    """Return the values and the dtype of each tensor by name."""
    operands = {
        f"{name}_{dtype}": (values[dtype[0] if dtype != "bfloat16" else "f"], dtype)
        for name, values in OPERANDS.items() for dtype in (*DTYPES, *WIDE_UNSIGNED)
    }
    return operands | {
        "x": (np.arange(24).reshape(2, 3, 4), "float32"),
        "m": (np.arange(20).reshape(4, 5), "int32"),
        "v": ([0.5, -1.5, 2.0, 3.25, -4.0, 5.5], "float32"),
        "s": (2.5, "float32"),
        "z": (np.zeros((0, 3)), "float32"),
        "i0": (1, "int32"),
        "i1": ([2, 0, 1], "int32"),
        "i2": ([[0, 1], [1, 0]], "int64"),
        "neg": ([-1, 0], "int32"),
        "mask2": ([True, False], "bool"),
        "mask23": ([[True, False, True], [False, True, True]], "bool"),
        "mask45": (np.arange(20).reshape(4, 5) % 3 == 0, "bool"),
        "mask6": ([True, False, True, False, False, True], "bool"),
        "never": ([False] * 6, "bool"),
        "c": ([[1.5, -2.0, 0.25], [3.0, 0.5, -0.75]], "float32"),
        "d": ([[0.5, 2.0, -1.0], [1.5, -0.5, 4.0]], "float32"),
        "pos": ([[0.5, 2.0, 1.0], [1.5, 0.25, 4.0]], "float32"),
        "unit": ([[0.5, -0.25, 0.75], [0.0, 0.9, -0.6]], "float32"),
        "q": ([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]], "float32"),
        "odd": ([[0.5, math.nan, 1.5], [math.inf, -2.5, -math.inf]], "float32"),
        "half": ([[1.5, -2.0, 0.25], [3.0, 0.5, -0.75]], "float16"),
        "n": ([[1, 4, 2], [2, 0, 3]], "int32"),
        "ids": ([0, 1, 0], "int32"),
        "t3": ([1.0, 2.0, 3.0], "float32"),
        "bits": ([[6, 3, 12], [5, 10, 1]], "int32"),
    }


def put(tensor: Any, index: Any, value: Any) -> Any:
    """Assign to an index of a tensor; return the tensor."""
    tensor[index] = value
    return tensor


def put_in_part(tensor: Any, part: Any, index: Any, value: Any) -> Any:
    """Assign to an index of a view of a tensor; return the tensor."""
    piece = tensor[part]
    piece[index] = value
    return tensor


def grow(tensor: Any, index: Any, function: Callable[[Any, Any], Any], value: Any) -> Any:
    """Assign in place to a view, as `tensor[index] += value` does for `op.iadd`; return the tensor."""
    tensor[index] = function(tensor[index], value)
    return tensor


def first(tensor: Any, function: Callable[[Any], Any]) -> Any:
    """Call a function that writes into a tensor; return the tensor."""
    function(tensor)
    return tensor


def kind(tensor: Any) -> Any:
    """Return the dtype and shape of random samples."""
    return (tensor.dtype, tuple(tensor.shape))


HELPERS: Final[dict[str, Any]] = {
    "np": np, "op": operator, "math": math, "pickle": pickle, "copy": copy, "S": np.s_, "put": put,
    "put_in_part": put_in_part, "grow": grow, "first": first, "kind": kind,
}


@functools.cache
def _compiled(expression: str) -> types.CodeType:
    return compile(expression, expression, "eval")


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def evaluate(expression: str, library: Any) -> Any:
    """Return the value of an expression, with new tensors of `library.Tensor`."""
    code, values = _compiled(expression), arrays()
    names = {
        name: library.Tensor(values[name][0], getattr(library, spelled(values[name][1])))
        for name in set(_names(code)) if name in values
    }
    return eval(code, {"ms": library, "T": library.Tensor, **HELPERS, **names})


def spelled(dtype: str) -> str:
    """Return the library's attribute for a dtype."""
    return "bool_" if dtype == "bool" else dtype


# Significant digits that a float of each dtype is written with.
DIGITS: Final = {"float16": 5, "bfloat16": 4, "float32": 9, "float64": 17}


def numbers(array: Any, dtype: str) -> list[Any]:
    """Return the elements of an array in order, floats with as many digits as their dtype has."""
    flat = np.asarray(array).reshape(-1)
    if dtype in DIGITS:
        floats = [float(f"{value:.{DIGITS[dtype]}g}") for value in flat.astype(np.float64).tolist()]
        return [int(value) if value.is_integer() and abs(value) < 1e15 else value for value in floats]
    return [int(value) if isinstance(value, bool) else value for value in flat.tolist()]


def recorded(value: Any, library: Any, name_of: Callable[[Any], str] = str) -> Any:
    """Return a result in JSON's terms.

    A tensor is `[dtype, shape, elements]`, dtypes by MindSpore's names ('Float32'); anything else is a dict with the
    name of its type: `{"int": 3}`, `{"tuple": [...]}`, `{"array": [dtype, shape, elements]}`, `{"dtype": "Float32"}`.
    """
    if isinstance(value, library.Tensor):
        dtype = name_of(value.dtype)
        return [dtype, list(value.shape), numbers(value.asnumpy(), dtype.lower())]
    if isinstance(value, (np.ndarray, np.generic)):
        dtype = value.dtype.name
        return {"array": [dtype, list(value.shape), numbers(value, dtype)]}
    if type(value) in {type(getattr(library, spelled(dtype))) for dtype in DTYPES}:
        return {"dtype": name_of(value)}
    if isinstance(value, (tuple, list)):
        return {"tuple" if isinstance(value, tuple) else "list": [recorded(item, library, name_of) for item in value]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {type(value).__name__: value}
    return {type(value).__name__: str(value)}
