"""The words for number formats: one `DType` per format, spelled as Keras and NumPy spell them."""

from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from mixtrain import checks


class DType(str):
    """A number format; a string such as ``"float32"``, so Keras, NumPy and TensorFlow accept it as it is.

    It prints as MindSpore's: `str` gives ``Float32``, `name` gives ``float32``.

    Example:
        >>> import mixtrain
        >>> mixtrain.float16 == "float16", str(mixtrain.float16), mixtrain.float16.name
        (True, 'Float16', 'float16')
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name that NumPy, Keras and TensorFlow spell it by."""
        return str.__str__(self)

    def __str__(self) -> str:
        name = self.name
        for plain, spelled in (("uint", "UInt"), ("bfloat", "BFloat")):
            if name.startswith(plain):
                return spelled + name.removeprefix(plain)
        return name.capitalize()

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    def __repr__(self) -> str:
        return f"mixtrain.{self.name}"


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
# Other names of the reference for the same formats.
half: Final = float16
single: Final = float32
double: Final = float64

HALF_DTYPES: Final = (float16, bfloat16)
DTYPES: Final = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
)
_BY_NAME: Final = {dtype.name: dtype for dtype in DTYPES}
_PYTHON_TYPES: Final = {bool: bool_, int: int64, float: float32}
_NO_NUMPY: Final = {bfloat16: float32}


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
        mixtrain.int32
    """
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    if isinstance(value, np.dtype):
        name: str | None = _numpy_name(value)
    else:
        name = value if isinstance(value, str) else getattr(value, "name", None)
    if name is None and value is not None:
        try:
            name = np.dtype(value).name
        except TypeError:
            name = checks.shown(value)
    if name not in _BY_NAME:
        raise TypeError(
            f"dtype: expected one of {', '.join(_BY_NAME)}; got {checks.shown(value)}. "
            "Write, for example, mixtrain.float16."
        )
    return _BY_NAME[name]


@functools.cache
def _numpy_name(dtype: np.dtype[Any]) -> str:
    # NumPy makes it anew each time, which costs as much as a small product.
    return dtype.name


def is_float(dtype: Any) -> bool:
    """Whether `dtype` is a floating-point format (half, float32 or float64)."""
    return "float" in as_dtype(dtype)


def is_half(dtype: Any) -> bool:
    """Whether `dtype` is one of the two half formats, float16 and bfloat16."""
    return as_dtype(dtype) in HALF_DTYPES


def wider(first: Any, second: Any) -> DType:
    """Return the wider of two floating-point formats; float16 with bfloat16 gives float32.

    Example:
        >>> wider("float16", "float32")
        mixtrain.float32
    """
    one, other = as_dtype(first), as_dtype(second)
    if one == other:
        return one
    if one in HALF_DTYPES and other in HALF_DTYPES:
        return float32
    order = (*HALF_DTYPES, float32, float64)
    return max(one, other, key=order.index)


def _kind(dtype: DType) -> int:
    """Return 0 for bool, 1 for integers, 2 for floats."""
    return 2 if "float" in dtype else int(dtype != bool_)


def _bits(dtype: DType) -> int:
    return int(dtype.lstrip("uint"))


def promoted(first: Any, second: Any) -> DType:
    """Return the format that two tensors meet in: a float beats an integer, an integer beats bool, the wider wins.

    A signed and an unsigned integer meet in the smallest signed one that holds both.

    Example:
        >>> promoted("int64", "float16"), promoted("int8", "uint8"), promoted("bool", "int32")
        (mixtrain.float16, mixtrain.int16, mixtrain.int32)
    """
    one, other = sorted((as_dtype(first), as_dtype(second)), key=_kind)
    if one == other or _kind(one) < _kind(other):
        return other
    if _kind(one) == 2:
        return wider(one, other)
    signed, unsigned = sorted((one, other), key=lambda dtype: dtype.startswith("u"))
    if signed.startswith("u") or not unsigned.startswith("u"):
        return max(one, other, key=_bits)
    return as_dtype(f"int{min(64, max(_bits(signed), 2 * _bits(unsigned)))}")


def dtype_to_pytype(type_: Any) -> type:
    """Return the Python type of numbers of a format: bool, int or float.

    Args:
        type_: What `as_dtype` accepts.

    Example:
        >>> dtype_to_pytype(float16)
        <class 'float'>

    Source: MindSpore, `mindspore.dtype_to_pytype`.
    """
    dtype = as_dtype(type_)
    return bool if dtype == bool_ else float if is_float(dtype) else int


def dtype_to_nptype(type_: Any) -> type[np.generic]:
    """Return NumPy's type of a number format; bfloat16, which NumPy lacks, gives float32.

    Args:
        type_: What `as_dtype` takes.

    Raises:
        TypeError: It names no number format.

    Example:
        >>> dtype_to_nptype(float16)
        <class 'numpy.float16'>

    Source: MindSpore, `mindspore.dtype_to_nptype`.
    """
    dtype = as_dtype(type_)
    return np.dtype(_NO_NUMPY.get(dtype, dtype)).type


def pytype_to_dtype(obj: Any) -> DType:
    """Return the number format of a Python or NumPy type.

    Args:
        obj: ``bool``, ``int``, ``float``, a NumPy type or dtype.

    Raises:
        TypeError: It is none of these.

    Example:
        >>> pytype_to_dtype(np.int32), pytype_to_dtype(float)
        (mixtrain.int32, mixtrain.float64)

    Source: MindSpore, `mindspore.pytype_to_dtype`.
    """
    return float64 if obj is float else as_dtype(obj)
