"""`DType`: dtypes named as in Keras and NumPy; `FloatFormat`: floating-point formats bit by bit."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike

from mixtrain import checks
from mixtrain.lazy_names import serve_names
from mixtrain.typing import DTypeLike


class DType(str):
    """A dtype, a string such as ``"float32"`` that Keras, NumPy and TensorFlow accept as it is.

    It prints as in MindSpore: `str` gives ``Float32``, `name` gives ``float32``.

    Example:
        >>> import mixtrain
        >>> mixtrain.float16 == "float16", str(mixtrain.float16), mixtrain.float16.name
        (True, 'Float16', 'float16')
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The name in NumPy, Keras and TensorFlow."""
        return str.__str__(self)

    def __str__(self) -> str:
        name = self.name
        for prefix, printed in (("uint", "UInt"), ("bfloat", "BFloat")):
            if name.startswith(prefix):
                return printed + name.removeprefix(prefix)
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
complex64: Final = DType("complex64")
complex128: Final = DType("complex128")
# MindSpore's aliases.
half: Final = float16
single: Final = float32
double: Final = float64
byte, short, intc, intp, ubyte, ushort, uintc, uintp = int8, int16, int32, int64, uint8, uint16, uint32, uint64
cfloat, cdouble = complex64, complex128
# Its groups of dtypes.
int_type, uint_type = (int8, int16, int32, int64), (uint8, uint16, uint32, uint64)
float_type, complex_type = (float16, float32, float64, bfloat16), (complex64, complex128)
signed_type: Final = (*int_type, *float_type, *complex_type)
number_type: Final = (*int_type, *uint_type, *float_type, *complex_type)
all_types: Final = (bool_, *number_type)

# Rules for the products of layers, not dtypes of tensors: float8 operands, scaled by their largest magnitude in this
# step, or by that in the steps before.
float8: Final = DType("float8")
float8_delayed: Final = DType("float8_delayed")

HALF_DTYPES: Final = (float16, bfloat16)
FLOAT8_RULES: Final = (float8, float8_delayed)
DTYPES: Final = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
    complex64, complex128,
)
_BY_NAME: Final = {dtype.name: dtype for dtype in DTYPES}
_PYTHON_TYPES: Final = {bool: bool_, int: int64, float: float32, complex: complex128}
_NO_NUMPY: Final = {bfloat16: float32}


def as_dtype(value: DTypeLike) -> DType:
    """Convert to a `DType`.

    Args:
        value: A `DType`, a name such as ``"float16"`` (or ``"Float16"``, as it prints), a NumPy or TensorFlow dtype,
            or ``bool``, ``int``, ``float`` (``float`` means float32, as in MindSpore).

    Returns:
        The `DType`.

    Raises:
        TypeError: `value` is not a dtype.

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
        name = value.lower() if type(value) is str else getattr(value, "name", None)
    if name is None and value is not None:
        try:
            name = np.dtype(value).name
        except TypeError:
            name = checks.short_repr(value)
    if name not in _BY_NAME:
        raise TypeError(
            f"dtype: expected one of {', '.join(_BY_NAME)}; got {checks.short_repr(value)}. "
            "Write, for example, mixtrain.float16."
        )
    return _BY_NAME[name]


def as_precision(value: DTypeLike) -> DType:
    """Convert to what layers can compute in: a dtype, as `as_dtype` does, or a rule for float8 products."""
    name = value.lower() if type(value) is str else value
    return next((rule for rule in FLOAT8_RULES if isinstance(name, str) and name == rule), None) or as_dtype(value)


@functools.cache
def _numpy_name(dtype: np.dtype[Any]) -> str:
    # NumPy builds the name at each access, which costs as much as a small product.
    return dtype.name


def is_float(dtype: DTypeLike) -> bool:
    """Whether `dtype` is a floating-point dtype (half, float32 or float64)."""
    return "float" in as_dtype(dtype)


def is_complex(dtype: DTypeLike) -> bool:
    """Whether `dtype` is complex64 or complex128."""
    return "complex" in as_dtype(dtype)


def is_half(dtype: DTypeLike) -> bool:
    """Whether `dtype` is a half-precision dtype, float16 or bfloat16."""
    return as_dtype(dtype) in HALF_DTYPES


