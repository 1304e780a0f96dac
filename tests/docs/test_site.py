"""The documentation site builds without a warning, and a browser reads it and searches it, offline."""

from __future__ import annotations

import functools
import html.parser
import http.server
import importlib.util
import json
import os
import pathlib
import posixpath
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from tests.docs.pages import ROOT

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.tensorflow,  # The same pages on each backend: written once.
    pytest.mark.skipif(importlib.util.find_spec("material") is None, reason='needs pip install -e ".[docs]"'),
]
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed: apt-get install chromium")

# The browser prints a page when all of it is loaded: the image comes when the script has seen a result.
SEARCH_WATCHER = b"""<img src="/wait"><script>setInterval(
    () => document.querySelector(".md-search-result__item a") && fetch("/found"), 200)</script>"""


def build(site: pathlib.Path, configuration: pathlib.Path) -> subprocess.CompletedProcess[str]:
    # Not --quiet: MkDocs 1.6 then counts no warning, so that --strict fails on none.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", configuration, "-d", site]
    path = os.pathsep.join((str(ROOT), str(configuration.parents[2])))
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(folder, ROOT / "docs/site/mkdocs.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: pathlib.Path) -> Iterator[str]:
    result = threading.Event()

    class Handler(http.server.SimpleHTTPRequestHandler):
        """Serve the site; an address with `?q=` is not loaded, for the browser, until the search has results."""

        def do_GET(self) -> None:
            if self.path == "/found":
                result.set()
            if self.path == "/wait":
                result.wait(timeout=300)
            if "?q=" not in self.path:
                return super().do_GET()
            result.clear()
            body = (site / self.path.partition("?")[0].lstrip("/")).read_bytes() + SEARCH_WATCHER
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Page(html.parser.HTMLParser):
    """The links and the loaded files of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        loads = values.get("src") if tag != "link" else values.get("href")
        if loads:
            self.loaded.append(loads)


def dom(url: str, profile: pathlib.Path) -> str:
    """Return a page as Chromium, which reaches no other host, has it when all of it is loaded."""
    command = [
        str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--dump-dom", url,
    ]
    return subprocess.run(command, check=True, timeout=600, capture_output=True, text=True).stdout


def test_every_public_name_has_a_page_or_a_row(site: pathlib.Path) -> None:
    for module, names in json.loads((ROOT / "tests/structure/public_names.json").read_text()).items():
        text = (site / f"reference/{module}.html").read_text()
        assert [name for name in names if f"<code>{name}</code>" not in text] == []
        pages = [link for link in Page(text).links if re.match(r"mixtrain[\w.]*/", link)]
        assert [page for page in pages if not (site / "reference" / page).is_file()] == []


def test_a_name_of_mindspore_says_so_and_one_of_mixtrains_own_does_not(site: pathlib.Path) -> None:
    for page, source in {
        "mixtrain.nn/Dense": "MindSpore, <code>mindspore.nn.Dense</code>",
        "mixtrain/LossMonitor": "MindSpore, <code>mindspore.train.callback.LossMonitor</code>",
        "mixtrain/jit": "MindSpore, <code>mindspore.jit</code>",
    }.items():
        assert source in (site / f"reference/{page}.html").read_text()
    for page in ("mixtrain/tune", "mixtrain.keras/prepare", "mixtrain.diagnostics/Finding"):
        assert "<code>mindspore." not in (site / f"reference/{page}.html").read_text()


def test_pages_load_files_of_the_site_alone(site: pathlib.Path) -> None:
    for page in [*site.glob("*.html"), *site.glob("guide/*.html"), *site.glob("reference/mixtrain/*.html")]:
        assert [file for file in Page(page.read_text()).loaded if "://" in file or file.startswith("//")] == []


@in_a_browser
def test_a_browser_opens_pages_and_follows_ten_links(address: str, tmp_path: pathlib.Path) -> None:
    followed = 0
    for start in ("index.html", "guide/precision.html", "reference/mixtrain/DynamicLossScaleManager.html"):
        text = dom(f"{address}/{start}", tmp_path / "profile")
        assert "md-content" in text and "<h1" in text
        body = text[text.index("<article"):text.index("</article>")]
        links = [link.partition("#")[0] for link in Page(body).links if "://" not in link and link[0] != "#"]
        for link in list(dict.fromkeys(links))[: 10 if start == "index.html" else 2]:
            there = posixpath.normpath(posixpath.join(posixpath.dirname(start), link))
            if there.endswith(".html"):
                assert "<h1" in dom(f"{address}/{there}", tmp_path / "profile"), f"{start} links to {link}"
                followed += 1
    assert followed >= 10


@in_a_browser
def test_the_search_finds_a_class(address: str, tmp_path: pathlib.Path) -> None:
    text = dom(f"{address}/index.html?q=DynamicLossScaleManager", tmp_path / "profile")
    results = text[text.index("md-search-result__list"):]
    first = next(link for link in Page(results).links if "reference/" in link)
    assert "reference/mixtrain/DynamicLossScaleManager.html" in first


def test_the_build_fails_on_a_dead_link_and_on_a_name_without_a_docstring(tmp_path: pathlib.Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "docs", copy / "docs")
    (copy / "tests/structure").mkdir(parents=True)
    for name in ("README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    names = copy / "tests/structure/public_names.json"
    names.write_text('{"mixtrain": ["Model"]}')
    index = copy / "docs/index.md"
    text = index.read_text()
    index.write_text(text + "\n[nowhere](guide/nowhere.md) [no heading](guide/precision.md#no-such-heading)\n")
    done = build(tmp_path / "site", copy / "docs/site/mkdocs.yml")
    assert done.returncode != 0
    assert "guide/nowhere.md" in done.stdout + done.stderr and "no-such-heading" in done.stdout + done.stderr
    index.write_text(text)
    (copy / "undocumented.py").write_text("def told() -> None: ...\n")
    names.write_text('{"mixtrain": ["Model"], "undocumented": ["told"]}')
    done = build(tmp_path / "site", copy / "docs/site/mkdocs.yml")
    assert done.returncode != 0 and "undocumented.told" in done.stdout + done.stderr
