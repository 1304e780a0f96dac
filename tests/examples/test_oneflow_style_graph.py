"""The OneFlow example trains in both half formats, and says what it did."""

from __future__ import annotations

import pathlib
import runpy
import sys

import pytest

SCRIPT = str(pathlib.Path(__file__).parents[2] / "examples" / "oneflow_style_graph.py")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_graph_learns(
    dtype: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [SCRIPT, "--dtype", dtype])
    first, last = runpy.run_path(SCRIPT)["main"]()
    assert last < 0.9 * first
    printed = capsys.readouterr().out
    assert f"half is {dtype}" in printed and "loss scale 4096" in printed and "after 100 steps" in printed
