"""A transformer with attention of its own learns under autocast, with its products in half."""

from __future__ import annotations

import pathlib
import runpy
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "transformer_autocast.py"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_transformer_learns_to_say_sequences_backwards(
    dtype: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--dtype", dtype])
    assert float(runpy.run_path(str(SCRIPT))["main"]()) > 0.95
    printed = capsys.readouterr().out
    assert f"attention: input float32, scores {dtype}, weights float32, output {dtype}" in printed
