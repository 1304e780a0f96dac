"""What a step costs beyond a hand-written one: sizes, exponents, tables, and steps that are the same step."""

from __future__ import annotations

import dataclasses
import importlib
import pathlib
from typing import Any

import keras
import numpy as np
import pytest

from benchmarks import scale
from benchmarks.children import ChildFailed
from benchmarks.contender import RUNNERS, Contender, Kind, build
from benchmarks.networks import in_keras
from benchmarks.workloads import MLP

ON_JAX = keras.backend.backend() == "jax"


@pytest.mark.parametrize("axis", scale.SIZES)
def test_each_size_enlarges_one_thing(axis: scale.Axis) -> None:
    for size in scale.SIZES[axis]:
        workload = scale.enlarged(axis, size)
        here, there = ((item.batch, item.depth, item.width) for item in (workload, MLP))
        assert sum(a != b for a, b in zip(here, there, strict=True)) <= 1
        assert 1 <= scale.steps_of(workload) <= 64
        seen = {"layers": workload.depth + 1, "batch": workload.batch, "parameters": scale.parameters(workload)}
        assert seen[axis] == pytest.approx(size, rel=0.05)


def test_parameters_are_those_of_the_network() -> None:
    assert scale.parameters(MLP) == in_keras.network(MLP).count_params()


@pytest.mark.parametrize(("power", "offset"), [(1.0, 0.0), (2.0, 0.0), (0.0, 0.0)])
def test_the_exponent_is_that_of_the_excess(power: float, offset: float) -> None:
    sizes = [1.0, 10.0, 100.0, 1000.0]
    hand = [1.0] * 4
    assert scale.exponent(sizes, [1.0 + size**power for size in sizes], hand) == pytest.approx(power)


def test_there_is_no_exponent_without_an_excess() -> None:
    assert scale.exponent([1, 10, 100], [1.04, 0.5, 2.0], [1.0, 1.0, 1.0]) is None


def test_a_quadratic_term_is_found_and_said() -> None:
    sizes = (1, 10, 100)
    rows = [
        {"axis": "layers", "asked": size, "size": size,
         "hand-written": {"first": 1.0, "step": 1.0, "memory": 1.0},
         "mixtrain": {"first": 1.0, "step": 1.0 + size**2, "memory": 1.0 + size}}
        for size in sizes
    ]
    growth = {(row["axis"], row["measure"]): row for row in scale.growth(rows)}
    assert growth["layers", "step"]["exponent"] == pytest.approx(2.0) and not growth["layers", "step"]["met"]
    assert growth["layers", "memory"]["exponent"] == pytest.approx(1.0) and growth["layers", "memory"]["met"]
    assert growth["batch", "first"]["exponent"] is None


def test_a_size_that_takes_too_long_is_halved_and_the_table_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []

    def fake_costs(contenders: Any, workload: Any, **options: Any) -> Any:
        seen.append(workload.depth + 1)
        if workload.depth > 600 or workload.batch == 8192:
            raise ChildFailed("ended")
        return {name: {"first": 1.0, "step": 2.0, "memory": 3.0} for name in ("hand-written", "mixtrain")}, {"a": "1"}

    monkeypatch.setattr(scale, "costs", fake_costs)
    sizes: dict[scale.Axis, tuple[int, ...]] = {"layers": (10, 1000), "batch": (65536,)}
    monkeypatch.setattr(scale, "enlarged", lambda axis, size: dataclasses.replace(
        MLP, **({"depth": size - 1} if axis == "layers" else {"batch": 8192})
    ))
    text = scale.as_text(scale.measured("jax", sizes, rounds=2, seconds=1.0))
    assert seen[:3] == [10, 1000, 500]
    assert "| 1,000 layers, reduced to 500 | 1 | 1 | 2 | 2 | 3 | 3 |" in text
    assert "| 65,536 batch: longer than 1 s, and an eighth too |" in text
    assert "No term of ours grows faster than linearly." in text


def test_quick_runs_the_smallest_sizes_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = {"first": 1.0, "step": 2.0, "memory": 3.0}
    monkeypatch.setattr(scale, "costs", lambda *a, **k: ({"hand-written": costs, "mixtrain": costs}, {}))
    monkeypatch.setattr(scale, "write_json", pytest.fail)
    scale.main(["--quick", "--backend", "jax"])
    assert "10 layers" in capsys.readouterr().out


@pytest.mark.slow
def test_the_step_written_by_hand_is_the_step_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: tuple[Kind, Kind] = ("plain jax", "hand jax") if ON_JAX else ("plain", "loop")
    values = in_keras.network(MLP).get_weights()
    module = importlib.import_module(RUNNERS[kinds[0]].module)
    monkeypatch.setattr(module, "mlp", lambda workload: list(zip(values[::2], values[1::2], strict=True)))
    ours, theirs = (build(Contender(kind, kind), MLP, 20)() for kind in kinds)
    for _ in range(2):
        np.testing.assert_allclose(ours(), theirs(), rtol=1e-4)
