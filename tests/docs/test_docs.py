"""The documentation is true: its code runs, its output is what the code prints, its links, files and names exist."""

from __future__ import annotations

import configparser
import importlib
import importlib.util
import pathlib
import re
import warnings
from typing import Any

import pytest

from tests.backends import quick_every
from tests.ci import pipeline
from tests.docs.pages import PAGES, ROOT, anchors_of, blocks_of, links_of, prose_of, rows_of
from tests.structure.test_layers import LAYERS

NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
NOT_RUN = re.compile(r"^not run\b:?\s*(.*)$")
NEEDS = re.compile(r"^needs: (\w+)$")


def reason_not_to_run(comment: str) -> str | None:
    """Return why a block is not run; None where it is.

    Raises:
        ValueError: The comment gives no reason.
    """
    match = NOT_RUN.match(comment)
    if match is None:
        return None
    if not match[1]:
        raise ValueError("write why: <!-- not run: it needs a GPU -->")
    return match[1]


def missing_package(comment: str) -> str | None:
    """Return the package that a block needs, as in ``<!-- needs: wandb -->``, where it is not installed."""
    match = NEEDS.match(comment)
    return match[1] if match is not None and importlib.util.find_spec(match[1]) is None else None


def resolve(dotted: str) -> Any:
    """Return what a dotted name that starts with a package means."""
    parts = dotted.split(".")
    result = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], start=2):
        if not hasattr(result, part):
            importlib.import_module(".".join(parts[:index]))
        result = getattr(result, part)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_blocks_run_and_print_the_text_that_follows_them(
    page: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "docs"}
    printed: str | None = None
    for block in blocks_of(page.read_text()):
        if block.language == "python":
            printed = None
            if reason_not_to_run(block.comment) is None and missing_package(block.comment) is None:
                code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
                capsys.readouterr()
                with warnings.catch_warnings():
                    if NEEDS.match(block.comment):  # Other packages warn as they like.
                        warnings.simplefilter("ignore")
                    exec(code, namespace)
                printed = capsys.readouterr().out
        elif block.language == "text" and block.follows and printed is not None:
            assert lines_of(printed) == lines_of(block.text), f"{page.name}:{block.line}"


def lines_of(text: str) -> list[str]:
    """Return lines without spaces and blank lines at their ends."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


@quick_every(3)
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_relative_links_lead_to_files_and_headings_that_exist(page: pathlib.Path) -> None:
    text = page.read_text()
    for link in links_of(text):
        target, _, anchor = link.partition("#")
        there = (page.parent / target) if target else page
        assert there.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors_of(there.read_text()), f"{page.name} links to {link}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_source_files_that_a_page_names_exist(page: pathlib.Path) -> None:
    for name in re.findall(r"`([\w./]+/[\w./]*\.(?:py|md))`", prose_of(page.read_text())):
        places = [ROOT / name, ROOT / "mixtrain" / name, page.parent / name]
        assert any(place.exists() for place in places), f"{page.name} names {name}"


def test_readme_holds_one_command_for_the_main_job_and_one_for_the_tests() -> None:
    bash = [block for block in blocks_of((ROOT / "README.md").read_text()) if block.language == "bash"]
    commands = [line for block in bash for line in block.text.splitlines() if line.startswith("python -m pip")]
    assert len(commands) == 2
    job, test = commands
    assert "python examples/lenet_digits.py" in job and (ROOT / "examples/lenet_digits.py").exists()
    assert "python -m pytest" in test
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg")
    for command in commands:
        extra = re.search(r'-e "?\.\[(\w+)\]', command)
        assert extra is not None and extra[1] in settings["options.extras_require"]


def test_readme_marks_the_test_command_as_continuous_integration_looks_for_it() -> None:
    marker = "<!-- test-command -->"
    text = (ROOT / "README.md").read_text()
    assert text.count(marker) == 1
    result = re.search(rf"^{marker}$(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert result is not None
    command = re.search(r"^python -m pip.*$", result[1], flags=re.MULTILINE)
    assert command is not None and "python -m pytest" in command[0]
    assert pipeline.command_of("README.md", "test-command") == command[0]


def test_the_backends_page_marks_the_command_that_continuous_integration_runs_on_jax() -> None:
    marker = "<!-- jax-test-command -->"
    text = (ROOT / "docs/guide/backends.md").read_text()
    result = re.search(rf"^{marker}$(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert result is not None
    command = re.search(r"^python -m pip.*$", result[1], flags=re.MULTILINE)
    assert command is not None and "KERAS_BACKEND=jax python -m pytest" in command[0] and "tensorflow" not in command[0]
    assert pipeline.command_of("docs/guide/backends.md", "jax-test-command") == command[0]


def test_every_name_in_the_word_table_exists() -> None:
    rows = list(rows_of((ROOT / "docs/from_mindspore.md").read_text()))
    words = [row for row in rows if row[0].startswith("`mindspore")]
    assert len(words) >= 40
    for there, here, *_ in words:
        names = re.findall(r"`((?:mixtrain|keras)(?:\.\w+)+)", here)
        assert names, f"{there} has no name here"
        for name in names:
            resolve(name)


def test_the_architecture_page_draws_the_layers_that_the_structure_test_checks() -> None:
    drawing = next(block.text for block in blocks_of((ROOT / "docs/architecture.md").read_text()))
    for number, packages in enumerate(LAYERS):
        line = re.search(rf"^\s*{number}\s.*(?:\n {{3}}.*)*$", drawing, flags=re.MULTILINE)
        assert line is not None, f"layer {number} is not drawn"
        for package in packages:
            assert re.search(rf"\b{re.escape(package)}\b", line[0]), f"{package} is not drawn on layer {number}"


def test_a_block_that_is_not_run_must_say_why() -> None:
    assert reason_not_to_run("not run: it needs a GPU") == "it needs a GPU"
    assert reason_not_to_run("test-command") is None
    with pytest.raises(ValueError, match="write why"):
        reason_not_to_run("not run")
