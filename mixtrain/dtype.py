"""The words for number formats: one `DType` per format, spelled as Keras and NumPy spell them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np


class DType(str):
    """A number format; a string such as ``"float32"``, so Keras, NumPy and TensorFlow accept it as it is.

    Example:
        >>> import mixtrain
        >>> mixtrain.float16 == "float16"
        True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


bool_: Final = DType("bool")
int8: Final = DType("int8")
int16: Final = DType("int16")
int32: Final = DType("int32")
int64: Final = DType("int64")
uint8: Final = DType("uint8")
uint16: Final = DType("uint16")
uint32: Final = DType("uint32")
uint64: Final = DType("uint64")
float16: Final = DType("float16")
bfloat16: Final = DType("bfloat16")
float32: Final = DType("float32")
float64: Final = DType("float64")

HALF_DTYPES: Final = (float16, bfloat16)
_BY_NAME: Final = {
    str(dtype): dtype
    for dtype in (
        bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
    )
}
_PYTHON_TYPES: Final = {bool: bool_, int: int64, float: float32}


def as_dtype(value: Any) -> DType:
    """Return the `DType` that `value` means.

    Args:
        value: A `DType`, a name such as ``"float16"``, a NumPy or TensorFlow dtype, or ``bool``, ``int``, ``float``
            (``float`` means float32, as in MindSpore).

    Returns:
        The `DType`.

    Raises:
        TypeError: `value` names no number format.

    Example:
        >>> import numpy as np
        >>> as_dtype(np.dtype("int32"))
        int32
    """
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    name = value if isinstance(value, str) else getattr(value, "name", None)
    if name is None:
        try:
            name = np.dtype(value).name
        except TypeError:
            name = repr(value)
    if name not in _BY_NAME:
        raise TypeError(
            f"dtype: expected one of {', '.join(_BY_NAME)}; got {value!r}. Write, for example, mixtrain.float16."
        )
    return _BY_NAME[name]


def is_float(dtype: Any) -> bool:
    """Say whether `dtype` is a floating-point format (half, float32 or float64)."""
    return "float" in as_dtype(dtype)


def is_half(dtype: Any) -> bool:
    """Say whether `dtype` is one of the two half formats, float16 and bfloat16."""
    return as_dtype(dtype) in HALF_DTYPES


def wider(first: Any, second: Any) -> DType:
    """Return the wider of two floating-point formats; float16 with bfloat16 gives float32.

    Example:
        >>> wider("float16", "float32")
        float32
    """
    one, other = as_dtype(first), as_dtype(second)
    if one == other:
        return one
    if one in HALF_DTYPES and other in HALF_DTYPES:
        return float32
    order = (*HALF_DTYPES, float32, float64)
    return max(one, other, key=order.index)
