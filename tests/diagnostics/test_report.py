"""The report of a run: each part on one page that needs no network, and a browser that shows it."""

from __future__ import annotations

import html.parser
import json
import pathlib
import re
import shutil
import subprocess
from typing import Any

import numpy as np
import pytest

import mixtrain
from mixtrain.__main__ import main
from mixtrain.diagnostics.report import PARTS, report_html
from tests.train.planted import batches, chain_model

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
SECTIONS = ["plan", "steps", "overflows", "ranges", "advice"]


def trained() -> Any:
    model = chain_model(mixtrain.DynamicLossScaleManager(16, 2, 100), explain_overflow=True)
    monitor = mixtrain.RangeMonitor(every=3)
    model.train(2, batches("010010"), callbacks=[monitor], verbose=0)
    return model


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    trained().report(path)
    return path


class Tags(html.parser.HTMLParser):
    """Checks that tags are closed in order, and keeps what they are."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))


@pytest.mark.slow
def test_the_page_has_every_part_and_closes_every_tag(page: pathlib.Path) -> None:
    tags = Tags()
    tags.feed(page.read_text(encoding="utf-8"))
    assert tags.open == []
    assert [attrs["id"] for tag, attrs in tags.seen if tag == "section"] == SECTIONS
    assert sum(tag == "svg" for tag, _ in tags.seen) == 2
    assert sum(attrs.get("class") == "overflow" for _, attrs in tags.seen) == 2 * 4
    text = page.read_text(encoding="utf-8")
    assert "12 steps, 4 of them skipped" in text and "gradient of a parameter of the network itself" in text


def test_the_page_needs_no_network(page: pathlib.Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|url\(", text)


def test_a_chart_goes_through_the_losses_of_applied_steps() -> None:
    data: dict[str, Any] = {
        "network": "<net>", "device": "on CPU", "plan": {"level": "O2", "reason": "", "rows": []}, "overflows": [],
        "steps": {"loss": [4.0, None, 2.0], "loss_scale": [8.0, 8.0, 4.0], "overflow": [False, True, False]},
        "ranges": [], "advice": ["a < b"],
    }
    text = report_html(data)
    losses, scales = re.findall(r'points="([^"]*)"', text)
    assert len(losses.split()) == 2 and len(scales.split()) == 3
    assert [float(point.split(",")[1]) for point in losses.split()] == [20.0, 154.0]
    assert "&lt;net&gt;" in text and "a &lt; b" in text


@pytest.mark.slow
def test_the_command_line_makes_the_same_page(
    tmp_path: pathlib.Path, page: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained().report(tmp_path / "run.json")
    data = json.loads((tmp_path / "run.json").read_text())
    assert tuple(data) == PARTS
    assert main(["report", str(tmp_path / "run.json")]) == 0
    assert (tmp_path / "run.html").read_text(encoding="utf-8") == page.read_text(encoding="utf-8")
    capsys.readouterr()
    (tmp_path / "other.json").write_text('{"plan": {}}')
    assert main(["report", str(tmp_path / "other.json")]) == 1
    assert "the data must have" in capsys.readouterr().err


@pytest.mark.slow
def test_advice_names_layers_that_overflow_and_gradients_that_are_lost(tmp_path: pathlib.Path) -> None:
    network = mixtrain.nn.SequentialCell(
        mixtrain.nn.Dense(1, 1, weight_init=2.0**20, has_bias=False),
        mixtrain.nn.Dense(1, 1, weight_init=2.0**-30, has_bias=False),
    )
    optimizer = mixtrain.nn.SGD(network.trainable_params(), 0.0)
    model = mixtrain.Model(
        network, "mae", optimizer, amp_level="O2", explain_overflow=True,
        loss_scale_manager=mixtrain.DynamicLossScaleManager(1.0),
    )
    data = [(np.ones((2, 1), np.float32), np.ones((2, 1), np.float32))] * 2
    with pytest.warns(UserWarning, match="their loss itself was not finite"):
        model.train(1, data, callbacks=[mixtrain.RangeMonitor()], verbose=0)
    model.report(tmp_path / "run.json")
    lines = json.loads((tmp_path / "run.json").read_text())["advice"]
    assert [line.split(":")[0] for line in lines] == [
        "The output of layer 0 overflowed in 2 steps", "2 of 2 steps were skipped",
        "float16 flushes most of the gradients of 0 to zero",
        "The outputs of 0 come near float16's largest number",
    ]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium")
def test_a_browser_shows_the_page(page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    picture = tmp_path / "report.png"
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1000,1400", f"--screenshot={picture}", page.as_uri(),
    ]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    assert picture.stat().st_size > 10_000
    dom = subprocess.run(
        [*command[:-2], "--dump-dom", page.as_uri()], check=True, timeout=120, capture_output=True, text=True
    ).stdout
    assert [dom.index(f'id="{name}"') for name in SECTIONS] == sorted(dom.index(f'id="{name}"') for name in SECTIONS)
