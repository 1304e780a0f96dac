"""Line charts over the steps of runs as SVG that keeps the size of its text at any width."""

from __future__ import annotations

import dataclasses
import html
import itertools
import math
from collections.abc import Sequence
from typing import Final

# The height of a chart, and where its curves begin and end, in pixels; across, places are percentages of the width.
_HEIGHT, _TOP, _BOTTOM, _AXIS = 180, 20, 154, 160
# The maximum numbers of points of a curve, of epochs with a line of their own, and of labels along each axis.
_POINTS, _EPOCH_LINES, _LABELS = 1000, 60, 6
# Larger numbers do not fit beside a chart.
_MAX_WRITTEN_POWER: Final = 26

Point = tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Curve:
    """The values of one name in one run.

    Attributes:
        label: Its name in the key of the chart.
        style: Classes of the style sheet: "run0", "run1", ... for the run, "dashed" for values of validation.
        points: Steps and values.
        skips: The steps that were skipped; each is marked, on the curve of a loss scale and below other curves.
        dots: Whether each point is marked.
    """

    label: str
    style: str
    points: Sequence[Point]
    skips: Sequence[Point] = ()
    dots: bool = False


def stairs(points: Sequence[Point]) -> list[Point]:
    """Return the points of a curve that is level around each step, without those between equal values."""
    result: list[Point] = []
    for value, group in itertools.groupby(points, key=lambda point: point[1]):
        steps = [step for step, _ in group]
        result += [(steps[0] - 0.5, value), (steps[-1] + 0.5, value)]
    return result


def chart(
    name: str, curves: Sequence[Curve], first: int, last: int, epochs: Sequence[tuple[int, int]] = (), *,
    powers: bool = False,
) -> str:
    """Return a chart of steps `first` to `last` as a figure.

    `epochs`: The number and the last step of each epoch. `powers`: Whether values are on an axis of powers of two.
    """
    values = [math.log2(value) if powers else value for curve in curves for _, value in curve.points]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    ticks = _power_ticks(low, high) if powers else _ticks(low, high)
    span = (high - low) or 1.0

    def x(step: float) -> float:
        return round(100 * (step - first + 0.5) / (last - first + 1), 2)

    def y(value: float) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * ((math.log2(value) if powers else value) - low) / span, 1)

    parts = []
    for tick in ticks:
        place, text = (y(2.0**tick), _power(int(tick))) if powers else (y(tick), f"{tick:.4g}")
        parts.append(f'<line class="grid" x2="100%" y1="{place}" y2="{place}"/>'
                     f'<text x="-8" y="{place + 4}" text-anchor="end">{text}</text>')
    stride = math.ceil(len(epochs) / _LABELS) or 1
    for index, (epoch, step) in enumerate(epochs, 1):
        place = x(step + 0.5)
        if len(epochs) <= _EPOCH_LINES or index % stride == 0:
            parts.append(f'<line class="epoch" x1="{place}%" x2="{place}%" y1="14" y2="{_AXIS}"/>')
        if index % stride == 0:
            parts.append(f'<text x="{place}%" y="10" text-anchor="end">{"epoch " * (index == stride)}{epoch}</text>')
    parts.append(f'<line class="axis" x2="100%" y1="{_AXIS}" y2="{_AXIS}"/>')
    parts.append(f'<svg viewBox="0 0 1000 {_HEIGHT}" width="100%" height="{_HEIGHT}" preserveAspectRatio="none">')
    for curve in curves:
        places = [(round(10 * x(step), 1), y(value)) for step, value in _thinned(curve.points)]
        parts.append(f'<polyline class="{curve.style}" points="{" ".join(f"{a},{b}" for a, b in places)}"/>')
        if curve.dots:
            parts.append(f'<path class="{curve.style} dots" d="{"".join(f"M{a} {b}h0" for a, b in places)}"/>')
    parts.append("</svg>")
    for curve in curves:
        # Marks in the same place are one; there are no more places than a reader can tell apart.
        for place, mark in {x(step): y(value) for step, value in curve.skips}.items():
            parts.append(
                f'<text class="overflow" x="{place}%" y="{mark + 4.5}" text-anchor="middle">×</text>' if powers else
                f'<line class="overflow" x1="{place}%" x2="{place}%" y1="{_AXIS - 4}" y2="{_AXIS + 4}"/>'
            )
    parts.append(f'<text y="{_HEIGHT - 4}">step {first}</text>'
                 f'<text x="100%" y="{_HEIGHT - 4}" text-anchor="end">step {last}</text></svg>')
    keys = "".join(f' <span class="key {curve.style}">{html.escape(curve.label)}</span>' for curve in curves
                   if len(curves) > 1)
    label = html.escape(name, quote=True)
    return (f'<figure><figcaption>{label}{keys}</figcaption><svg class="chart" role="img" '
            f'aria-label="{label} over steps {first} to {last}">{"".join(parts)}</figure>')


def _thinned(points: Sequence[Point]) -> list[Point]:
    """Return the points of a curve, of many only the lowest and the highest of each of some parts."""
    if len(points) <= _POINTS:
        return list(points)
    size = math.ceil(2 * len(points) / _POINTS)
    parts = [points[index : index + size] for index in range(0, len(points), size)]
    return [
        point for part in parts
        for point in sorted({min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])})
    ]


def _ticks(low: float, high: float) -> list[float]:
    """Return a few round numbers from `low` to `high`."""
    if not high > low:
        return [low]
    rough = (high - low) / (_LABELS - 2)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= rough)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _power_ticks(low: float, high: float) -> list[float]:
    """Return a few whole exponents, from `high` down to `low`."""
    exponents = range(math.floor(high), math.ceil(low) - 1, -1)
    return [float(exponent) for exponent in exponents[:: math.ceil(len(exponents) / _LABELS) or 1]]


def _power(exponent: int) -> str:
    return str(2**exponent) if 0 <= exponent <= _MAX_WRITTEN_POWER else f"2^{exponent}"
