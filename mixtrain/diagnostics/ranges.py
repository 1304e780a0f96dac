"""How the values of tensors lie in floating-point formats: counts by kind of number, histograms, headroom."""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import backend
from mixtrain.dtype import float_format
from mixtrain.text_table import aligned

Kind = Literal["activation", "gradient", "parameter"]
FORMATS: Final = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
# float32 keeps its exponent, biased by 127, in bits 23 to 30.
_FRACTION_BITS: Final = 23
_BIAS: Final = 127
_EXPONENTS: Final = 256
_MAGNITUDE: Final = 0x7FFFFFFF
# So many samples may wait for somebody to look: reading one waits for the steps before it.
_UNREAD: Final = 4


@dataclasses.dataclass(frozen=True)
class FormatCounts:
    """How many values of a float32 tensor become what in a format.

    Attributes:
        zero: Zeros to begin with.
        flushed: Not zero, and too small: they become zero.
        subnormal: They become subnormal numbers, which have fewer bits.
        normal: They become normal numbers.
        overflow: Too large, or not finite to begin with.
    """

    zero: int
    flushed: int
    subnormal: int
    normal: int
    overflow: int


@functools.cache
def _limits(name: str) -> tuple[int, int, int]:
    """Return the bits of the smallest float32 numbers that a format does not flush, holds as normal, and cannot hold.

    Magnitudes are ordered as their bits are, and rounding keeps the order, so each is found by bisection.
    """
    form = float_format(name)

    def first(holds: Any) -> int:
        low, high = 0, _MAGNITUDE
        while high - low > 1:
            middle = (low + high) // 2
            rounded = float(form.round(np.uint32(middle).view(np.float32)))
            low, high = (low, middle) if holds(rounded) else (middle, high)
        return high

    return (
        first(lambda value: value != 0),
        first(lambda value: not value < form.smallest_normal),
        first(lambda value: not math.isfinite(value)),
    )


@functools.cache
def _bounds() -> np.ndarray:
    """Return the bits at which another class of magnitudes begins, sorted: exponents, and the limits of the formats."""
    exponents = [exponent << _FRACTION_BITS for exponent in range(1, _EXPONENTS)]
    limits = [bits for name in FORMATS for bits in _limits(name)]
    return np.array(sorted([1, *exponents, *limits]), np.int64)


@functools.cache
def _first_classes() -> np.ndarray:
    """Return the class at which each biased exponent begins."""
    return np.searchsorted(np.concatenate([[0], _bounds()]), np.arange(_EXPONENTS, dtype=np.int64) << _FRACTION_BITS)


def _divided(exponents: np.ndarray, shift: int) -> np.ndarray:
    """Return counts by biased exponent of numbers that are divided by a power of two, int64 (tensors, 256).

    Zeros and numbers that are not finite stay what they are; other exponents end at the smallest and the largest.
    """
    found = exponents.copy()
    finite = exponents[:, 1:-1]
    moved = np.zeros_like(finite)
    target = np.clip(np.arange(finite.shape[1]) - shift, 0, finite.shape[1] - 1)
    inside = slice(*np.searchsorted(target, [1, finite.shape[1] - 1]))
    moved[:, target[inside]] = finite[:, inside]
    moved[:, 0] = finite[:, target == 0].sum(axis=1)
    moved[:, -1] = finite[:, target == finite.shape[1] - 1].sum(axis=1)
    found[:, 1:-1] = moved
    return found


def largest_bits(tensor: Any) -> Any:
    """Return the bits of the largest magnitude in a tensor, an int32 scalar that `magnitudes` reads.

    Bits are ordered as magnitudes are, nan above all, and XLA finds their maximum faster than that of numbers, from
    which it drops nan on a CPU (xla_cpu_enable_fast_min_max).
    """
    bits = backend.special.float32_bits(keras.ops.cast(tensor, "float32"))
    return keras.ops.max(keras.ops.bitwise_and(bits, _MAGNITUDE), initial=0)


