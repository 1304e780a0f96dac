"""MindSpore's environment variable sets the level of the log."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_level_of_the_environment_is_that_of_the_log() -> None:
    code = "import mixtrain.log as log; print(log.get_level(), log.GLOBAL_LOGGER.name)"
    shown = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"GLOG_v": "3"}, capture_output=True, text=True, check=True
    ).stdout
    assert shown.split() == ["3", "mixtrain"]
