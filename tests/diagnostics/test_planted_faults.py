"""Every planted fault is named with layer, counts, size and dtype, and what the sentence advises cures it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from tests.diagnostics.curing import quiet, train, wrong
from tests.diagnostics.planted import FAULTS, Fault

ROWS = [(fault, level, half) for fault in FAULTS for level in fault.levels for half in fault.halves]


@pytest.fixture(autouse=True)
def without_warnings() -> Iterator[None]:
    with quiet():
        yield


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True], ids=["host", "sink"])
@pytest.mark.parametrize(
    ("fault", "level", "half"), ROWS, ids=[f"{fault.name}-{level}-{half}" for fault, level, half in ROWS]
)
def test_a_planted_fault_is_named_with_the_cure_that_cures(fault: Fault, level: str, half: str, sink: bool) -> None:
    assert wrong(fault, level, half, sink=sink) == []


def test_there_are_faults_of_every_kind() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 60
    assert {field.name for field in dataclasses.fields(Fault)} > {"kind", "layer", "cure"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x**4, then a root", "dense with huge weights", "add_loss", "sqrt(abs(x)) at 0"])
def test_a_fault_in_every_step_is_explained_alike_once_passes_are_compiled(name: str) -> None:
    fault = dataclasses.replace(next(fault for fault in FAULTS if fault.name == name), steps=5)
    model, _ = train(fault, "O2", "float16", sink=True)
    if model.overflows or not fault.fused:
        assert len(model.overflows) == 5
        assert len({str(record.finding) for record in model.overflows}) == 1
