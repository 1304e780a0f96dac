"""Rounding of float32 values to half precision, exact bit by bit: to nearest, stochastic, or with the rest kept.

All of it is arithmetic on bits: XLA may skip a cast to half and back, and TensorFlow takes subnormal numbers for 0.
"""

from __future__ import annotations

from typing import Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.dtype import DType, float16, float_format
from mixtrain.typing import Tensor

_ONE: Final = np.uint32(1)
# The exponent of float32, as stored, of the smallest normal float16 number, 2**-14.
_NORMAL16: Final = np.uint32(127 - 14)


def rounded(value: Tensor, dtype: DType, bits: Tensor | None = None) -> Tensor:
    """Round float32 values to a half dtype: to nearest, ties to even, or with random bits up or down.

    It is rounded up with a probability that is the distance from the number below, in units of the last place. So the
    mean is the value itself, and a number of the dtype stays as it is. What is not finite, or beyond the largest number
    of the dtype, is rounded to nearest.

    `bits`: Random uint32 numbers of the shape of `value`; None to round to nearest.

    Source: Gupta et al., "Deep learning with limited numerical precision", 2015.
    """
    ops, as_bits = keras.ops, backend.special.bitcast(value, "uint32")
    size, sign = _and(as_bits, 0x7FFFFFFF), _and(_right(as_bits, 16), 0x8000)
    if dtype == float16:
        number = _float16_bits(size, bits)
    else:
        number = _dropped(size, np.uint32(16), bits)  # bfloat16 is the upper half of float32.
    number = ops.cast(ops.bitwise_or(number, sign), "uint16")
    in_range = ops.abs(value) <= np.float32(float_format(dtype.name).max)
    return ops.where(in_range, backend.special.bitcast(number, dtype.name), ops.cast(value, dtype.name))


def split(value: Tensor, dtype: DType) -> tuple[Tensor, Tensor]:
    """Return float32 values rounded to nearest, and the rests, both in a half dtype.

    A rest is stored times `_unit`, which makes it as large as the value: float16 has few small numbers.

    Source: Kahan, "Further remarks on reducing truncation errors", 1965; Zamirai et al., "Revisiting BFloat16
    training", 2020.
    """
    nearest = rounded(value, dtype)
    rest = (value - keras.ops.cast(nearest, "float32")) * _unit(dtype)
    rest = keras.ops.where(keras.ops.isfinite(rest), rest, keras.ops.zeros_like(rest))
    return nearest, rounded(rest, dtype)


def joined(nearest: Tensor, rest: Tensor, dtype: DType) -> Tensor:
    """Return the float32 values that `split` was called with, to 16 bits or more.

    A rest that is too large for its value belongs to one that was overwritten since: it counts as 0.
    """
    value, rest = keras.ops.cast(nearest, "float32"), keras.ops.cast(rest, "float32") / _unit(dtype)
    # A rest is at most half a unit in the last place, so half of it is no tie.
    fits = keras.ops.cast(rounded(value + rest / 2, dtype), "float32") == value
    return keras.ops.where(fits, value + rest, value)


def _unit(dtype: DType) -> np.float32:
    return np.float32(2 / float_format(dtype.name).epsilon)


def _float16_bits(size: Tensor, bits: Tensor | None) -> Tensor:
    """Return the bits of the float16 numbers that the magnitudes of float32 numbers, as bits, are rounded to."""
    ops, exponent = keras.ops, _right(size, 23)
    # The exponents differ by 112, and a carry out of the fraction is one into the exponent.
    normal = _dropped(size, np.uint32(13), bits) - np.uint32(112 << 10)
    # Subnormal numbers are multiples of 2**-24, and so are their bits; the fraction has its leading 1 here.
    shift = np.uint32(13) + _NORMAL16 - ops.minimum(exponent, _NORMAL16)
    fraction = ops.bitwise_or(_and(size, 0x7FFFFF), np.uint32(0x800000))
    # Below 2**-32 the probability is less exact: its last bits are dropped, for 31 random bits.
    excess = ops.minimum(ops.maximum(shift, np.uint32(31)) - np.uint32(31), np.uint32(31))
    tiny = _dropped(ops.right_shift(fraction, excess), ops.minimum(shift, np.uint32(31)), bits)
    return ops.where(exponent < _NORMAL16, tiny, normal)


def _dropped(number: Tensor, shift: Tensor, bits: Tensor | None) -> Tensor:
    """Drop the last bits of uint32 numbers, rounding by them."""
    ops = keras.ops
    if bits is None:
        last = _and(ops.right_shift(number, shift), 1)
        added = ops.left_shift(_ONE, shift - _ONE) - _ONE + last
    else:
        added = ops.bitwise_and(bits, ops.left_shift(_ONE, shift) - _ONE)
    return ops.right_shift(number + added, shift)


def _and(number: Tensor, mask: int) -> Tensor:
    return keras.ops.bitwise_and(number, np.uint32(mask))


def _right(number: Tensor, count: int) -> Tensor:
    return keras.ops.right_shift(number, np.uint32(count))
