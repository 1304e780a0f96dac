"""`plot_histogram`: bars are the shares of exponents, without and with the loss scale; float16 is shaded."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from mixtrain.diagnostics import RangeRecords, TensorRanges, plot_histogram

pytest.importorskip("matplotlib", reason="matplotlib draws: pip install mixtrain[plot]")


def test_bars_are_shares_before_and_after_scaling(tmp_path: pathlib.Path) -> None:
    values = np.float32([0.0, 0.0, 2.0**-26, 2.0**-20]) * np.float32(2.0**10)
    ranges = TensorRanges.of("gradient", "fc", values, loss_scale=2.0**10)
    figure = plot_histogram(RangeRecords([ranges]), tmp_path / "ranges.png")
    above, below = figure.axes
    bars = [{(round(bar.get_x()), round(bar.get_height())) for bar in axes.patches if bar.get_height() > 1}
            for axes in (above, below)]
    assert bars == [{(-26, 25), (-20, 25)}, {(-16, 25), (-10, 25)}]
    assert above.get_title() == "without loss scaling: 50% zeros, 25.0% become 0"
    assert below.get_title() == "with loss scaling: 50% zeros, 0.0% become 0"
    labels = [text.get_text() for text in above.get_legend().get_texts()]
    assert labels == ["0 in float16", "subnormal in float16", "infinite in float16"]
    assert (tmp_path / "ranges.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_no_ranges_is_refused() -> None:
    with pytest.raises(TypeError, match="ranges"):
        plot_histogram([1.0])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="there must be ranges"):
        plot_histogram([])
