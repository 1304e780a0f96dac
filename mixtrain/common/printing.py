"""Text of tensors: NumPy's for `str`, MindSpore's own layout for `repr`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mixtrain.dtype import DType, bfloat16, bool_, is_complex, is_float

# An axis of more elements is abbreviated to its first and last three.
_MAX_ITEMS: Final = 6
_EDGE_ITEMS: Final = 3
_MAX_VECTOR_ITEMS: Final = 1000
# Elements of a vector per line.
_PER_LINE: Final = 12
_INTEGERS_PER_LINE: Final = 24


def str_of(values: np.ndarray, dtype: DType) -> str:
    """Return the `str` of a tensor's values."""
    if dtype != bfloat16:
        return str(values)
    if not values.ndim:
        return f"{float(values):f}"
    return np.array2string(values, formatter={"float_kind": lambda value: f"{value:f}"})


def repr_of(values: np.ndarray, dtype: DType) -> str:
    """Return the `repr` of a tensor: its shape, dtype and values, long axes abbreviated.

    Example:
        >>> repr_of(np.array([1.5, 2.0], np.float32), DType("float32"))
        'Tensor(shape=[2], dtype=Float32, value= [ 1.50000000e+00,  2.00000000e+00])'
    """
    line = "\n" if values.ndim > 1 else " "
    text = _format_values(values, dtype) if values.size else ""
    return f"Tensor(shape={list(values.shape)}, dtype={dtype}, value={line}{text})"


def _format_values(values: np.ndarray, dtype: DType) -> str:
    format_value = _formatter(dtype)
    if not values.ndim:
        return format_value(values.item())
    indices = _shown_indices(values)
    if is_float(dtype) and dtype != bfloat16:
        digits = 4 if dtype == "float16" else 8
        return _rows(values, indices, lambda value: f"{value:{digits + 7}.{digits}e}", _PER_LINE, "")
    if is_complex(dtype):
        return _rows(values, indices, _complex, _PER_LINE, "")
    if dtype == bool_:
        return _rows(values, indices, lambda value: f"{format_value(value):>5}", _PER_LINE, "")
    width = max(len(format_value(value)) for value in values[np.ix_(*indices)].reshape(-1).tolist())
    return _rows(values, indices, lambda value: f"{format_value(value):>{width}}", _INTEGERS_PER_LINE, "")


def _formatter(dtype: DType) -> Callable[[Any], str]:
    return (lambda value: f"{value:g}") if is_float(dtype) else _complex if is_complex(dtype) else str


def _complex(value: complex) -> str:
    return f"{value.real:g}{value.imag:+g}j"


def _shown_indices(values: np.ndarray) -> list[list[int]]:
    """Return the indices of the elements shown along each axis."""
    max_items = _MAX_ITEMS if values.ndim > 1 else _MAX_VECTOR_ITEMS
    return [
        [*range(_EDGE_ITEMS), *range(size - _EDGE_ITEMS, size)] if size > max_items else list(range(size))
        for size in values.shape
    ]


def _rows(
    values: np.ndarray, indices: list[list[int]], format_value: Callable[[Any], str], per_line: int, indent: str
) -> str:
    """Return the values in brackets, one row per line, with dots for the elements that are not shown."""
    shown, indent = indices[len(indices) - values.ndim], f"{indent} "
    abbreviated = len(shown) < len(values)
    if values.ndim > 1:
        rows = [_rows(values[index], indices, format_value, per_line, indent) for index in shown]
        if not abbreviated:
            return "[" + f",\n{indent}".join(rows) + "]"
        first, last = (f",\n{indent}".join(half) for half in (rows[:_EDGE_ITEMS], rows[_EDGE_ITEMS:]))
        return f"[{first},\n{indent}...\n{indent}{last}]"
    texts = [format_value(values[index].item()) for index in shown]
    if abbreviated:
        return f"[{', '.join(texts[:_EDGE_ITEMS])} ... {', '.join(texts[_EDGE_ITEMS:])}]"
    if len(indices) > 1:
        return f"[{', '.join(texts)}]"
    lines = [", ".join(texts[start : start + per_line]) for start in range(0, len(texts), per_line)]
    # MindSpore breaks the line after a full one, even the last.
    return "[" + ", \n ".join(lines) + ("\n ]" if len(texts) % per_line == 0 else "]")
