"""Numerical diagnostics: the layer that overflowed, the ranges of values in half-precision dtypes, and plots."""

from mixtrain.diagnostics.finding import Finding
from mixtrain.diagnostics.histogram_plot import plot_histogram
from mixtrain.diagnostics.ranges import FormatCounts, RangeRecords, TensorRanges

__all__ = ["Finding", "FormatCounts", "RangeRecords", "TensorRanges", "plot_histogram"]
