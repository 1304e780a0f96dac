"""The figure of gradients that float16 loses, on a real network."""

from __future__ import annotations

import pathlib
import runpy
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "find_underflow.py"

pytest.importorskip("sklearn", reason="scikit-learn holds the digits: pip install mixtrain[examples]")
pytest.importorskip("matplotlib", reason="matplotlib draws: pip install mixtrain[plot]")


@pytest.mark.slow
def test_a_loss_scale_saves_gradients_that_float16_would_lose(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    picture = tmp_path / "underflow.png"
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), "--epochs", "4", "--picture", str(picture)])
    without, scaled = runpy.run_path(str(SCRIPT))["main"]()
    assert without > 0.005 and scaled < without / 2
    assert picture.stat().st_size > 1000