def wider(first: DTypeLike, second: DTypeLike) -> DType:
    """Return the wider of two floating-point dtypes; float16 with bfloat16 gives float32.

    Example:
        >>> wider("float16", "float32")
        mixtrain.float32
    """
    first, second = as_dtype(first), as_dtype(second)
    if first == second:
        return first
    if first in HALF_DTYPES and second in HALF_DTYPES:
        return float32
    order = (*HALF_DTYPES, float32, float64)
    return max(first, second, key=order.index)


def dtype_to_pytype(type_: DTypeLike) -> type:
    """Return the Python type of a dtype: bool, int, float or complex.

    Args:
        type_: A value that `as_dtype` accepts.

    Example:
        >>> dtype_to_pytype(float16)
        <class 'float'>
    """
    dtype = as_dtype(type_)
    return bool if dtype == bool_ else complex if is_complex(dtype) else float if is_float(dtype) else int


def dtype_to_nptype(type_: DTypeLike) -> type[np.generic]:
    """Return the NumPy type of a dtype; bfloat16, which NumPy lacks, gives float32.

    Args:
        type_: A value that `as_dtype` accepts.

    Raises:
        TypeError: It is not a dtype.

    Example:
        >>> dtype_to_nptype(float16)
        <class 'numpy.float16'>
    """
    dtype = as_dtype(type_)
    return np.dtype(_NO_NUMPY.get(dtype, dtype)).type


def pytype_to_dtype(obj: DTypeLike) -> DType:
    """Return the dtype of a Python or NumPy type.

    Args:
        obj: ``bool``, ``int``, ``float``, a NumPy type or dtype.

    Raises:
        TypeError: It is none of these.

    Example:
        >>> pytype_to_dtype(np.int32), pytype_to_dtype(float)
        (mixtrain.int32, mixtrain.float64)
    """
    return float64 if obj is float else as_dtype(obj)


def get_py_obj_dtype(obj: complex | type[Any]) -> DType:
    """Return the dtype that a Python number has as a Tensor.

    Args:
        obj: A bool, an int or a float, or the type of one.

    Raises:
        TypeError: It is none of these.

    Example:
        >>> get_py_obj_dtype(1), get_py_obj_dtype(0.5)
        (mixtrain.int64, mixtrain.float64)
    """
    return pytype_to_dtype(obj if isinstance(obj, type) else type(obj))


# ---- floating-point formats, bit by bit -----------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True)
class Decomposed:
    """A number as stored in a floating-point format: ``(-1)**sign * significand * 2**exponent``.

    Attributes:
        sign: 0 or 1.
        exponent: The exponent without its bias; for a subnormal number, that of the smallest normal number.
        significand: In [1, 2); less than 1 for a subnormal number, and 0 for zero.
        bits: The stored bits, as ``"0 01111 0000000000"``: sign, biased exponent, fraction.
        kind: "zero", "subnormal", "normal", "infinite" or "nan".
    """

    sign: int
    exponent: int
    significand: float
    bits: str
    kind: Literal["zero", "subnormal", "normal", "infinite", "nan"]


