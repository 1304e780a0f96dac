"""The scripts in PyTorch's words train: the loop of one's own, the GAN, and Keras's train_step."""

from __future__ import annotations

import pathlib
import runpy
import sys
from typing import Any

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def run(monkeypatch: pytest.MonkeyPatch, name: str, *arguments: str) -> dict[str, Any]:
    """Run a script as a user does; return what its main returns."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    return dict(runpy.run_path(str(EXAMPLES / name))["main"]())


@pytest.mark.slow
def test_the_loops_in_pytorchs_words_learn_the_spirals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(monkeypatch, "pytorch_style_loop.py", "--steps", "120")
    assert len(result) == 3 and min(result.values()) >= 0.95
    printed = capsys.readouterr().out
    assert "float32: 2**-3 + 2**-14 = 0.125061\nfloat16: 2**-3 + 2**-14 = 0.125000\n" in printed
    assert "float16: 2**-3 + 2**-13 = 0.125122\n" in printed
    # One growth after 100 iterations: had the scaled gradients overflowed at 65536, the scale would be lower.
    assert printed.count(", loss scale 131072\n") == 2


@pytest.mark.slow
def test_two_networks_learn_against_each_other_with_one_scaler(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, "gan.py", "--steps", "300")
    assert abs(result["distance"] - 2.0) < 0.5
    # At the first scale the discriminator overflows; the generator steps all the same.
    assert 280 <= result["discriminator"] < result["generator"] <= 300


@pytest.mark.slow
def test_a_keras_train_step_learns_and_skips_while_the_scale_is_too_large(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(monkeypatch, "keras_train_step.py", "--epochs", "2")
    assert result["accuracy"] >= 0.9
    assert 0 < result["skipped"] < 15 and 1 <= result["loss_scale"] < 2.0**24
    assert "loss_scale: " in capsys.readouterr().out
