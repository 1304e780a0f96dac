"""Ranges of tensor values in floating-point formats: counts by kind of number, histograms, headroom."""

from __future__ import annotations

import csv
import dataclasses
import functools
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import backend
from mixtrain.dtype import float_format
from mixtrain.text_table import aligned
from mixtrain.typing import Tensor, TensorLike

Kind = Literal["activation", "gradient", "parameter"]
FORMATS: Final = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
# float32 stores its exponent, biased by 127, in bits 23 to 30.
_FRACTION_BITS: Final = 23
_BIAS: Final = 127
_EXPONENTS: Final = 256
_MAGNITUDE_MASK: Final = 0x7FFFFFFF
INFINITY_BITS: Final = 0x7F800000
# Samples that stay on the device unread: reading one waits for the steps before it.
_MAX_UNREAD: Final = 4


@dataclasses.dataclass(frozen=True)
class FormatCounts:
    """Counts of the values of a float32 tensor by what they become in a format.

    Attributes:
        zero: Values that are zero in float32.
        flushed: Nonzero values that become zero.
        subnormal: Values that become subnormal numbers, which have fewer bits.
        normal: Values that become normal numbers.
        overflow: Values that are too large, or not finite in float32.
    """

    zero: int
    flushed: int
    subnormal: int
    normal: int
    overflow: int


@functools.cache
def _limits(name: str) -> tuple[int, int, int]:
    """Return the bits of the smallest float32 numbers that become nonzero, normal, and non-finite in a format.

    Magnitudes are ordered as their bits are, and rounding is monotonic, so each is found by bisection.
    """
    target = float_format(name)

    def smallest(condition: Callable[[float], bool]) -> int:
        low, high = 0, _MAGNITUDE_MASK
        while high - low > 1:
            middle = (low + high) // 2
            rounded = float(target.round(np.uint32(middle).view(np.float32)))
            low, high = (low, middle) if condition(rounded) else (middle, high)
        return high

    return (
        smallest(lambda value: value != 0), smallest(lambda value: not value < target.smallest_normal),
        smallest(lambda value: not math.isfinite(value)),
    )


@functools.cache
def _bounds() -> np.ndarray:
    """Return the bits at which a class of magnitudes begins, sorted: exponents, and the limits of the formats."""
    exponents = [exponent << _FRACTION_BITS for exponent in range(1, _EXPONENTS)]
    limits = [bits for name in FORMATS for bits in _limits(name)]
    return np.array(sorted([1, *exponents, *limits]), np.int64)


@functools.cache
def _first_classes() -> np.ndarray:
    """Return the class at which each biased exponent begins."""
    return np.searchsorted(np.concatenate([[0], _bounds()]), np.arange(_EXPONENTS, dtype=np.int64) << _FRACTION_BITS)


def _divided(exponents: np.ndarray, shift: int) -> np.ndarray:
    """Return the counts by biased exponent after division by ``2**shift``, int64 (tensors, 256).

    Zeros and non-finite values are unchanged; other exponents are clipped to the smallest and the largest.
    """
    result = exponents.copy()
    finite = exponents[:, 1:-1]
    shifted = np.zeros_like(finite)
    target = np.clip(np.arange(finite.shape[1]) - shift, 0, finite.shape[1] - 1)
    inside = slice(*np.searchsorted(target, [1, finite.shape[1] - 1]))
    shifted[:, target[inside]] = finite[:, inside]
    shifted[:, 0] = finite[:, target == 0].sum(axis=1)
    shifted[:, -1] = finite[:, target == finite.shape[1] - 1].sum(axis=1)
    result[:, 1:-1] = shifted
    return result


def largest_bits(tensor: Tensor) -> Tensor:
    """Return the bits of the largest magnitude in a tensor, an int32 scalar for `magnitudes`.

    Bits are ordered as magnitudes are, with nan above all others. XLA computes their maximum faster than that of
    floats, in which it also drops nan on a CPU (xla_cpu_enable_fast_min_max).
    """
    bits = backend.special.float32_bits(keras.ops.cast(tensor, "float32"))
    return keras.ops.max(keras.ops.bitwise_and(bits, _MAGNITUDE_MASK), initial=0)


def magnitudes(bits: np.ndarray) -> np.ndarray:
    """Return the magnitudes, float32, of the bits of `largest_bits`; infinite for nan."""
    values = bits.astype(np.int32).view(np.float32)
    return np.where(np.isnan(values), np.float32(np.inf), values)


def _stride(size: int, max_values: int) -> int:
    """Return a stride that selects at most `max_values` values of a tensor, evenly spaced.

    It has no common divisor with the size: in a tensor of 64 channels every 256th value would be of the same channel.
    """
    stride = math.ceil(size / max_values)
    while math.gcd(stride, size) > 1:
        stride += 1
    return stride


