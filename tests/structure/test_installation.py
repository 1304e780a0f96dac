"""The installed package is what Python imports, wherever it starts."""

from __future__ import annotations

import configparser
import pathlib
import subprocess
import sys

import pytest

QUESTION = """
import importlib.metadata, importlib.util
installed = list(importlib.metadata.distributions(name="mixtrain"))
print(importlib.util.find_spec("mixtrain").origin if installed else "not installed")
"""


def test_a_folder_named_like_the_package_does_not_hide_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mixtrain").mkdir()  # As a clone of the repository is, for Python that starts in the folder above.
    done = subprocess.run([sys.executable, "-c", QUESTION], cwd=tmp_path, capture_output=True, text=True, check=True)
    if done.stdout.strip() == "not installed":
        pytest.skip("mixtrain is not installed")
    assert pathlib.Path(done.stdout.strip()).parts[-2:] == ("mixtrain", "__init__.py")


def test_files_that_are_not_python_are_installed() -> None:
    root = pathlib.Path(__file__).parents[2]
    settings = configparser.ConfigParser()
    settings.read(root / "setup.cfg")
    listed = settings["options.package_data"]["mixtrain"].replace(" ", "").split(",")
    others = [path for path in (root / "mixtrain").rglob("*.*") if path.suffix not in (".py", ".pyc")]
    assert sorted(str(path.relative_to(root / "mixtrain")) for path in others if path.is_file()) == sorted(listed)
