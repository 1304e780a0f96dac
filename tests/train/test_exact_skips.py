"""A run whose batches overflow here and there ends, bit for bit, where the run without those batches ends."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest

from mixtrain.train.steps_per_call import StepsPerCall
from tests.backends import ON_TENSORFLOW
from tests.train.skip_cases import drawn_case, run

# 200 were run by hand; `.ci/run` has time for some of them.
COUNT = int(os.environ.get("MIXTRAIN_SKIP_CASES", "30"))
FEW = (0, 3, 5, 23) if ON_TENSORFLOW else (0, 3)


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a call of the group feed run three steps."""
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
        yield


def check(seed: int) -> None:
    case = drawn_case(seed)
    control, skipping = run(case, faults=False), run(case, faults=True)
    assert (control.skipped, skipping.skipped) == (0, 2 * len(case.faults)), str(case)
    assert skipping.difference(control) == [], str(case)


@pytest.mark.slow
@pytest.mark.parametrize("seed", FEW)
def test_a_run_with_skipped_steps_ends_where_the_run_without_them_ends(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT))
def test_many_runs_with_skipped_steps_end_where_those_without_them_end(seed: int) -> None:
    check(seed)
