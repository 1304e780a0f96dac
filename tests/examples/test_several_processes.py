"""The example of several processes runs as its readers start it, and all processes say the same."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "several_processes.py"


@pytest.mark.slow
def test_both_processes_print_the_same_losses_and_skips() -> None:
    command = [sys.executable, str(SCRIPT), "--processes", "2", "--epochs", "2"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout.splitlines()
    lines = sorted(line for line in printed if line.startswith("rank "))
    first, second = (line.partition(": ")[2] for line in lines)
    assert first == second and first.endswith("; 2 steps skipped")
