"""The example of several devices runs as its readers start it, and both of its runs have the same numbers."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "several_devices.py"


@pytest.mark.slow
def test_one_device_and_several_print_the_same_losses() -> None:
    command = [sys.executable, str(SCRIPT), "--devices", "2", "--epochs", "2"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    one, several = (line.partition(": ")[2] for line in printed)
    assert one.endswith("2 steps skipped") and one.split()[-3:] == several.split()[-3:]
    losses = [[float(part.strip(",;")) for part in line.split()[1:3]] for line in (one, several)]
    assert losses[0] == pytest.approx(losses[1], abs=2e-5)
