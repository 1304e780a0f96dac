"""The apex example trains at its levels, and says what it did."""

from __future__ import annotations

import pathlib
import runpy
import sys

import pytest

from tests.backends import quick_every

SCRIPT = str(pathlib.Path(__file__).parents[2] / "examples" / "apex_style_training.py")


@quick_every(6)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--opt-level", "O0"), ["loss scale none", "the parameters are float32"]),
        (("--opt-level", "O1", "--dtype", "bfloat16"), ["loss scale 65536", "the parameters are float32"]),
        (("--opt-level", "O2"), ["master_weights        : True", "the parameters are float16"]),
        (("--opt-level", "O2", "--dtype", "bfloat16", "--loss-scale", "128"),
         ["loss_scale            : 128.0  (given; O2 has dynamic)", "8 of 8 steps applied, loss scale 128"]),
        (("--opt-level", "O3", "--dtype", "bfloat16"),
         ["master_weights        : False", "the parameters are bfloat16"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_network_learns_at_every_level(
    arguments: tuple[str, ...], says: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [SCRIPT, *arguments])
    first, last = runpy.run_path(SCRIPT)["main"]()
    assert last < 0.5 * first
    printed = capsys.readouterr().out
    assert all(line in printed for line in says), printed