@dataclasses.dataclass(frozen=True)
class FloatFormat:
    """A binary floating-point format: its range, precision and rounding. `float_format` returns one.

    Attributes:
        name: The name in Keras and NumPy.
        bits: Bits of a number: one for the sign, and those of exponent and fraction.
        exponent_bits: Bits of the exponent.
        fraction_bits: Bits of the fraction, after a leading 1 that is not stored.
        max: The largest finite number; the smallest is ``-max``.
        smallest_normal: The smallest positive number with all its bits of precision.
        smallest_subnormal: The smallest positive number.
        epsilon: The distance from 1 to the next larger number.
        has_infinity: Whether it has infinities; without them, numbers that are too large become NaN.
    """

    name: str
    bits: int
    exponent_bits: int
    fraction_bits: int
    max: float
    smallest_normal: float
    smallest_subnormal: float
    epsilon: float
    has_infinity: bool

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The dtype of arrays in this format, from ml_dtypes where NumPy has none."""
        return _numpy_dtype(self.name)

    def round(self, values: ArrayLike) -> Any:
        """Round to the nearest number of the format, ties to the even fraction.

        Args:
            values: A number or an array of numbers.

        Returns:
            A float, or an array in float64.

        Example:
            >>> float_format("float16").round(0.1), float_format("float16").round(65520.0)
            (0.0999755859375, inf)
        """
        rounded = np.asarray(values, np.float64)
        if self.name != "float64":
            # In one rounding: ml_dtypes rounds to float32 first, which may turn a number into a tie.
            min_exponent = math.frexp(self.smallest_normal)[1]
            quantum = np.ldexp(1.0, np.maximum(np.frexp(rounded)[1], min_exponent) - 1 - self.fraction_bits)
            with np.errstate(invalid="ignore"):
                rounded = np.rint(rounded / quantum) * quantum
            overflow = np.copysign(math.inf if self.has_infinity else math.nan, rounded)
            rounded = np.where(np.abs(rounded) > self.max, overflow, rounded)
        return float(rounded) if rounded.ndim == 0 else rounded

    def decompose(self, value: float) -> Decomposed:
        """Return the sign, exponent and significand of a number after rounding to the format.

        Example:
            >>> float_format("float16").decompose(-6.5)
            Decomposed(sign=1, exponent=2, significand=1.625, bits='1 10001 1010000000', kind='normal')
        """
        number = self.round(value)
        text = f"{self._to_bits(number):0{self.bits}b}"
        fraction_start = 1 + self.exponent_bits
        bits = f"{text[0]} {text[1:fraction_start]} {text[fraction_start:]}"
        sign = int(text[0])
        if not math.isfinite(number):
            return Decomposed(sign, 0, abs(number), bits, "nan" if math.isnan(number) else "infinite")
        if number == 0:
            return Decomposed(sign, 0, 0.0, bits, "zero")
        min_exponent = math.frexp(self.smallest_normal)[1] - 1
        exponent = max(math.frexp(number)[1] - 1, min_exponent)
        kind: Literal["normal", "subnormal"] = "normal" if abs(number) >= self.smallest_normal else "subnormal"
        return Decomposed(sign, exponent, abs(number) / 2.0**exponent, bits, kind)

    def neighbors(self, value: float) -> tuple[float, float]:
        """Return the numbers of the format next below and above a number, which is rounded first.

        Example:
            >>> float_format("float16").neighbors(1.0)
            (0.99951171875, 1.0009765625)
        """
        number = self.round(value)
        if math.isnan(number):
            return number, number
        return -self._next_above(-number), self._next_above(number)

    def _next_above(self, number: float) -> float:
        """Return the next larger number."""
        if number == math.inf or number == self.max:
            return math.inf if self.has_infinity or number == math.inf else self.max
        if number == -math.inf:
            return -self.max
        if number == 0:
            return self.smallest_subnormal
        step = 1 if number > 0 else -1
        bits = np.array(self._to_bits(number) + step, f"uint{self.bits}")
        return float(bits.view(self.numpy_dtype).astype(np.float64))

    def _to_bits(self, number: float) -> int:
        """Return the bits of a number of the format as an integer."""
        with np.errstate(invalid="ignore"):
            array = np.array(number, np.float64).astype(self.numpy_dtype)
        return int(array.view(f"uint{self.bits}"))


# The bits of the exponent of a float32 number: alone, they are those of the power of two below it.
EXPONENT_BITS: Final = 0x7F800000
_FLOAT_FORMATS: Final = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")


@functools.cache
def float_format(name: str) -> FloatFormat:
    """Return a floating-point format by name, to see the effect of half precision on numbers.

    Args:
        name: "float16", "bfloat16", "float32", "float64", "float8_e4m3fn" or "float8_e5m2".

    Returns:
        The `FloatFormat`.

    Raises:
        ValueError: `name` is none of these.

    Example:
        >>> half = float_format("float16")
        >>> half.max, half.smallest_normal, half.smallest_subnormal, half.epsilon
        (65504.0, 6.103515625e-05, 5.960464477539063e-08, 0.0009765625)
    """
    name = checks.one_of("float_format", "name", str.__str__(name) if isinstance(name, str) else name, _FLOAT_FORMATS)
    info = ml_dtypes.finfo(_numpy_dtype(name))
    with np.errstate(over="ignore", invalid="ignore"):
        infinite = np.array(math.inf).astype(_numpy_dtype(name)).astype(np.float64)
    return FloatFormat(
        name, int(info.bits), int(info.bits - 1 - info.nmant), int(info.nmant), float(info.max),
        float(info.smallest_normal), float(info.smallest_subnormal), float(info.eps), bool(np.isinf(infinite)),
    )


def _numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


serve_names(__name__)
