"""The cost of operators on Tensors: both calls of a pair compute the same, and a small run has every number."""

from __future__ import annotations

import pathlib

import keras
import numpy as np
import pytest

import mixtrain
from benchmarks import tensor_operators
from benchmarks.written import write_json


@pytest.mark.parametrize("name", tensor_operators.calls())
def test_both_calls_of_a_pair_compute_the_same(name: str) -> None:
    ours, peer = tensor_operators.calls()[name]
    assert isinstance(ours(), mixtrain.Tensor) and not isinstance(peer(), mixtrain.Tensor)
    np.testing.assert_allclose(np.asarray(ours()), np.asarray(peer()), rtol=1e-6)


def test_a_small_run_has_every_number_and_its_text_the_verdicts(tmp_path: pathlib.Path) -> None:
    before = mixtrain.get_context("mode")
    record = tensor_operators.measured(rounds=2, count=3)
    assert mixtrain.get_context("mode") == before
    assert record["set"] == f"tensor_operators_{keras.backend.backend()}" in tensor_operators.NAMES
    assert [row["what"] for row in record["operators"]] == list(tensor_operators.calls())
    assert all(value > 0 for row in record["operators"] for value in row["median"].values())
    assert write_json(record, tmp_path).exists()
    record["operators"][0] |= {"seen": 1.25, "low": 1.0, "high": 1.5, "met": True}
    record["operators"][1] |= {"seen": 2.0, "low": 1.0, "high": 3.0, "met": False}
    lines = tensor_operators.as_text(record).splitlines()
    added, multiplied = lines[-6], lines[-5]
    assert added.startswith("| `x + y` |") and added.endswith("| 1.25 | 1.00 to 1.50 | <= 1.50 | met |")
    assert multiplied.endswith("| 2.00 | 1.00 to 3.00 | <= 1.50 | not met |")
