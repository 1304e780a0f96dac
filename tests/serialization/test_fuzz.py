"""Thousands of damaged and hostile files: each is refused in one way, and costs and touches nothing.

``MIXTRAIN_FUZZ=100000`` sets how many mutants the slow tests read.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from mixtrain.serialization.checkpoint import RunState
from mixtrain.serialization.store import read_file, write_file
from tests.backends import quick_only_some
from tests.docs.pages import ROOT
from tests.serialization.hdf5_files import write_old
from tests.serialization.mutations import mutant

MANY = int(os.environ.get("MIXTRAIN_FUZZ", "10000"))
VALUES: dict[str, Any] = {
    "weight": np.arange(600, dtype=np.float32).reshape(20, 30), "flags": np.array([True, False, True]),
    "half": (np.arange(8, dtype=np.uint16), "bfloat16"), "empty": np.zeros((0, 2), np.float32),
    "scalar": np.array(3, np.int64), "text": "words",
}
STATES = {"loss_scale.counts": np.zeros(5, np.int32), "dropout.seed_generator": np.arange(2, dtype=np.uint32)}
FACTS: dict[str, Any] = {
    "epoch": 3, "step": 12, "batch_num": 4,
    "plan": {"level": "O2", "half": "float16", "reason": "", "rows": [["fc", "Dense", "O2", "float16", "float32", ""]]},
    "seed": {
        "seed": 7, "generator": np.random.default_rng(7).bit_generator.state, "drawing": [["dropout", 0, [1, 2]]],
    },
}


@dataclasses.dataclass(frozen=True)
class Result:
    """What reading some mutants came to.

    Attributes:
        outcomes: How often each came.
        seconds: What the slowest took.
        mib: The most memory that one took.
        opened: Other files that were opened, or processes started.
    """

    outcomes: dict[str, int]
    seconds: float
    mib: float
    opened: set[str]


def fuzzed(path: pathlib.Path, count: int) -> Result:
    """Read mutants 0, 1, ... of a file in another process; where it dies, the next goes on behind that mutant."""
    outcomes: collections.Counter[str] = collections.Counter()
    seconds, mib, opened, first = [0.0], [0.0], set(), 0
    while first < count:
        run = subprocess.run(
            [sys.executable, "-m", "tests.serialization.fuzz_worker", str(path), str(first), str(count - first)],
            cwd=ROOT, capture_output=True, text=True, timeout=3000,
        )
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        assert lines, run.stderr[-2000:]
        reports = [line for line in lines if "outcome" in line]
        outcomes.update(report["outcome"] for report in reports)
        seconds += [report["seconds"] for report in reports]
        mib += [report["mib"] for report in reports]
        opened |= {name for report in reports for name in report["opened"]}
        if "outcome" not in lines[-1]:
            outcomes[f"died with {run.returncode} at mutant {lines[-1]['number']}"] += 1
        first = lines[-1]["number"] + 1
    print(f"{path.name}: {dict(outcomes)}, at most {max(seconds):.3f} s and {max(mib):.1f} MiB, opened {opened}")
    return Result(dict(outcomes), max(seconds), max(mib), opened)


def checkpoint(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "whole.ckpt"
    write_file(str(path), VALUES, RunState(STATES, FACTS))
    return path


def old_checkpoint(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "old.ckpt"
    write_old(path, VALUES, STATES, FACTS)
    return path


def test_hundreds_of_mutants_are_refused_without_opening_anything_else(tmp_path: pathlib.Path) -> None:
    result = fuzzed(checkpoint(tmp_path), 600)
    assert result.outcomes == {"refused": 600}
    assert result.opened == set() and result.mib < 200


def test_mutants_are_the_same_each_time_and_no_two_kinds_alike(tmp_path: pathlib.Path) -> None:
    whole = checkpoint(tmp_path).read_bytes()
    first, second = ([mutant(whole, number) for number in range(90)] for _ in range(2))
    assert first == second and whole not in first
    assert len(set(first)) > 80


@pytest.mark.parametrize("make", quick_only_some([checkpoint, old_checkpoint]))
def test_the_file_that_mutants_are_made_of_is_whole(make: Any, tmp_path: pathlib.Path) -> None:
    values, state = read_file(str(make(tmp_path)), lambda name: True)
    assert list(values) == list(VALUES) and values["text"] == "words"
    assert state.facts == FACTS and list(state.arrays) == list(STATES)


@pytest.mark.slow
def test_ten_thousand_mutants_are_refused_at_little_cost(tmp_path: pathlib.Path) -> None:
    result = fuzzed(checkpoint(tmp_path), MANY)
    assert result.outcomes == {"refused": MANY}
    assert result.opened == set() and result.mib < 200


@pytest.mark.slow
def test_ten_thousand_damaged_hdf5_files_are_refused_or_give_the_values_they_had(tmp_path: pathlib.Path) -> None:
    result = fuzzed(old_checkpoint(tmp_path), MANY)
    assert set(result.outcomes) == {"refused", "as it was"}
    assert result.outcomes["refused"] > MANY / 2
    assert result.opened == set() and result.mib < 200
