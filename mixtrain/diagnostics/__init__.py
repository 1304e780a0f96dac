"""Where numbers go wrong: the layer that overflowed, how values lie in half formats, pictures of it."""

from __future__ import annotations

from mixtrain.diagnostics.histogram_plot import plot_histogram
from mixtrain.diagnostics.finding import Finding
from mixtrain.diagnostics.ranges import FormatCounts, RangeRecords, TensorRanges

__all__ = ["Finding", "FormatCounts", "RangeRecords", "TensorRanges", "plot_histogram"]
