"""The backend is checked first, and the import says nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mixtrain import MixtrainError, UnsupportedBackendError
from mixtrain.engine.backend import check_backend


def imported(**environment: str) -> subprocess.CompletedProcess[str]:
    """Import mixtrain in a fresh process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "KERAS_"))}
    command = [sys.executable, "-c", "import mixtrain"]
    return subprocess.run(command, env={**kept, **environment}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("backend", ["jax", "torch", "numpy"])
def test_a_backend_without_an_engine_is_refused_and_the_error_says_what_to_set(backend: str) -> None:
    result = imported(KERAS_BACKEND=backend)
    assert result.returncode == 1
    last = result.stderr.strip().splitlines()[-1]
    assert f'must be tensorflow; got "{backend}"' in last
    assert "KERAS_BACKEND=tensorflow" in last


@pytest.mark.slow
def test_importing_prints_nothing() -> None:
    result = imported()
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_the_error_is_an_import_error_and_a_mixtrain_error() -> None:
    with pytest.raises(UnsupportedBackendError) as caught:
        check_backend("torch")
    assert isinstance(caught.value, ImportError) and isinstance(caught.value, MixtrainError)
    check_backend("tensorflow")
