"""`plot_histogram`: a histogram of exponents and the range of float16, before and after loss scaling."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Final

from mixtrain import checks
from mixtrain.diagnostics.figures import new_figure, write_figure
from mixtrain.diagnostics.ranges import TensorRanges
from mixtrain.dtype import float_format

_WHERE: Final = "plot_histogram"
_MARGIN: Final = 2  # Exponents on each side.


def plot_histogram(ranges: TensorRanges | Iterable[TensorRanges], path: str | os.PathLike[str] | None = None) -> Any:
    """Plot the share of values with each exponent, without and with loss scaling, in a matplotlib `Figure`.

    Exponents that float16 represents as subnormal numbers, with fewer bits, and those outside its range are shaded: too
    small values become 0, too large ones infinite. The titles show the share of zeros.

    Args:
        ranges: A row of `RangeMonitor.records`, or several, whose values are plotted together.
        path: File to write, in the format of its suffix; None writes none.

    Raises: ImportError if matplotlib is not installed. TypeError if an item of `ranges` is not a `TensorRanges`.
        ValueError if `ranges` is empty.
    """
    rows = [ranges] if isinstance(ranges, TensorRanges) else list(ranges)
    for row in rows:
        checks.instance(_WHERE, "each of ranges", row, TensorRanges, 'monitor.records.row("gradient", "conv1")')
    if not rows:
        raise checks.fail_value(_WHERE, "there must be ranges to draw", rows, "plot_histogram(monitor.records)")
    total = sum(rows[1:], start=rows[0])
    figure = new_figure(_WHERE, 8, 6)
    float16 = float_format("float16")
    normal, largest = (float16.decompose(value).exponent for value in (float16.smallest_normal, float16.max))
    smallest = normal - float16.fraction_bits
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    shares = [shares_of(total, unscaled=unscaled) for unscaled in (True, False)]
    exponents = [exponent for share in shares for exponent in share]
    left, right = min([smallest, *exponents]) - _MARGIN, max([largest, *exponents]) + _MARGIN + 1
    for axes, share, name in zip(panels, shares, ("without loss scaling", "with loss scaling"), strict=True):
        axes.axvspan(left, smallest, color="tab:red", alpha=0.2, label="0 in float16")
        axes.axvspan(smallest, normal, color="tab:orange", alpha=0.2, label="subnormal in float16")
        axes.axvspan(largest + 1, right, color="tab:purple", alpha=0.2, label="infinite in float16")
        axes.bar(list(share), [100 * part for part in share.values()], width=0.9, align="edge", color="tab:blue")
        flushed = sum(part for exponent, part in share.items() if exponent < smallest)
        zeros = total.classes[0] / max(total.size, 1)
        axes.set_title(f"{name}: {zeros:.0%} zeros, {flushed:.1%} become 0", fontsize=10)
        axes.set_ylabel("% of values")
        axes.set_xlim(left, right)
    panels[0].legend(loc="upper right", fontsize=8)
    panels[1].set_xlabel("exponent: floor(log2(abs(value)))")
    if path is not None:
        write_figure(figure, path)
    return figure


def shares_of(ranges: TensorRanges, *, unscaled: bool) -> dict[int, float]:
    """Return the share of all values, including zeros, that have each exponent."""
    return {exponent: count / ranges.size for exponent, count in ranges.exponents(unscaled=unscaled).items()}
