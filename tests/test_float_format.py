"""`float_format`: every number of the small formats is decomposed and recomposed, and rounded as in NumPy."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import mixtrain
from mixtrain.dtype import FloatFormat, float_format

SMALL = pytest.mark.parametrize("name", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])


def every_number(form: FloatFormat) -> np.ndarray:
    """Return all finite numbers of a format, in float64, in ascending order."""
    stored = np.arange(2**form.bits, dtype=np.dtype(f"uint{form.bits}"))
    with np.errstate(invalid="ignore"):
        values = stored.view(form.numpy_dtype).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


@pytest.mark.parametrize(
    ("name", "bits", "exponent", "fraction", "limit", "normal", "subnormal", "epsilon"),
    [
        ("float16", 16, 5, 10, 65504.0, 2.0**-14, 2.0**-24, 2.0**-10),
        ("bfloat16", 16, 8, 7, (2 - 2**-7) * 2.0**127, 2.0**-126, 2.0**-133, 2.0**-7),
        ("float32", 32, 8, 23, (2 - 2**-23) * 2.0**127, 2.0**-126, 2.0**-149, 2.0**-23),
        ("float64", 64, 11, 52, (2 - 2**-52) * 2.0**1023, 2.0**-1022, 2.0**-1074, 2.0**-52),
        ("float8_e4m3fn", 8, 4, 3, 448.0, 2.0**-6, 2.0**-9, 2.0**-3),
        ("float8_e5m2", 8, 5, 2, 57344.0, 2.0**-14, 2.0**-16, 2.0**-2),
    ],
)
def test_the_limits_of_each_format(
    name: str, bits: int, exponent: int, fraction: int, limit: float, normal: float, subnormal: float, epsilon: float
) -> None:
    form = float_format(name)
    assert (form.name, form.bits, form.exponent_bits, form.fraction_bits) == (name, bits, exponent, fraction)
    limits = form.max, form.smallest_normal, form.smallest_subnormal, form.epsilon
    assert limits == (limit, normal, subnormal, epsilon)
    assert form.has_infinity is (name != "float8_e4m3fn")
    assert form.round([limit, normal, subnormal]).tolist() == [limit, normal, subnormal]


@SMALL
def test_every_number_is_the_product_of_its_parts(name: str) -> None:
    form = float_format(name)
    numbers = every_number(form)
    for value in numbers[:: max(1, len(numbers) // 2000)].tolist():
        parts = form.decompose(value)
        assert (-1) ** parts.sign * parts.significand * 2.0**parts.exponent == value
        sign, exponent, fraction = parts.bits.split()
        assert (len(sign), len(exponent), len(fraction)) == (1, form.exponent_bits, form.fraction_bits)
        kind = "zero" if value == 0 else "subnormal" if abs(value) < form.smallest_normal else "normal"
        assert parts.kind == kind
        assert kind != "normal" or 1 <= parts.significand < 2


@SMALL
def test_neighbors_leave_out_no_number(name: str) -> None:
    form = float_format(name)
    numbers = every_number(form)
    step = max(1, len(numbers) // 2000)
    for index in range(1, len(numbers) - 1, step):
        assert form.neighbors(float(numbers[index])) == (numbers[index - 1], numbers[index + 1])
    end = math.inf if form.has_infinity else form.max
    assert form.neighbors(form.max) == (numbers[-2], end)
    assert form.neighbors(-form.max) == (-end, numbers[1])
    if form.has_infinity:
        assert form.neighbors(math.inf) == (form.max, math.inf)


@SMALL
def test_rounding_is_to_the_nearest_and_ties_go_to_the_even_fraction(name: str) -> None:
    form = float_format(name)
    numbers = every_number(form)
    indices = np.arange(0, len(numbers) - 1, max(1, len(numbers) // 2000))
    low, high = numbers[indices], numbers[indices + 1]
    np.testing.assert_array_equal(form.round(low * 0.75 + high * 0.25), low)
    np.testing.assert_array_equal(form.round(low * 0.25 + high * 0.75), high)
    middle = form.round(low / 2 + high / 2)
    last_bits = middle.astype(form.numpy_dtype).view(np.dtype(f"uint{form.bits}")) & 1
    assert not last_bits.any()


def test_a_number_is_rounded_once() -> None:
    # By way of float32 this is 1 + 2**-11, a tie, and then 1.
    assert float_format("float16").round(1 + 2.0**-11 + 2.0**-40) == 1 + 2.0**-10
    assert float_format("bfloat16").round(1 + 2.0**-8 + 2.0**-40) == 1 + 2.0**-7


def test_what_does_not_fit_is_infinite_or_nan() -> None:
    assert float_format("float16").round([1e5, -1e5, 65519.9]).tolist() == [math.inf, -math.inf, 65504.0]
    assert math.isnan(float_format("float8_e4m3fn").round(1e5))
    assert float_format("float16").decompose(math.nan).kind == "nan"
    assert float_format("float16").decompose(-1e5).bits == "1 11111 0000000000"
    assert float_format("float16").decompose(-1e5).kind == "infinite"
    assert float_format("float16").decompose(-0.0).bits == "1 00000 0000000000"
    assert all(map(math.isnan, float_format("float16").neighbors(math.nan)))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_the_wide_formats_have_the_neighbors_that_numpy_has(name: str) -> None:
    form = float_format(name)
    for value in (1.0, -1.5, 0.1, 1e30, -1e-40, 0.0):
        near = np.dtype(name).type(value)
        expected = tuple(float(np.nextafter(near, np.dtype(name).type(end))) for end in (-np.inf, np.inf))
        assert form.neighbors(value) == expected


def test_unknown_names_are_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match='name must be one of .*float8_e4m3fn.*Write name="float16"'):
        float_format("float17")
    with pytest.raises(ValueError, match="float_format: name must be one of"):
        float_format(16)  # type: ignore[arg-type]


def test_a_format_may_be_named_by_a_dtype() -> None:
    assert float_format(mixtrain.bfloat16).max == float(ml_dtypes.finfo(ml_dtypes.bfloat16).max)
