"""The ceiling of the CPU and the convolutions under it: measured in small, and written with their shares."""

from __future__ import annotations

import pathlib

import pytest

from benchmarks import cpu_ceiling
from benchmarks.networks.in_keras import cifar_cnn
from benchmarks.workloads import CIFAR
from benchmarks.written import write_json

pytestmark = pytest.mark.tensorflow


def test_the_convolutions_are_those_of_the_network() -> None:
    side, _, channels = CIFAR.shape
    expected = [
        (layer.input.shape[1], layer.input.shape[-1], layer.filters)
        for layer in cifar_cnn(CIFAR).layers if hasattr(layer, "filters")
    ]
    assert cpu_ceiling.convolutions(1, side, channels) == expected


@pytest.mark.slow
def test_a_small_run_has_every_number_and_its_text_the_shares(tmp_path: pathlib.Path) -> None:
    record = cpu_ceiling.measured(size=32, batch=1, rounds=2)
    assert set(record["gflop_per_second"]) == {"float32", "bfloat16", "float16"}
    assert [len(row["ms"]) for row in record["rows"]] == [2, 3, 3, 3, 3, 3]
    assert all(value > 0 for row in record["rows"] for value in row["ms"].values())
    assert write_json(record, tmp_path).exists()
    record["gflop_per_second"]["float32"] = 100.0
    for row in record["rows"]:
        row["ms"] = {name: 1e-7 * row["flop"] for name in row["ms"]}  # 10 GFLOP per second
    total = sum(sum(row["ms"].values()) for row in record["rows"])
    text = cpu_ceiling.as_text(record, 4 * total)
    assert "at 10% of the float32 ceiling" in text and "That is 25% of a float32 step" in text
    assert text.count("| 10% |") == 6 and "of a float32 step" not in cpu_ceiling.as_text(record, None)


def test_the_step_is_taken_from_the_record_where_there_is_one(tmp_path: pathlib.Path) -> None:
    assert cpu_ceiling.measured_step(tmp_path) is None
    rows = [{"name": "Keras fit", "median": 2.0}, {"name": "mixtrain O0", "median": 1.5}]
    write_json({"set": "cifar", "races": [{"contenders": rows}]}, tmp_path)
    assert cpu_ceiling.measured_step(tmp_path) == 1.5
