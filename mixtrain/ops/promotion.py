"""Promotion of the dtypes of an operator's inputs, as MindSpore does it."""

from __future__ import annotations

from mixtrain.dtype import DType, as_dtype, bool_, complex64, complex128, float64, is_complex, wider
from mixtrain.typing import DTypeLike


def _kind(dtype: DType) -> int:
    """Return 0 for bool, 1 for integers, 2 for floats, 3 for complex numbers."""
    return 3 if "complex" in dtype else 2 if "float" in dtype else int(dtype != bool_)


def _bits(dtype: DType) -> int:
    return int(dtype.lstrip("uint"))


def promoted(first: DTypeLike, second: DTypeLike) -> DType:
    """Promote two dtypes: floats win over integers, integers over bool, and wider dtypes over narrower ones.

    A signed and an unsigned integer dtype give the smallest signed one that holds both.

    Example:
        >>> promoted("int64", "float16"), promoted("int8", "uint8"), promoted("bool", "int32")
        (mixtrain.float16, mixtrain.int16, mixtrain.int32)
    """
    lower, higher = sorted((as_dtype(first), as_dtype(second)), key=_kind)
    if is_complex(higher):
        return complex128 if float64 in (lower, higher) or complex128 in (lower, higher) else complex64
    if lower == higher or _kind(lower) < _kind(higher):
        return higher
    if _kind(lower) == 2:
        return wider(lower, higher)
    signed, unsigned = sorted((lower, higher), key=lambda dtype: dtype.startswith("u"))
    if signed.startswith("u") or not unsigned.startswith("u"):  # Both are of one signedness.
        return max(lower, higher, key=_bits)
    return as_dtype(f"int{min(64, max(_bits(signed), 2 * _bits(unsigned)))}")