def class_counts(tensors: Sequence[Tensor], max_values: int | None = None) -> Tensor:
    """Count values in float32 by class of magnitude, int32 (tensors, classes); of each tensor at most `max_values`."""
    flat = []
    for value in tensors:
        value = keras.ops.reshape(value, (-1,))
        if max_values is not None and isinstance(value.shape[0], int) and value.shape[0] > max_values:
            value = value[:: _stride(value.shape[0], max_values)]
        flat.append(keras.ops.cast(value, "float32"))
    num_classes = len(_bounds()) + 1
    # All tensors in one operation, because there are many and most are small: each has its own range of classes.
    first = [keras.ops.full_like(value, index * num_classes, dtype="int32") for index, value in enumerate(flat)]
    bits = keras.ops.bitwise_and(backend.special.float32_bits(keras.ops.concatenate(flat)), _MAGNITUDE_MASK)
    # The class is the number of bounds below: the biased exponent counts those at exponents, comparisons the others.
    classes = keras.ops.concatenate(first) + keras.ops.right_shift(bits, _FRACTION_BITS)
    for bound in [1, *(bits for name in FORMATS for bits in _limits(name))]:
        classes = classes + keras.ops.cast(bits >= bound, "int32")
    counts = keras.ops.segment_sum(keras.ops.ones_like(classes), classes, num_segments=num_classes * len(flat))
    return keras.ops.reshape(counts, (len(flat), num_classes))


@dataclasses.dataclass(frozen=True, eq=False)
class TensorRanges:
    """The values of a layer's activations, or of a gradient, over the steps that were sampled.

    Attributes:
        kind: "activation": of the layer's outputs; "gradient": of the loss, scaled, with respect to them; "parameter":
            with respect to the layer's parameters.
        path: The layer's path.
        classes: How many values are in each class of magnitude, int64.
        largest: The largest magnitude.
        unscaled: How many values have each biased exponent after unscaling, int64 (256,).
    """

    kind: Kind
    path: str
    classes: np.ndarray
    largest: float
    unscaled: np.ndarray

    @classmethod
    def of(cls, kind: Kind, path: str, value: TensorLike, loss_scale: float = 1.0) -> TensorRanges:
        """Return the ranges of one tensor.

        `kind, path`: As the attributes. `value`: The tensor or array. `loss_scale`: The loss scale that its values
        contain as a factor; ignored for activations.

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
        """Count what the values become in a format, one of `FORMATS`."""
        lower = np.concatenate([[0], _bounds()])
        # Each limit counts all values from it upwards.
        nonzero, normal, overflow = (int(self.classes[lower >= bits].sum()) for bits in _limits(name))
        zero = int(self.classes[0])
        return FormatCounts(zero, self.size - zero - nonzero, nonzero - normal, normal - overflow, overflow)

    def scaled_counts(self, name: str) -> FormatCounts:
        """Count what the values become in a format if they are first scaled so that the largest just fits.

        So float8 products scale them. Values are known by their power of two, and are scaled by one.

        Example:
            >>> TensorRanges.of("activation", "fc", np.float32([1e-6, 0.01, 1.0])).scaled_counts("float8_e4m3fn")
            FormatCounts(zero=0, flushed=1, subnormal=0, normal=2, overflow=0)
        """
        form, exponents = float_format(name), self.exponents()
        finite = sum(exponents.values())
        # Of values that are not finite the largest one that is has some number below the next power of two.
        largest = self.largest if math.isfinite(self.largest) else 2.0 ** (max(exponents, default=0) + 1)
        shift = math.floor(math.log2(form.max / largest)) if largest else 0
        # Half of the smallest number rounds up to it, but for the tie itself.
        kept, normal = (
            sum(count for exponent, count in exponents.items() if exponent + shift >= bound)
            for bound in (math.log2(form.smallest_subnormal) - 1, math.log2(form.smallest_normal))
        )
        zero, flushed_before = int(self.classes[0]), int(_exponents(self.classes)[0] - self.classes[0])
        return FormatCounts(
            zero, finite - kept + flushed_before, kept - normal, normal, self.size - zero - flushed_before - finite
        )

    def headroom(self, name: str) -> float:
        """Return how many powers of two the largest value is below the maximum of a format; infinite if all are 0."""
        if not math.isfinite(self.largest):
            return -math.inf
        return math.log2(float_format(name).max / self.largest) if self.largest else math.inf

    def exponents(self, *, unscaled: bool = False) -> dict[int, int]:
        """Return how many values have each exponent, ``floor(log2(abs(value)))``, without zeros and non-finite values.

        `unscaled`: Whether the loss scale is divided out, rounded to a power of two.
        """
        counts = self.unscaled if unscaled else _exponents(self.classes)
        return {int(biased) - _BIAS: int(counts[biased]) for biased in np.flatnonzero(counts[1:-1]) + 1}

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as values for JSON."""
        finite = math.isfinite(self.largest)
        formats = {
            name: dataclasses.asdict(self.counts(name))
            | {"headroom": self.headroom(name) if finite and self.largest else None}
            | ({"scaled": dataclasses.asdict(self.scaled_counts(name))} if name.startswith("float8") else {})
            for name in FORMATS
        }
        return {
            "kind": self.kind, "path": self.path, "values": self.size, "largest": self.largest if finite else None,
            "zero": int(self.classes[0]), "formats": formats, "exponents": self.exponents(),
            "unscaled_exponents": self.exponents(unscaled=True),
        }


