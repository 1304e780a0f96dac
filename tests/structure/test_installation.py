"""The installed package is what Python imports, wherever it starts."""

from __future__ import annotations

import importlib.metadata
import pathlib
import subprocess
import sys

import pytest

import mixtrain


@pytest.mark.skipif(not list(importlib.metadata.distributions(name="mixtrain")), reason="mixtrain is not installed")
def test_a_folder_named_like_the_package_does_not_hide_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mixtrain").mkdir()  # As a clone of the repository is, for Python that starts in the folder above.
    question = "import importlib.util; print(importlib.util.find_spec('mixtrain').origin)"
    done = subprocess.run([sys.executable, "-c", question], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == mixtrain.__file__
