"""What is uploaded: a source distribution that is whole, a wheel of the package alone, and what both say of it."""

from __future__ import annotations

import email
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

import mixtrain

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = ("benchmarks", "docs", "examples", "mixtrain", "tests")
FILES = (
    "CHANGELOG.md", "CITATION.cff", "LICENSE", "MANIFEST.in", "README.md", "SECURITY.md", "pyproject.toml", "setup.cfg",
    "setup.py",
)
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", "*.egg-info")
BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, f'build_{sys.argv[1]}')('dist')"
pytest.importorskip("setuptools", reason="it builds the distributions: pip install setuptools")
# Older ones make wheels with the package `wheel`.
MAKES_WHEELS = any(map(importlib.util.find_spec, ("wheel", "setuptools.command.bdist_wheel")))


def built(folder: pathlib.Path, kind: str) -> pathlib.Path:
    """Build a distribution in a folder with the sources; return its file."""
    (folder / "dist").mkdir(exist_ok=True)
    subprocess.run([sys.executable, "-c", BUILD, kind], cwd=folder, check=True, capture_output=True)
    return next((folder / "dist").glob("*.tar.gz" if kind == "sdist" else "*.whl"))


def sources(folder: pathlib.Path) -> set[str]:
    """Return the files of the sources in a folder, without what tests and builds leave there."""
    files = {path for name in FOLDERS for path in (folder / name).rglob("*") if path.is_file()}
    return {str(path.relative_to(folder)) for path in files} | set(FILES)


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """A copy of the sources, and the folder with what its source distribution holds."""
    copy, target = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("unpacked")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=IGNORED)
    for name in FILES:
        shutil.copy(ROOT / name, copy / name)
    with tarfile.open(built(copy, "sdist")) as archive:
        archive.extractall(target, filter="data")
    return copy, next(target.iterdir())


@pytest.mark.slow
def test_the_source_distribution_is_whole(unpacked: tuple[pathlib.Path, pathlib.Path]) -> None:
    copy, inside = unpacked
    assert sources(inside) == sources(copy)


@pytest.mark.slow
@pytest.mark.skipif(not MAKES_WHEELS, reason="this setuptools makes no wheels")
def test_the_wheel_of_the_source_distribution_holds_the_package_alone(
    unpacked: tuple[pathlib.Path, pathlib.Path]
) -> None:
    copy, inside = unpacked
    names = {name for name in zipfile.ZipFile(built(inside, "wheel")).namelist() if ".dist-info/" not in name}
    assert names == {name for name in sources(copy) if name.startswith("mixtrain/")}


@pytest.mark.slow
def test_the_distributions_say_who_made_them_and_for_what(unpacked: tuple[pathlib.Path, pathlib.Path]) -> None:
    facts = email.message_from_string((unpacked[1] / "PKG-INFO").read_text(encoding="utf-8"))
    assert (facts["Name"], facts["Version"]) == ("mixtrain", mixtrain.__version__)
    assert facts["Author"] == "The mixtrain developers"
    assert facts["Author"] in (ROOT / "CITATION.cff").read_text()
    classifiers = facts.get_all("Classifier") or []
    for start in ("Development Status :: ", "Operating System :: ", "Typing :: Typed", "Programming Language :: "):
        assert any(classifier.startswith(start) for classifier in classifiers), start
    assert not any(re.search(r"^License", classifier) for classifier in classifiers)  # It is an expression.
