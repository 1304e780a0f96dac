"""Ranges of tensors: counts equal NumPy's on the same numbers, in every format; merging, files, headroom."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import pathlib

import ml_dtypes
import numpy as np
import pytest

from mixtrain.diagnostics.ranges import FORMATS, FormatCounts, RangeRecords, TensorRanges, class_counts
from mixtrain.dtype import float_format

DTYPES = {"float16": np.float16, **{name: getattr(ml_dtypes, name) for name in FORMATS[1:]}}


def numbers() -> np.ndarray:
    """Return float32 numbers of every exponent, with those at which a format's rounding changes its mind."""
    draw = np.random.default_rng(0)
    bits = draw.integers(0, 2**32, 50_000, dtype=np.uint32).view(np.float32)
    usual = draw.standard_normal(20_000).astype(np.float32) * np.exp2(draw.integers(-40, 20, 20_000)).astype(np.float32)
    forms = [float_format(name) for name in FORMATS]
    limits = np.float32([n for f in forms for n in (f.max, f.smallest_normal, f.smallest_subnormal)])
    with np.errstate(over="ignore"):
        near = np.concatenate([limits * np.float32(f) for f in (0.5, 0.99, 1.0, 1.01, 1.03, 1.0625, 1.125)])
    steps = np.concatenate([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(np.inf))])
    return np.concatenate([bits, usual, steps, -steps, np.float32([0, -0.0, np.inf, -np.inf, np.nan])])


def by_numpy(values: np.ndarray, name: str) -> FormatCounts:
    with np.errstate(all="ignore"):
        rounded = np.abs(values.astype(DTYPES[name]).astype(np.float64))
    form, zero = float_format(name), values == 0
    finite = np.isfinite(rounded)
    return FormatCounts(
        int(zero.sum()), int((~zero & (rounded == 0)).sum()),
        int((finite & (rounded > 0) & (rounded < form.smallest_normal)).sum()),
        int((finite & (rounded >= form.smallest_normal)).sum()), int((~finite).sum()),
    )


@pytest.mark.parametrize("name", FORMATS)
def test_counts_equal_what_numpy_makes_of_the_same_numbers(name: str) -> None:
    values = numbers()
    ranges = TensorRanges.of("activation", "fc", values)
    assert ranges.counts(name) == by_numpy(values, name)
    assert sum(vars(ranges.counts(name)).values()) == ranges.size == len(values)


def test_histograms_equal_numpys() -> None:
    values = numbers()
    result = TensorRanges.of("activation", "fc", values).exponents()
    normal = np.abs(values[np.isfinite(values) & (np.abs(values) >= 2.0**-126)])
    exponents, counts = np.unique(np.frexp(normal)[1] - 1, return_counts=True)
    assert result == dict(zip(exponents.tolist(), counts.tolist(), strict=True))


def test_the_loss_scale_is_divided_out_of_gradients_as_a_power_of_two() -> None:
    ranges = TensorRanges.of("gradient", "fc", np.float32([0.0, 1.0, 1024.0]), loss_scale=1024.0)
    assert ranges.exponents() == {0: 1, 10: 1}
    assert ranges.exponents(unscaled=True) == {-10: 1, 0: 1}


def test_headroom_is_the_number_of_doublings_to_the_largest_number() -> None:
    assert TensorRanges.of("activation", "", np.float32([-16376.0])).headroom("float16") == 2.0
    assert TensorRanges.of("activation", "", np.float32([0.0])).headroom("float16") == math.inf
    assert TensorRanges.of("activation", "", np.float32([np.inf])).headroom("float16") == -math.inf


@pytest.mark.parametrize("size", [17, 4099])
def test_the_largest_magnitude_of_values_with_a_nan_is_not_finite(size: int) -> None:
    values = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    values[size // 2] = np.nan
    ranges = TensorRanges.of("activation", "fc", values)
    assert (math.isfinite(ranges.largest), ranges.headroom("float16")) == (False, -math.inf)


def test_records_merge_and_are_written(tmp_path: pathlib.Path) -> None:
    rows = [
        TensorRanges.of("gradient", "fc", np.float32([1e-9, 0.5])), TensorRanges.of("activation", "fc", np.ones(3)),
        TensorRanges.of("gradient", "fc", np.float32([1e-9, 1e9])),
    ]
    records = RangeRecords(rows)
    assert [(row.kind, row.size) for row in records] == [("gradient", 4), ("activation", 3)]
    assert records.row("gradient", "fc").counts("float16") == FormatCounts(0, 2, 0, 1, 1)
    assert [row.path for row in records.underflowing(share=0.4)] == ["fc"]
    records.to_csv(tmp_path / "ranges.csv")
    records.to_json(tmp_path / "ranges.json")
    with open(tmp_path / "ranges.csv", newline="") as file:
        line = next(csv.DictReader(file))
    assert (line["path"], line["float16_flushed"], line["float8_e5m2_overflow"]) == ("fc", "2", "1")
    data = json.loads((tmp_path / "ranges.json").read_text())
    assert data[0]["exponents"] == {"-30": 2, "-1": 1, "29": 1}
    assert data[1]["formats"]["float16"] == vars(FormatCounts(0, 0, 0, 3, 0)) | {"headroom": math.log2(65504)}
    assert "gradient" in str(records)


@pytest.mark.parametrize("shape", [(8, 16, 16, 64), (32, 100, 10), (4, 3, 333)])
def test_of_a_tensor_that_is_counted_in_part_all_channels_are_counted_alike(shape: tuple[int, ...]) -> None:
    value = np.zeros(shape, np.float32)
    value[..., 1] = 1.0
    most = 1000
    counts = np.asarray(class_counts([value], most))[0]
    assert most / 2 < counts.sum() <= most
    assert (counts.sum() - counts[0]) / counts.sum() == pytest.approx(1 / shape[-1], abs=2 / counts.sum())


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("size", [2.0**-40, 1.0, 2.0**60])
def test_scaled_counts_are_those_of_values_that_are_scaled_to_the_format(name: str, size: float) -> None:
    form = float_format(name)
    values = np.float32(np.exp2(np.random.default_rng(0).uniform(-24, 0, 4096)) * np.float32(size))
    values[0] = 0.0
    scaled = values[1:] * 2.0 ** np.floor(np.log2(form.max / values.max()))
    counts = TensorRanges.of("activation", "fc", values).scaled_counts(name)
    assert counts.zero == 1 and counts.overflow == 0
    broken = TensorRanges.of("activation", "fc", np.float32([0.0, np.inf, np.nan, 1.0])).scaled_counts(name)
    assert dataclasses.astuple(broken) == (1, 0, 0, 1, 2)
    assert counts.flushed == (scaled < form.smallest_subnormal / 2).sum()
    assert counts.normal == (scaled >= form.smallest_normal).sum()
    assert sum(dataclasses.astuple(counts)) == 4096
