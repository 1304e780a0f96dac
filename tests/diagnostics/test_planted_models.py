"""Every fault planted in networks of public examples is named with layer, counts, size and a cure that cures."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.diagnostics.curing import quiet, wrong
from tests.diagnostics.planted import FAULTS, Fault
from tests.diagnostics.planted_models import MODEL_FAULTS

ROWS = [(fault, level, half) for fault in MODEL_FAULTS for level in fault.levels for half in fault.halves]


@pytest.fixture(autouse=True)
def without_warnings() -> Iterator[None]:
    with quiet():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
@pytest.mark.parametrize(
    ("fault", "level", "half"), ROWS, ids=[f"{fault.name}-{level}-{half}" for fault, level, half in ROWS]
)
def test_a_fault_of_a_public_network_is_named_with_the_cure_that_cures(
    fault: Fault, level: str, half: str, sink: bool
) -> None:
    assert wrong(fault, level, half, sink=sink) == []


def test_there_are_enough_faults_and_no_two_of_a_name() -> None:
    names = [fault.name for fault in (*FAULTS, *MODEL_FAULTS)]
    assert len(set(names)) == len(names) and len(MODEL_FAULTS) >= 85 and len(names) >= 150
