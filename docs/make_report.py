"""Make the report that the pages show: `python docs/make_report.py` trains LeNet-5 from a loss scale of 2**24.

It writes with Chromium `report.png`, a picture of how the page begins, and `report.txt`: which picture and style sheet
it belongs to, and the text of the page.
"""

from __future__ import annotations

import hashlib
import html
import pathlib
import re
import runpy
import shutil
import subprocess
import tempfile

import mixtrain
import mixtrain.dataset as ds
from mixtrain import nn

DOCS = pathlib.Path(__file__).parent
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_TAGS = re.compile(r"<(style|script)\b.*?</\1>|<[^>]*>", re.DOTALL)
# What ends a line of the page's text; cells of a row are joined by spaces.
_LINES = re.compile(r"</?(?:tr|p|h\d|li|title|text|div|section)\b[^>]*>")


def write_report(page: pathlib.Path) -> mixtrain.Model:
    """Train the network of an example, which overflows at first, and write the report of the run; return its Model."""
    example = runpy.run_path(str(DOCS.parent / "examples/lenet_digits.py"))
    mixtrain.set_seed(1)
    network = example["LeNet5"]()
    data = ds.NumpySlicesDataset(example["load_digits"](), ["image", "label"]).batch(32, True)
    model = mixtrain.Model(
        network, nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean"),
        nn.Momentum(network.trainable_params(), 0.05, 0.9), amp_level="O2", explain_overflow=True,
        loss_scale_manager=mixtrain.DynamicLossScaleManager(scale_window=100),
    )
    model.train(6, data, callbacks=[mixtrain.RangeMonitor()], verbose=0)
    model.report(page)
    return model


def text_of(page: str) -> str:
    """Return the text that a browser shows of a page, a row of a table in a line."""
    lines = _TAGS.sub(" ", _LINES.sub("\n", page)).splitlines()
    return "".join(f"{html.unescape(' '.join(line.split()))}\n" for line in lines if line.split())


def origin() -> str:
    """Return the line that ties the text to a picture, and to the style sheet that the picture was drawn with."""
    files = {"picture": DOCS / "report.png", "style sheet": DOCS.parent / "mixtrain/diagnostics/report.css"}
    return ", ".join(f"{name} {hashlib.sha256(file.read_bytes()).hexdigest()[:16]}" for name, file in files.items())


def main() -> None:
    """Write the picture and the text beside the pages, both or neither."""
    if BROWSER is None:
        raise SystemExit("make_report: Chromium draws the page and is not installed. Write: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder, "report.html")
        write_report(page)
        command = [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            f"--user-data-dir={folder}/profile", "--window-size=1000,1180", "--blink-settings=preferredColorScheme=1",
            f"--screenshot={DOCS / 'report.png'}", page.as_uri(),
        ]
        subprocess.run(command, check=True, timeout=120)
        (DOCS / "report.txt").write_text(f"{origin()}\n{text_of(page.read_text(encoding='utf-8'))}", encoding="utf-8")


if __name__ == "__main__":
    main()