def _exponents(classes: np.ndarray) -> np.ndarray:
    """Convert counts by class to counts by biased exponent, int64 (..., 256), zeros and subnormals of float32 first."""
    return np.add.reduceat(classes, _first_classes(), axis=-1, dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class _Counts:
    """The counts of some tensors, with the arguments of `RangeRecords.counted`."""

    names: tuple[tuple[Kind, str], ...]
    classes: Tensor | np.ndarray
    largest: Tensor | np.ndarray
    loss_scale: Tensor | float

    def read(self) -> _Counts:
        classes, largest, loss_scale = map(backend.to_numpy, (self.classes, self.largest, self.loss_scale))
        return _Counts(self.names, classes.astype(np.int64), largest, float(loss_scale))

    def __add__(self, other: _Counts) -> _Counts:
        """Add the counts of the same tensors; both must have been read."""
        largest = np.maximum(self.largest, other.largest)
        return dataclasses.replace(self, classes=self.classes + other.classes, largest=largest)

    def rows(self) -> Iterator[TensorRanges]:
        exponents, largest = _exponents(self.classes), magnitudes(self.largest)
        unscaled = _divided(exponents, round(math.log2(self.loss_scale)))
        for row, (kind, path) in enumerate(self.names):
            # Activations do not contain the loss scale.
            counts = exponents if kind == "activation" else unscaled
            yield TensorRanges(kind, path, self.classes[row], float(largest[row]), counts[row])


class RangeRecords(Sequence[TensorRanges]):
    """The ranges of a network's tensors: activations in the order of the forward pass, then gradients.

    Args:
        rows: Ranges; those with the same kind and path are added up.

    Example: ``RangeRecords(rows).row("activation", "fc").counts("float16").overflow``.
    """

    def __init__(self, rows: Iterable[TensorRanges] = ()) -> None:
        self._merged: dict[tuple[str, str], TensorRanges] = {}
        self._merge(rows)
        # Samples arrive during training: they are read from the device and merged into rows only on access.
        self._counts: list[_Counts] = []
        self._unread: list[_Counts] = []

    @classmethod
    def counted(
        cls, names: Sequence[tuple[Kind, str]], classes: Tensor, largest: Tensor, loss_scale: Tensor | float
    ) -> RangeRecords:
        """Return the ranges of tensors from counts on the device.

        `names`: The kinds and paths of the tensors. `classes`: The result of `class_counts`. `largest`: The results of
        `largest_bits`, int32 (tensors,). `loss_scale`: The loss scale that gradients contain as a factor, a scalar.
        """
        records = cls()
        records._unread = [_Counts(tuple(names), classes, largest, loss_scale)]
        return records

    def __add__(self, other: RangeRecords) -> RangeRecords:
        """Return the ranges of both; those with the same kind and path are added up."""
        records = RangeRecords()
        records._merged = dict(self._merged)
        records._merge(other._merged.values())
        records._counts = [*self._counts, *other._counts]
        records._unread = [*self._unread, *other._unread]
        records._read(keep=_MAX_UNREAD)
        return records

    def _read(self, keep: int) -> None:
        """Read all samples except the latest `keep`; those of the same tensors and scale are added up."""
        while len(self._unread) > keep:
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
        self._read(keep=0)
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
        """Return the gradients of which more than a share of the nonzero values are flushed to zero in a format."""
        gradients = [(row, row.counts(name)) for row in self if row.kind != "activation"]
        return [row for row, counts in gradients if counts.flushed > share * max(row.size - counts.zero, 1)]

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
        """Write all numbers, including histograms by exponent."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump([row.as_dict() for row in self], file, indent=1)
