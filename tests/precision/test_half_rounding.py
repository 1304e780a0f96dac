"""Rounding to half: exact for every number of the format, unbiased in between, and nearest beyond its range."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import backend
from mixtrain.dtype import as_dtype, float_format
from mixtrain.precision.half_rounding import joined, rounded, split
from tests.backends import MODES, quick_every

HALVES = ("bfloat16", "float16")
SEED = np.array([7, 3], "int64" if keras.backend.backend() == "tensorflow" else "uint32")


def every_number(half: str) -> np.ndarray:
    """Return all numbers of a half format, as float32."""
    patterns = np.arange(2**16, dtype=np.uint16)
    if half == "float16":
        return patterns.view(np.float16).astype(np.float32)
    return (patterns.astype(np.uint32) << 16).view(np.float32)


def random_rounded(values: np.ndarray, half: str, index: int = 0, mode: str = "eager") -> np.ndarray:
    def run(value: Any, seed: Any) -> Any:
        value, seed = map(backend.backend_value, (value, seed))
        bits = backend.special.random_bits(value.shape, seed, index)
        return keras.ops.cast(rounded(value, as_dtype(half), bits), "float32")

    return np.asarray(MODES[mode](run)(backend.to_tensor(values), backend.to_tensor(SEED)))


def nearest(values: np.ndarray, half: str) -> np.ndarray:
    return np.asarray(keras.ops.cast(rounded(backend.to_tensor(values), as_dtype(half)), "float32"))


@quick_every(3)
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("mode", MODES)
def test_a_number_of_the_format_stays_as_it_is(half: str, mode: str) -> None:
    numbers = every_number(half)
    result = random_rounded(numbers, half, mode=mode)
    # Bits, as 0.0 == -0.0, and a NaN is none of its own.
    finite = ~np.isnan(numbers)
    np.testing.assert_array_equal(result[finite].view(np.uint32), numbers[finite].view(np.uint32))
    assert np.isnan(result[~finite]).all()


@pytest.mark.parametrize("half", HALVES)
def test_to_nearest_is_the_rounding_of_the_format(half: str) -> None:
    drawn = np.random.default_rng(0).integers(0, 2**32, 2**16, dtype=np.uint32).view(np.float32)
    form = float_format(half)
    small = np.random.default_rng(1).uniform(-2, 2, 2**14).astype(np.float32) * np.float32(form.smallest_normal)
    numbers = every_number(half)
    numbers = numbers[np.isfinite(numbers)].astype(np.float64)
    ties = ((numbers[:-1] + numbers[1:]) / 2).astype(np.float32)
    for values in (drawn[~np.isnan(drawn)], small, ties):
        np.testing.assert_array_equal(nearest(values, half), np.float32(form.round(values)))


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("size", [1.0, 1e-3, "subnormal"])
def test_the_mean_is_the_value_and_each_result_is_a_neighbor(half: str, size: Any) -> None:
    form, count = float_format(half), 2**16
    if size == "subnormal" and half == "bfloat16":
        unit = 2.0**-133
        places = np.array([0.25, 1.5, 100.125])
    elif size == "subnormal":
        unit = form.smallest_subnormal
        places = np.array([2.0**-10, 0.25, 1.5, 100.125, 1023.75])
    else:
        unit = form.epsilon * 2.0 ** np.floor(np.log2(size))
        places = size / unit + np.array([0.0625, 0.5, 0.9375])
    for place in places:
        value = np.float32(place * unit)
        exact = float(value) / unit
        results = random_rounded(np.full(count, value), half).astype(np.float64) / unit
        below = np.floor(exact)
        assert set(np.unique(results)) <= {below, below + 1}
        share = exact - below
        assert abs(results.mean() - exact) < 5 * max(np.sqrt(share * (1 - share) / count), 1e-9)


@pytest.mark.parametrize("half", HALVES)
def test_what_is_out_of_range_or_not_finite_is_as_nearest_has_it(half: str) -> None:
    largest = np.float32(float_format(half).max)
    inside = np.nextafter(largest, np.float32(0), dtype=np.float32)
    beyond = np.nextafter(largest, np.float32(np.inf), dtype=np.float32)
    values = np.array([inside, -inside, largest, beyond, -beyond, 3.4e38, np.inf, -np.inf, np.nan], np.float32)
    values = np.tile(values, (1000, 1))
    result = random_rounded(values, half)
    assert np.isfinite(result[:, :5]).all() and set(np.unique(np.abs(result[:, 2:5]))) == {largest}
    np.testing.assert_array_equal(result[:, 5:], nearest(values, half)[:, 5:])
    assert np.isinf(result[:, 6:8]).all() and np.isnan(result[:, 8]).all()


def test_random_bits_are_uniform_and_those_of_steps_weights_and_elements_are_independent() -> None:
    rows = []
    for counter in range(4):
        for index in range(3):
            seed = backend.to_tensor(np.array([7, counter], SEED.dtype))
            rows.append(np.asarray(backend.special.random_bits((2**14,), seed, index)))
    bits = np.unpackbits(np.stack(rows).view(np.uint8), axis=1).reshape(len(rows), 2**14, 32)
    assert abs(bits.mean((0, 1)) - 0.5).max() < 0.006
    signs = 2.0 * bits.reshape(len(rows), -1) - 1
    between = signs @ signs.T / signs.shape[1] - np.eye(len(rows))
    neighbors = (signs[:, :-32] * signs[:, 32:]).mean()
    assert abs(between).max() < 0.008 and abs(neighbors) < 0.003


@quick_every(3)
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("mode", MODES)
def test_a_value_is_its_rounding_and_its_rest(half: str, mode: str) -> None:
    dtype = as_dtype(half)
    values = np.random.default_rng(0).standard_normal(2**14).astype(np.float32) * np.logspace(-3, 3, 2**14, dtype="f4")

    def run(value: Any) -> tuple[Any, Any]:
        value = backend.backend_value(value)
        one, rest = split(value, dtype)
        return keras.ops.cast(one, "float32"), joined(one, rest, dtype)

    one, both = map(np.asarray, MODES[mode](run)(backend.to_tensor(values)))
    np.testing.assert_array_equal(one, nearest(values, half))
    # Of the rest, which is at most half a unit in the last place, as many bits are kept as of a value.
    np.testing.assert_allclose(both, values, rtol=2 * (float_format(half).epsilon / 2) ** 2, atol=2.0**-36)


@pytest.mark.parametrize("half", HALVES)
def test_the_rest_of_a_value_that_was_overwritten_is_not_added(half: str) -> None:
    dtype = as_dtype(half)
    _, rest = split(backend.to_tensor(np.float32([1000.3, 1000.3, np.inf, 3.4e38])), dtype)
    now = keras.ops.cast(backend.to_tensor(np.float32([0.001, 0.0, 1.0, 1.0])), half)
    result = np.asarray(joined(now, rest, dtype))
    np.testing.assert_array_equal(result, np.asarray(keras.ops.cast(now, "float32")))
