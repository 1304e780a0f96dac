"""What tensors print: NumPy's text of the values for `str`, MindSpore's own layout for `repr`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mixtrain.dtype import DType, bfloat16, bool_, is_complex, is_float

# From so many elements on an axis on, three at each end are written; a vector is written whole up to more of them.
_LONG: Final = 6
_ENDS: Final = 3
_LONG_VECTOR: Final = 1000
# How many elements of a vector a line has.
_IN_LINE: Final = 12
_IN_LINE_OF_INTEGERS: Final = 24


def text_of(values: np.ndarray, dtype: DType) -> str:
    """Return what `print` writes of a tensor's values."""
    if dtype != bfloat16:
        return str(values)
    if not values.ndim:
        return f"{float(values):f}"
    return np.array2string(values, formatter={"float_kind": lambda value: f"{value:f}"})


def described(values: np.ndarray, dtype: DType) -> str:
    """Return the `repr` of a tensor: its shape, dtype and values, long axes abbreviated.

    Example:
        >>> described(np.array([1.5, 2.0], np.float32), DType("float32"))
        'Tensor(shape=[2], dtype=Float32, value= [ 1.50000000e+00,  2.00000000e+00])'
    """
    line = "\n" if values.ndim > 1 else " "
    text = _written(values, dtype) if values.size else ""
    return f"Tensor(shape={list(values.shape)}, dtype={dtype}, value={line}{text})"


def _written(values: np.ndarray, dtype: DType) -> str:
    write = _writer(dtype)
    if not values.ndim:
        return write(values.item())
    kept = _kept(values)
    if is_float(dtype) and dtype != bfloat16:
        digits = 4 if dtype == "float16" else 8
        return _rows(values, kept, lambda value: f"{value:{digits + 7}.{digits}e}", _IN_LINE, "")
    if is_complex(dtype):
        return _rows(values, kept, _complex, _IN_LINE, "")
    if dtype == bool_:
        return _rows(values, kept, lambda value: f"{write(value):>5}", _IN_LINE, "")
    width = max(len(write(value)) for value in values[np.ix_(*kept)].reshape(-1).tolist())
    return _rows(values, kept, lambda value: f"{write(value):>{width}}", _IN_LINE_OF_INTEGERS, "")


def _writer(dtype: DType) -> Callable[[Any], str]:
    return (lambda value: f"{value:g}") if is_float(dtype) else _complex if is_complex(dtype) else str


def _complex(value: complex) -> str:
    return f"{value.real:g}{value.imag:+g}j"


def _kept(values: np.ndarray) -> list[list[int]]:
    """Return for each axis the places that are written."""
    long = _LONG if values.ndim > 1 else _LONG_VECTOR
    return [
        [*range(_ENDS), *range(size - _ENDS, size)] if size > long else list(range(size)) for size in values.shape
    ]


def _rows(values: np.ndarray, kept: list[list[int]], write: Callable[[Any], str], in_line: int, indent: str) -> str:
    """Return the values in brackets, one row on each line, what is left out as dots."""
    places, inside = kept[len(kept) - values.ndim], f"{indent} "
    shortened = len(places) < len(values)
    if values.ndim > 1:
        parts = [_rows(values[place], kept, write, in_line, inside) for place in places]
        if not shortened:
            return "[" + f",\n{inside}".join(parts) + "]"
        first, last = (f",\n{inside}".join(half) for half in (parts[:_ENDS], parts[_ENDS:]))
        return f"[{first},\n{inside}...\n{inside}{last}]"
    texts = [write(values[place].item()) for place in places]
    if shortened:
        return f"[{', '.join(texts[:_ENDS])} ... {', '.join(texts[_ENDS:])}]"
    if len(kept) > 1:
        return f"[{', '.join(texts)}]"
    lines = [", ".join(texts[start : start + in_line]) for start in range(0, len(texts), in_line)]
    # A line that is full ends, the last one too.
    return "[" + ", \n ".join(lines) + ("\n ]" if len(texts) % in_line == 0 else "]")
