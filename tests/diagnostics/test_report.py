"""The report of a run: each part on one page that needs no network, and a browser that shows it."""

from __future__ import annotations

import html.parser
import json
import pathlib
import re
import shutil
import subprocess
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain.__main__ import main
from mixtrain.diagnostics import Finding, RangeRecords, TensorRanges
from mixtrain.diagnostics.report import PARTS, report_html
from mixtrain.diagnostics.report_chart import Curve, chart
from mixtrain.train import StepRecords
from mixtrain.train.callback.overflow_monitor import OverflowRecord
from mixtrain.train.report_advice import advice
from tests.train.planted import batches, chain_model

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
SECTIONS = ["plan", "steps", "overflows", "ranges", "advice"]


def trained() -> Any:
    model = chain_model(mixtrain.DynamicLossScaleManager(16, 2, 100), explain_overflow=True)
    monitor = mixtrain.RangeMonitor(every=3)
    model.train(2, batches("010010"), callbacks=[monitor], verbose=0)
    return model


@pytest.fixture(scope="module")
def model() -> Any:
    return trained()


@pytest.fixture(scope="module")
def page(model: Any, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    model.report(path)
    return path


def untrained_data(**parts: Any) -> dict[str, Any]:
    """Return the data of a report, with parts in place of those of a Model that was not trained."""
    steps = {"loss": [], "loss_scale": [], "overflow": []}
    plan = {"level": "O2", "reason": "", "rows": []}
    empty = {"network": "Net", "device": "on CPU", "run": {}, "plan": plan, "steps": steps}
    return empty | {"overflows": [], "ranges": [], "advice": []} | parts


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
    assert sum(tag == "svg" and attrs.get("class") == "chart" for tag, attrs in tags.seen) == 2
    assert sum(attrs.get("class") == "overflow" for _, attrs in tags.seen) == 2 * 4
    text = page.read_text(encoding="utf-8")
    assert "12 steps, 4 of them skipped" in text and "gradient of a parameter of the network itself" in text


@pytest.mark.slow
def test_the_page_needs_no_network(page: pathlib.Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"https?://|<script|<link|@import|url\(", text)


def test_a_chart_goes_through_the_losses_of_applied_steps() -> None:
    steps = {"loss": [4.0, None, 2.0], "loss_scale": [8.0, 8.0, 4.0], "overflow": [False, True, False]}
    text = report_html(untrained_data(network="<net>", steps=steps, advice=["a < b"]))
    losses, scales = re.findall(r'points="([^"]*)"', text)
    assert losses == "166.7,20.0 833.3,154.0"
    # Level around each step: 8 for two of the three steps, then 4.
    assert scales == "0.0,20.0 666.7,20.0 666.7,154.0 1000.0,154.0"
    # The skipped step is marked below the losses, and on its loss scale.
    assert re.findall(r'class="overflow" x1?="([^"]*)"', text) == ["50.0%", "50.0%"]
    assert 'class="overflow" x="50.0%" y="24.5"' in text
    assert [float(point.split(",")[1]) for point in losses.split()] == [20.0, 154.0]
    assert "&lt;net&gt;" in text and "a &lt; b" in text


@pytest.mark.slow
def test_the_command_line_makes_the_same_page(
    tmp_path: pathlib.Path, model: Any, page: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.report(tmp_path / "run.json")
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


def test_the_scale_to_start_at_is_the_one_that_the_table_shows() -> None:
    """13 of 235 steps skipped: 8 on the way from 2**24 down to 65536, 5 where the scale had grown again."""
    scales = [2.0 ** (24 - step) for step in range(8)] + [65536.0] * 222 + [131072.0] * 5
    overflow = [True] * 8 + [False] * 222 + [True] * 5
    steps = StepRecords(np.ones(235, np.float32), np.array(overflow), np.float32(scales))
    (line,) = advice(steps, [], RangeRecords())
    assert line == (
        "13 of 235 steps were skipped, 13 of them at loss scales above 65536, at or below which no step overflowed: "
        "start at 65536, DynamicLossScaleManager(65536)."
    )
    rows = [TensorRanges.of("gradient", "fc", np.float32([1e5] + [1.0] * 4), 2.0**17)]
    (line,) = advice(steps, [], RangeRecords(rows))
    assert "20% of the gradients of fc that were sampled were above 65504: start at 65536, " in line


@pytest.mark.parametrize(("scales", "overflow", "cures", "said"), [
    # A scale that grows until one step in 200 overflows is as it should be.
    ([4.0] * 199 + [8.0], [False] * 199 + [True], [], None),
    # No more steps ran at 1 than overflowed above it: that they stopped there may be chance.
    ([8.0, 4.0, 2.0, 1.0], [True] * 3 + [False], [], "3 of 4 steps were skipped: DynamicLossScaleManager(\"auto\")"),
    ([8.0, 4.0, 2.0, 1.0], [True] * 3 + [False], [0.5, None, 1.0], "their verdicts say that scale 0.5 would do"),
    # What no scale cures has no scale to start at.
    ([8.0, 4.0, 2.0] + [1.0] * 9, [True] * 3 + [False] * 9, [None] * 3, "by their verdicts no loss scale helps."),
    ([8.0, 4.0, 2.0] + [1.0] * 9, [True] * 3 + [False] * 9, [2.0, 1.0, None], "2 of them at loss scales above 2,"),
])
def test_advice_about_the_scale_follows_from_the_steps(
    scales: list[float], overflow: list[bool], cures: list[float | None], said: str | None
) -> None:
    steps = StepRecords(np.ones(len(scales), np.float32), np.array(overflow), np.float32(scales))
    records = [
        OverflowRecord(1, index + 1, scales[index], scales[index] / 2, Finding("gradient", "fc", scale=cure))
        for index, cure in enumerate(cures)
    ]
    lines = advice(steps, records, RangeRecords())
    assert len(lines) == (said is not None) and all(str(said) in line for line in lines)


def test_gradients_above_the_largest_number_name_a_scale_at_which_they_fit() -> None:
    row = TensorRanges.of("gradient", "fc", np.float32([1e5, 1.0]), 2.0**20)
    (line,) = advice(StepRecords(np.zeros(0, np.float32)), [], RangeRecords([row]))
    assert line.startswith("50% of the gradients of fc that were sampled were above 65504, and all of them fit at")
    assert 1e5 / 2.0**20 * 262144 <= 65504 and "start at 262144," in line


def test_a_model_that_was_not_trained_says_so(tmp_path: pathlib.Path) -> None:
    chain_model(mixtrain.DynamicLossScaleManager(16)).report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "This Model has not been trained yet" in text and "Nothing stands out" not in text
    assert re.findall(r'<section id="(\w+)"', text) == ["plan"]


def test_a_run_that_ended_in_its_first_epoch_says_so() -> None:
    text = report_html(untrained_data(run={"started": "2026-01-01 00:00:00 UTC", "seconds": None}))
    assert "ended before its first epoch did" in text and "not been trained" not in text


def test_names_and_values_of_a_file_are_escaped() -> None:
    evil = '<script>"&'
    row = dict.fromkeys(("path", "layer", "compute_dtype", "parameter_dtype", "output_dtype", "rule", "why"), evil)
    epoch = {"epoch": 1, "step": 1, "values": {evil: 1.0, f"val_{evil}": 2.0}}
    text = report_html(untrained_data(
        network=evil, device=evil, plan={"level": evil, "reason": evil, "rows": [row]}, advice=[evil],
        run={"started": evil, "optimizer": evil, "loss scaling": evil, "versions": evil, "epochs": [epoch]},
        steps={"loss": [1.0], "loss_scale": [2.0], "overflow": [True]},
        overflows=[{"step": evil, "loss_scale": 2.0, "next_loss_scale": 1.0, "finding": evil}],
    ), untrained_data(), names=[evil, "b"])
    assert "<script" not in text and '"&"' not in text and "&lt;script&gt;&quot;&amp;" in text
    with pytest.raises(ValueError):
        report_html(untrained_data(steps={"first": evil, "loss": [1.0], "loss_scale": [2.0], "overflow": [True]}))


@pytest.mark.slow
def test_the_facts_of_a_run_and_its_validation_are_shown(tmp_path: pathlib.Path) -> None:
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model = mixtrain.Model(network, "mse", keras.optimizers.Adam(0.125), metrics=["mae"], amp_level="O2")
    data = np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)
    history = model.fit(*data, batch_size=2, epochs=3, validation_data=data, verbose=0)
    model.report(tmp_path / "run.json")
    run = json.loads((tmp_path / "run.json").read_text())
    assert [epoch["step"] for epoch in run["run"]["epochs"]] == [4, 8, 12]
    for name in ("loss", "mae", "val_loss", "val_mae"):
        assert [epoch["values"][name] for epoch in run["run"]["epochs"]] == history[name]
    assert run["plan"]["rows"][1]["why"] == "the level's default"
    text = report_html(run)
    for fact in (
        "Adam, last learning rate 0.125", "DynamicLossScaleManager", f"keras {keras.__version__}",
        f"mixtrain {mixtrain.__version__}", "12 in 3 epochs, 0 skipped (0.0%)", f"{history['val_mae'][-1]:.6g}",
        "the level&#x27;s default", "val_loss", 'aria-label="mae over steps 1 to 12"',
    ):
        assert fact in text, fact
    # Epochs 1 to 3 end at a third, two thirds and the end of each of three charts.
    assert re.findall(r'class="epoch" x1="([^"]*)"', text) == ["33.33%", "66.67%", "100.0%"] * 3
    ends = re.findall(r'<path class="run0 dashed dots" d="([^"]*)"', text)
    assert len(ends) == 2 and all(path.count("M") == 3 for path in ends)


def test_two_runs_are_side_by_side(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, scale in (("a", 8.0), ("b", 2.0)):
        steps = {"loss": [2.0, 1.0], "loss_scale": [scale] * 2, "overflow": [False] * 2}
        (tmp_path / f"{name}.json").write_text(json.dumps(untrained_data(steps=steps, advice=[f"advice of {name}"])))
    assert main(["report", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 0
    text = (tmp_path / "a-b.html").read_text(encoding="utf-8")
    assert "<title>mixtrain: a: Net at O2 | b: Net at O2</title>" in text
    # One chart of each kind, with a curve of each run; one plan, as it is the same; the advice of each.
    assert len(re.findall('<svg class="chart"', text)) == 2
    assert re.findall(r'<polyline class="(run\d)"', text) == ["run0", "run1"] * 2
    assert text.count("The same for each run.") == 3 and text.count('<table class="plan') == 1
    assert [f"<li>advice of {name}</li>" in text for name in "ab"] == [True, True]
    capsys.readouterr()
    (tmp_path / "b.json").write_text("{")
    assert main(["report", str(tmp_path / "a.json"), str(tmp_path / "b.json")]) == 1
    assert "b.json' to be a run report" in capsys.readouterr().err


@pytest.mark.parametrize(("low", "high", "ticks"), [
    (0.0005755, 2.326, [1.0, 2.0]), (0.31, 0.87, [0.4, 0.6, 0.8]), (-3.0, 5.0, [-2.0, 0.0, 2.0, 4.0]),
    (7.0, 7.0, [7.0]),
])
def test_ticks_are_round_numbers_of_the_range(low: float, high: float, ticks: list[float]) -> None:
    text = chart("loss", [Curve("loss", "run0", [(1, low), (2, high)])], 1, 2)
    assert re.findall(r'text-anchor="end">([^<]*)</text>', text)[:-1] == [f"{tick:.4g}" for tick in ticks]


def test_a_long_curve_keeps_its_peaks() -> None:
    points = [(step, 100.0 if step == 77_777 else 1.0) for step in range(1, 100_001)]
    text = chart("loss", [Curve("loss", "run0", points)], 1, 100_000)
    (drawn,) = re.findall(r'points="([^"]*)"', text)
    assert len(drawn.split()) <= 1000 and drawn.count(",20.0") == 1


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


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium")
@pytest.mark.parametrize("width", [375, 1000])
def test_nothing_on_the_page_is_wider_than_the_page(width: int, page: pathlib.Path, tmp_path: pathlib.Path) -> None:
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe src="{page.as_uri()}" width="{width}" height="900" style="border:0" onload="document.title ='
        'this.contentDocument.documentElement.scrollWidth"></iframe>'
    )
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
        "--allow-file-access-from-files", "--hide-scrollbars", "--dump-dom", frame.as_uri(),
    ]
    dom = subprocess.run(command, check=True, timeout=120, capture_output=True, text=True).stdout
    assert f"<title>{width}</title>" in dom