def magnitudes(bits: np.ndarray) -> np.ndarray:
    """Return the magnitudes, float32, of which `largest_bits` has given the bits; infinite for nan."""
    found = bits.astype(np.int32).view(np.float32)
    return np.where(np.isnan(found), np.float32(np.inf), found)


def _stride(size: int, most: int) -> int:
    """Return the distance at which at most so many of the values of a tensor are spaced evenly.

    It has no divisor in common with the size: of a tensor of 64 channels every 256th value would be of one channel.
    """
    stride = math.ceil(size / most)
    while math.gcd(stride, size) > 1:
        stride += 1
    return stride


def class_counts(tensors: Sequence[Any], most: int | None = None) -> Any:
    """Count the values of float tensors by class of magnitude, for `TensorRanges`.

    Args:
        tensors: They are counted in float32.
        most: How many values of each are counted at most, evenly spaced; None for all.

    Returns:
        int32 (tensors, classes).
    """
    flat = []
    for value in tensors:
        value = keras.ops.reshape(value, (-1,))
        if most is not None and isinstance(value.shape[0], int) and value.shape[0] > most:
            value = value[:: _stride(value.shape[0], most)]
        flat.append(keras.ops.cast(value, "float32"))
    number = len(_bounds()) + 1
    # All at once: tensors are many and most are small.
    first = [keras.ops.full_like(value, place * number, dtype="int32") for place, value in enumerate(flat)]
    bits = keras.ops.bitwise_and(backend.special.float32_bits(keras.ops.concatenate(flat)), _MAGNITUDE)
    # The exponent counts the bounds at exponents that lie below; the others are few.
    classes = keras.ops.concatenate(first) + keras.ops.right_shift(bits, _FRACTION_BITS)
    for bound in [1, *(bits for name in FORMATS for bits in _limits(name))]:
        classes = classes + keras.ops.cast(bits >= bound, "int32")
    counts = keras.ops.segment_sum(keras.ops.ones_like(classes), classes, num_segments=number * len(flat))
    return keras.ops.reshape(counts, (len(flat), number))


