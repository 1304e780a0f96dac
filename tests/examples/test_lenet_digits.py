"""The main job: LeNet-5 learns real digits at every level, and shows what it did."""

from __future__ import annotations

import pathlib
import runpy
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "lenet_digits.py"

pytest.importorskip("sklearn", reason="scikit-learn holds the digits: pip install mixtrain[examples]")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> float:
    """Run the script as a user does; return its test accuracy."""
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
    return float(runpy.run_path(str(SCRIPT))["main"]())


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("--amp-level", "O0"),
        ("--amp-level", "O1"),
        ("--amp-level", "O2"),
        ("--amp-level", "O3"),
        ("--amp-level", "O2", "--dtype", "bfloat16"),
        ("--amp-level", "O2", "--sink"),
    ],
    ids=" ".join,
)
def test_the_digits_are_learned_at_every_level(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *arguments) >= 0.97
    printed = capsys.readouterr().out
    assert f"precision plan: {arguments[1]}" in printed
    assert "epoch 12/12: 44 steps" in printed
    assert "Loss scale:" in printed and "test accuracy 0.9" in printed


@pytest.mark.slow
def test_a_picture_of_loss_and_loss_scale_is_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "digits.png"
    run(monkeypatch, "--amp-level", "O0", "--epochs", "1", "--plot", str(picture))
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert list(tmp_path.iterdir()) == [picture]
