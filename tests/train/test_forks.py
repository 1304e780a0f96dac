"""Processes forked after `import mixtrain` train as alone; where they would wait forever they are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.docs.pages import ROOT


def trained_in(kind: str) -> dict[str, Any]:
    """Return what training gave in a child process, and in its parent afterwards."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.train.fork_worker", kind]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["imported", "spawned"])
def test_a_process_that_was_forked_after_the_import_or_spawned_trains_as_its_parent(kind: str) -> None:
    result = trained_in(kind)
    assert result["child"] == result["parent"] and len(result["parent"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["built", "trained"])
def test_a_process_that_was_forked_after_the_backend_started_is_refused_in_a_sentence(kind: str) -> None:
    result = trained_in(kind)
    assert result["child"] == (
        "Model.train: expected a process in which the backend can start; got one forked from a process "
        'where it had started, whose threads stayed there. Write multiprocessing.get_context("spawn"), or fork before '
        "anything is computed."
    )
    assert len(result["parent"]) == 2
