"""What pages show of longer runs is what these runs print, except for numbers that vary."""

from __future__ import annotations

import pathlib
import re
import runpy
import subprocess
import sys
import warnings
from typing import Any

import keras
import pytest

import mixtrain
from mixtrain import nn
from tests.docs.pages import ROOT, blocks_of

pytest.importorskip("sklearn", reason="scikit-learn holds the digits: pip install mixtrain[examples]")


def shown(page: str, start: str) -> list[str]:
    """Return the lines of the first block of a page that starts with a string."""
    blocks = blocks_of((ROOT / page).read_text())
    return next(block.text for block in blocks if block.text.startswith(start)).rstrip().splitlines()


def masked(lines: list[str]) -> list[str]:
    """Return lines with a sign in place of each number; names of layers and levels keep theirs."""
    return [re.sub(r"(?<![\w.])-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?\b", "#", line.rstrip()) for line in lines]


@pytest.mark.slow
def test_the_readme_begins_with_what_its_example_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = str(ROOT / "examples/lenet_digits.py")
    monkeypatch.setattr(sys, "argv", [script])
    # Where the notebook's test ran before in this process, a bar would be drawn.
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    runpy.run_path(script, run_name="__main__")
    printed = masked(capsys.readouterr().out.splitlines())
    lines = masked(shown("README.md", "precision plan: O2"))
    # It omits seven lines of progress, and says so.
    omitted = lines.index("...")
    progress = next(number for number, line in enumerate(printed) if line.startswith("epoch #/#"))
    assert printed[: progress + 4] == lines[:omitted]
    assert printed[progress + 11 :] == lines[omitted + 1 :]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[str]]:
    """The Model of the run whose report the pages show, and the text of its report."""
    recipe = runpy.run_path(str(ROOT / "docs/make_report.py"))
    page = pathlib.Path(tmp_path_factory.mktemp("report"), "report.html")
    model = recipe["write_report"](page)
    return model, recipe["text_of"](page.read_text(encoding="utf-8")).splitlines()


@pytest.mark.slow
def test_the_report_in_the_picture_says_what_a_report_says_today(report: tuple[Any, list[str]]) -> None:
    origin, *kept = (ROOT / "docs/report.txt").read_text(encoding="utf-8").splitlines()
    assert origin == runpy.run_path(str(ROOT / "docs/make_report.py"))["origin"](), "write: python docs/make_report.py"
    # Which layer of several overflows first may be another one on another processor: each kind of line once.
    assert _sentences(report[1]) == _sentences(kept), "write: python docs/make_report.py"


def _sentences(lines: list[str]) -> list[str]:
    """Return the distinct lines, without numbers, versions and names of layers."""
    lines = [re.sub(r"(?<=^versions ).*", "#", line) for line in lines]
    named = [re.sub(r"\b(fc\d|conv\d|relu|max_pool2d|flatten)\b", "layer", line) for line in masked(lines)]
    return list(dict.fromkeys(named))


@pytest.mark.slow
def test_the_overflow_that_the_readme_shows_is_one_of_that_run(report: tuple[Any, list[str]]) -> None:
    (line,) = shown("README.md", "step 4: scale")
    assert masked([line])[0] in masked([str(record) for record in report[0].overflows])


def test_the_warning_that_the_page_on_loss_scaling_shows_is_the_one_that_is_given() -> None:
    network = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mixtrain.Model(network, nn.MSELoss(), keras.optimizers.SGD(0.1), amp_level="O3")
    assert [str(warning.message) for warning in caught] == shown("docs/guide/loss_scaling.md", "Model: layers compute")


@pytest.mark.slow
def test_the_page_on_several_devices_begins_with_what_runs_on_a_machine_with_one() -> None:
    code, printed = blocks_of((ROOT / "docs/guide/several_devices.md").read_text())[:2]
    done = subprocess.run([sys.executable, "-c", code.text], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == printed.text
