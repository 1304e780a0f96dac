"""Pairs of calls: both calls of a pair compute the same, and a small run has every number."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from benchmarks import prediction, tensor_operators
from benchmarks.call_pairs import CallPairs
from benchmarks.written import write_json


@pytest.mark.parametrize("name", tensor_operators.calls())
def test_an_operator_on_tensors_computes_what_its_peer_does(name: str) -> None:
    ours, peer = tensor_operators.calls()[name]
    assert isinstance(ours(), mixtrain.Tensor) and not isinstance(peer(), mixtrain.Tensor)
    np.testing.assert_allclose(np.asarray(ours()), np.asarray(peer()), rtol=1e-6)


@pytest.mark.slow
def test_a_prediction_computes_what_its_compiled_call_does() -> None:
    for name, (ours, peer) in prediction.calls().items():
        np.testing.assert_array_equal(np.asarray(ours()), np.asarray(peer()))
        assert isinstance(ours(), mixtrain.Tensor) is ("Cell" in name)


def _add() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    return {name: (lambda: np.ones(3) + 1, lambda: np.ones(3) + 1) for name in ("one", "two")}


@pytest.mark.slow
def test_a_small_run_has_every_number_and_its_text_the_verdicts(tmp_path: pathlib.Path) -> None:
    pairs = CallPairs("additions", "of", "three numbers", "ours", "theirs", 1.5, _add)
    record = pairs.measured(rounds=2, count=3)
    assert record["set"] == f"additions_{keras.backend.backend()}" in pairs.names
    assert [row["what"] for row in record["rows"]] == ["one", "two"]
    assert all(value > 0 for row in record["rows"] for value in row["median"].values())
    assert write_json(record, tmp_path).exists()
    record["rows"][0] |= {"measured": 1.25, "low": 1.0, "high": 1.5, "met": True}
    record["rows"][1] |= {"measured": 2.0, "low": 1.0, "high": 3.0, "met": False}
    first, second = pairs.as_text(record).splitlines()[-2:]
    assert first.startswith("| one |") and first.endswith("| 1.25 | 1.00 to 1.50 | <= 1.50 | met |")
    assert second.endswith("| 2.00 | 1.00 to 3.00 | <= 1.50 | not met |")