@dataclasses.dataclass(frozen=True, eq=False)
class TensorRanges:
    """The values of a layer's activations, or of a gradient, over the steps that were sampled.

    Attributes:
        kind: "activation": of the layer's outputs; "gradient": of the loss, scaled, with respect to them; "parameter":
            with respect to the layer's parameters.
        path: The layer's path.
        classes: How many values lie in each class of magnitude, int64.
        largest: The largest magnitude.
        unscaled: How many values have each exponent once the loss scale is divided out, as `exponents`, int64 (256,).
    """

    kind: Kind
    path: str
    classes: np.ndarray
    largest: float
    unscaled: np.ndarray

    @classmethod
    def of(cls, kind: Kind, path: str, value: Any, loss_scale: float = 1.0) -> TensorRanges:
        """Return the ranges of one tensor.

        Args:
            kind, path: As the attributes.
            value: The tensor, or an array.
            loss_scale: What its values contain as a factor, where it is no activation.

        Example:
            >>> ranges = TensorRanges.of("gradient", "conv1", np.float32([0.0, 1e-9, 1e-5, 1.0, 1e5]))
            >>> ranges.counts("float16")
            FormatCounts(zero=1, flushed=1, subnormal=1, normal=1, overflow=1)
            >>> ranges.counts("bfloat16").normal, round(ranges.headroom("float16"), 2)
            (4, -0.61)
        """
        tensor = backend.to_tensor(value)
        classes, largest = class_counts([tensor]), keras.ops.reshape(largest_bits(tensor), (1,))
        return RangeRecords.counted([(kind, path)], classes, largest, np.float32(loss_scale))[0]

    def __add__(self, other: TensorRanges) -> TensorRanges:
        return dataclasses.replace(
            self, classes=self.classes + other.classes, largest=max(self.largest, other.largest),
            unscaled=self.unscaled + other.unscaled,
        )

    @property
    def size(self) -> int:
        """How many values were counted."""
        return int(self.classes.sum())

    def counts(self, name: str) -> FormatCounts:
        """Return what the values become in a format: one of `FORMATS`."""
        lower = np.concatenate([[0], _bounds()])
        kept, normal, overflow = (int(self.classes[lower >= bits].sum()) for bits in _limits(name))
        zero = int(self.classes[0])
        return FormatCounts(zero, self.size - zero - kept, kept - normal, normal - overflow, overflow)

    def headroom(self, name: str) -> float:
        """Return by how many powers of two the largest value may grow in a format; infinite where all are 0."""
        if not math.isfinite(self.largest):
            return -math.inf
        return math.log2(float_format(name).max / self.largest) if self.largest else math.inf

    def exponents(self, *, unscaled: bool = False) -> dict[int, int]:
        """Return how many values have which exponent, ``floor(log2(abs(value)))``; zeros and non-finite ones left out.

        Args:
            unscaled: Whether the loss scale is divided out, as a power of two.
        """
        counts = self.unscaled if unscaled else _exponents(self.classes)
        return {int(place) - _BIAS: int(counts[place]) for place in np.flatnonzero(counts[1:-1]) + 1}

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON takes them."""
        finite = math.isfinite(self.largest)
        formats = {
            name: dataclasses.asdict(self.counts(name))
            | {"headroom": self.headroom(name) if finite and self.largest else None}
            for name in FORMATS
        }
        return {
            "kind": self.kind, "path": self.path, "values": self.size, "largest": self.largest if finite else None,
            "zero": int(self.classes[0]), "formats": formats, "exponents": self.exponents(),
            "unscaled_exponents": self.exponents(unscaled=True),
        }


def _exponents(classes: np.ndarray) -> np.ndarray:
    """Return counts by class as counts by biased exponent, int64 (..., 256); zeros and float32's subnormals come first.
    """
    return np.add.reduceat(classes, _first_classes(), axis=-1, dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class _Counts:
    """The counts of some tensors, as `RangeRecords.counted` takes them."""

    names: tuple[tuple[Kind, str], ...]
    classes: Any
    largest: Any
    loss_scale: Any

    def read(self) -> _Counts:
        """Return the same as NumPy arrays and a float, once they are computed."""
        classes, largest, loss_scale = map(backend.to_numpy, (self.classes, self.largest, self.loss_scale))
        return _Counts(self.names, classes.astype(np.int64), largest, float(loss_scale))

    def __add__(self, other: _Counts) -> _Counts:
        """Return the counts of the same tensors over the steps of both; both were read."""
        largest = np.maximum(self.largest, other.largest)
        return dataclasses.replace(self, classes=self.classes + other.classes, largest=largest)

    def rows(self) -> Iterator[TensorRanges]:
        """Yield the ranges of each tensor; they were read."""
        exponents, largest = _exponents(self.classes), magnitudes(self.largest)
        unscaled = _divided(exponents, round(math.log2(self.loss_scale)))
        for row, (kind, path) in enumerate(self.names):
            by_kind = exponents if kind == "activation" else unscaled
            yield TensorRanges(kind, path, self.classes[row], float(largest[row]), by_kind[row])


class RangeRecords(Sequence[TensorRanges]):
    """The ranges of a network's tensors, activations in the order of the forward pass, then gradients.

    Args:
        rows: Ranges; those of one kind and path are merged.

    Example:
        >>> rows = [TensorRanges.of("activation", "fc", np.float32([value])) for value in (1.0, 1e6)]
        >>> records = RangeRecords(rows)
        >>> len(records), records[0].size, records.row("activation", "fc").counts("float16").overflow
        (1, 2, 1)
    """

    def __init__(self, rows: Iterable[TensorRanges] = ()) -> None:
        self._merged: dict[tuple[str, str], TensorRanges] = {}
        self._merge(rows)
        # Samples are taken while a network is trained: they are read, and rows are made of them, when somebody looks.
        self._counts: list[_Counts] = []
        self._unread: list[_Counts] = []

    @classmethod
    def counted(cls, names: Sequence[tuple[Kind, str]], classes: Any, largest: Any, loss_scale: Any) -> RangeRecords:
        """Return the ranges of tensors whose values were counted.

        Args:
            names: Their kinds and paths.
            classes: As `class_counts` returns them.
            largest: As `largest_bits` returns it of each, int32 (tensors,).
            loss_scale: What all but activations contain as a factor, a scalar.
        """
        found = cls()
        found._unread = [_Counts(tuple(names), classes, largest, loss_scale)]
        return found

    def __add__(self, other: RangeRecords) -> RangeRecords:
        """Return the ranges of both; those of one kind and path are merged."""
        found = RangeRecords()
        found._merged = dict(self._merged)
        found._merge(other._merged.values())
        found._counts = [*self._counts, *other._counts]
        found._unread = [*self._unread, *other._unread]
        found._read(_UNREAD)
        return found

    def _read(self, unread: int) -> None:
        """Read all samples but as many of the latest; those of the same tensors and scale become one."""
        while len(self._unread) > unread:
            counts = self._unread.pop(0).read()
            last = self._counts[-1] if self._counts else None
            if last is not None and (last.names, last.loss_scale) == (counts.names, counts.loss_scale):
                self._counts[-1] = last + counts
            else:
                self._counts.append(counts)

    def _merge(self, rows: Iterable[TensorRanges]) -> None:
        for row in rows:
            key = row.kind, row.path
            self._merged[key] = self._merged[key] + row if key in self._merged else row

    @property
    def _rows(self) -> dict[tuple[str, str], TensorRanges]:
        self._read(0)
        while self._counts:
            self._merge(self._counts.pop(0).rows())
        return self._merged

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[TensorRanges]:
        return iter(self._rows.values())

    def __getitem__(self, index: Any) -> Any:
        return list(self)[index]

    def row(self, kind: Kind, path: str) -> TensorRanges:
        """Return the ranges of one tensor."""
        return self._rows[kind, path]

    def underflowing(self, name: str = "float16", share: float = 0.5) -> list[TensorRanges]:
        """Return the gradients of which more than a share of the values that are not zero are flushed in a format."""
        found = []
        for row in self:
            counts = row.counts(name)
            if row.kind != "activation" and counts.flushed > share * max(row.size - counts.zero, 1):
                found.append(row)
        return found

    def __str__(self) -> str:
        parts = [f"{name} {part}" for name in ("float16", "bfloat16") for part in ("flushed", "subnormal", "overflow")]
        cells = [("kind", "layer", "largest", "zero", *parts)]
        for row in self:
            shares = [f"{row.classes[0] / max(row.size, 1):.1%}"]
            for name in ("float16", "bfloat16"):
                counts = row.counts(name)
                shares += [f"{part / max(row.size, 1):.1%}" for part in
                           (counts.flushed, counts.subnormal, counts.overflow)]
            cells.append((row.kind, row.path or "(network)", f"{row.largest:.2g}", *shares))
        return "\n".join(aligned(cells))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line for each tensor: its size, its largest magnitude, and counts and headroom for each format."""
        parts = [field.name for field in dataclasses.fields(FormatCounts)]
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            columns = [f"{name}_{part}" for name in FORMATS for part in (*parts, "headroom")]
            writer.writerow(["kind", "path", "values", "largest", *columns])
            for row in self:
                numbers = [n for name in FORMATS for n in (*dataclasses.astuple(row.counts(name)), row.headroom(name))]
                writer.writerow([row.kind, row.path, row.size, row.largest, *numbers])

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write all numbers, histograms by exponent too."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump([row.as_dict() for row in self], file, indent=1)
