"""What overflows on one replica alone is skipped by all: the run ends, bit for bit, where one without it ends."""

from __future__ import annotations

import dataclasses
import itertools
import os
import warnings
from collections.abc import Iterator

import pytest

from mixtrain.train.steps_per_call import StepsPerCall
from tests import devices
from tests.train.skip_cases import FEEDS, Case, drawn_case, run

COUNT = int(os.environ.get("MIXTRAIN_SKIP_CASES", "20"))
# Batch statistics, dropout, a generator and a counter of its own, variables where no tracker looks.
PARTS = ("Plants", "BatchNormalization", "Dropout", "OwnNoise", "Hidden")
# At the input, in a layer, in its gradient alone, and at the loss.
FAULTS = {1: "one inf", 2: "inf label", 3: "forward", 4: "nan", 5: "gradient"}


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a call of the group feed run three steps."""
    monkeypatch.setattr(StepsPerCall, "estimate", lambda self, batch_bytes, most=0: 3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Model: in epoch .* steps were skipped although")
        yield


def check(case: Case, replica: int, count: int = 2) -> None:
    control, skipping = (run(case, faults=faults, replica=replica, devices=count) for faults in (False, True))
    assert (control.skipped, skipping.skipped) == (0, 2 * len(case.faults)), str(case)
    assert skipping.difference(control) == [], str(case)


def feeds_and_replicas() -> list[tuple[int, str, int]]:
    """Return two devices with each feed and each replica; of many devices each replica has one feed."""
    many = [(count, replica) for count in (4, 8) if count <= devices.COUNT for replica in range(count)]
    return [(2, feed, replica) for feed, replica in itertools.product(FEEDS, (0, 1))] + [
        (count, FEEDS[replica % 3], replica) for count, replica in many
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "feed", "replica"), feeds_and_replicas())
def test_a_replica_that_overflows_alone_leaves_no_trace(count: int, feed: str, replica: int) -> None:
    check(Case(5, "keras", PARTS, "keras Adam", 2, "O0", feed, FAULTS, eager=False), replica, count)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(COUNT))
def test_many_networks_are_left_as_they_were(seed: int) -> None:
    case = dataclasses.replace(drawn_case(seed), eager=False)
    if any(name.startswith("stateful") for name in case.parts):
        pytest.skip("a state with an entry for each row has the rows of all replicas")
    check(case, replica=seed % 2)
