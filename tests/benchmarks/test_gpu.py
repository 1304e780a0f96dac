"""The run on one device from end to end with fake processes, its page, and that nothing unmeasured has a number."""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks import gpu, gpu_measure
from benchmarks.children import ROOT, Child, ChildFailed, Interpreters
from benchmarks.contender import Contender
from benchmarks.gpu_cases import ALL_HALF, CASES, EVERYONE, FLOAT16, FLOAT32, TF32, TORCH
from benchmarks.gpu_child import Asker
from benchmarks.gpu_facts import limit_rows, scales_by_rule, trace_rows
from benchmarks.gpu_measure import heats
from benchmarks.gpu_page import PAGE, as_markdown
from benchmarks.gpu_record import blank
from benchmarks.networks import in_keras
from benchmarks.written import read_records

FAKE = """
import json, sys
print(json.dumps({"versions": {"fake": "1.0"}}), flush=True)
for line in sys.stdin:
    print(json.dumps({"seconds": SECONDS, "peak_bytes": 7, "device_peak_bytes": PEAK}), flush=True)
"""
RULE: dict[str, Any] = {"first": 16.0, "factor": 2.0, "window": 2}
PLANTED = [False, False, True, False]
TRACES = {
    "planted": PLANTED,
    "rule": RULE,
    "traces": {
        "fixed, host": {"scales": [1024.0] * 4, "overflows": PLANTED},
        "dynamic, sink": {"scales": [16.0, 16.0, 32.0, 16.0], "overflows": PLANTED},
    },
    "versions": {},
}
PRODUCTS = {"float32": 50.0, "tensorfloat32": 400.0, "float16": 800.0, "bfloat16": 800.0}
CEILINGS = {
    **{f"{name} products": {"value": value, "unit": "TFLOP/s", "of": "fakes"} for name, value in PRODUCTS.items()},
    "copy": {"value": 4000.0, "unit": "GB/s", "of": "fakes"},
}
DEVICE = {"platform": "gpu", "kind": "Fake 9000", "memory_bytes": 80 * 2**30, "ceilings": CEILINGS, "versions": {}}
CHECK = {"what": "a product", "measured": 1e-7, "limit": 1e-6, "met": True}
ANSWERS: dict[str, dict[str, Any]] = {
    "ceilings": DEVICE,
    "checks": {"checks": [CHECK], "versions": {"mixtrain": "0"}},
    "traces": TRACES,
    "flops": {policy: 4e12 for policy in ("float32", "mixed_float16", "mixed_bfloat16")} | {"versions": {}},
    "bytes": {policy: 2e10 for policy in ("float32", "mixed_float16", "mixed_bfloat16")} | {"versions": {}},
}


@pytest.fixture
def page(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A page with markers, which the command writes in place of the real one."""
    path = tmp_path / "page.md"
    path.write_text("".join(f"<!-- {name}: begin -->\n<!-- {name}: end -->\n" for name in gpu.SECTIONS))
    monkeypatch.setattr("benchmarks.gpu.write_pages.__defaults__", (tmp_path, path))
    return path


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """A GPU that answers at once: float32 takes a second a round, half a quarter of one, PyTorch is not there."""
    answers = copy.deepcopy(ANSWERS)

    def ask(self: Asker, about: str, environment: Any = None, **request: Any) -> dict[str, Any]:
        return copy.deepcopy(answers[request.get("count", about)])

    def start(contender: Contender, workload: Any, steps: int, python: str, **options: Any) -> Child:
        half = contender.dtype != "float32"
        seconds, peak = (0.25, 2**30) if half else (1.0, 2**31)
        script = FAKE.replace("SECONDS", str(seconds)).replace("PEAK", str(peak))
        if contender.name == ALL_HALF.name:
            script = "import sys; sys.exit(3)"
        return Child([sys.executable, "-c", script], contender.name)

    monkeypatch.setattr(Asker, "ask", ask)
    monkeypatch.setattr("benchmarks.gpu_measure.start_child", start)
    monkeypatch.setattr(Interpreters, "of", lambda self, package: None if package == "torch" else sys.executable)
    return answers


def test_without_a_run_every_line_of_the_page_says_not_measured() -> None:
    for on_cpu in (False, True):
        record = blank(on_cpu)
        text = as_markdown(record)
        assert text.startswith("No run is recorded yet")
        races = [case.race(on_cpu=on_cpu) for case in CASES.values()]
        names = {contender.name for race in races for contender in race.contenders}
        tables = [line for line in text.splitlines() if line.startswith("| ") and "contender |" not in line]
        assert names <= {line.split(" | ")[0].removeprefix("| ") for line in tables}
        rows = [line for line in tables if not line.startswith(("| ratio", "| ---"))]
        assert len(rows) > 20 and all("not measured" in line for line in rows)
        assert not any(goal["measured"] for race in record["races"] for goal in race["goals"])
        assert re.search(r"0 of \d+ goals were met; \d+ were not measured", text)


def test_the_page_in_docs_is_what_the_records_say(tmp_path: pathlib.Path) -> None:
    written = tmp_path / "page.md"
    written.write_text(PAGE.read_text())
    gpu.write_pages(page=written)
    assert written.read_text() == PAGE.read_text()


@pytest.mark.slow
def test_a_run_writes_its_record_and_its_page_and_says_what_was_missing(
    page: pathlib.Path, fakes: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpu.main(["--only", "checks", "traces", "costs", "resnet50", "--results", str(page.parent)]) == 0
    (record,) = read_records(["gpu"], page.parent)
    race = record["races"][1]
    seen = {row["name"]: row["median"] for row in race["contenders"]}
    assert seen[FLOAT32.name] == 125.0 and seen[FLOAT16.name] == 31.25
    assert race["missing"][TORCH.name].startswith("torch is not installed here")
    assert race["missing"][ALL_HALF.name].startswith("its process ended")
    goals = {goal["what"]: goal for goal in (*race["goals"], *record["memory"][1]["goals"])}
    assert goals["ResNet-50: O2 float16 against O0 true float32"]["measured"] == 0.25
    assert goals["ResNet-50: dynamic scaling on against off"]["met"] is True
    assert goals["ResNet-50: peak memory, O2 float16 against O0"]["measured"] == 0.5
    assert goals["ResNet-50: O2 against PyTorch compiled, both float16"]["measured"] is None
    text = page.read_text()
    assert "Measured on Fake 9000, 80 GiB for JAX" in text and "fake 1.0" in text
    assert f"| {FLOAT32.name} | 125 | 0% | 1,024 | 2.00 |" in text
    assert f"| {TORCH.name} | not measured |  |  | not measured |" in text
    assert "not selected for this run" in text  # the other networks
    assert text.count("No run is recorded yet") == 1  # the reduced one
    assert "| ResNet-50, 224x224, batch 128 | float32 | 4,000 | 20 | 200 | 80 | 5 | arithmetic | 125 | 64% |" in text
    assert as_markdown(record) in capsys.readouterr().out


def test_a_process_may_take_its_share_of_the_devices_memory(
    page: pathlib.Path, fakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    environments: dict[str, Any] = {}
    start = gpu_measure.start_child

    def noted(contender: Contender, *rest: Any, environment: Any) -> Child:
        environments[contender.name] = environment
        return start(contender, *rest)

    monkeypatch.setattr(gpu_measure, "start_child", noted)
    assert gpu.main(["--only", "resnet50", "--contenders", "3", "--print-only"]) == 0
    shares = {name: float(values["XLA_PYTHON_CLIENT_MEM_FRACTION"]) for name, values in environments.items()}
    # 24 and 10 GiB of the 80 that are 0.95 of all.
    assert shares == {FLOAT32.name: 0.285, TF32.name: 0.285, FLOAT16.name: 0.1187}


@pytest.mark.slow
def test_parts_that_are_not_asked_for_stay_as_this_device_was_recorded(page: pathlib.Path, fakes: Any) -> None:
    folder = ["--results", str(page.parent)]
    assert gpu.main(["--only", "checks", "costs", "resnet50", *folder]) == 0
    assert gpu.main(["--only", "traces", "costs", "resnet20", *folder, "--contenders", "3"]) == 0
    (record,) = read_records(["gpu"], page.parent)
    assert record["checks"] and record["traces"]
    rows = [len(race["contenders"]) for race in record["races"]]
    assert rows == [0, len([row for row in EVERYONE if row.kind != "pytorch"]) - 1, 0, 3]
    assert [len(race["contenders"]) for race in record["memory"]] == rows
    assert [*record["costs"]] == ["resnet50", "resnet20"]
    fakes["ceilings"]["kind"] = "Fake 9001"
    assert gpu.main(["--only", "checks", *folder]) == 0
    (record,) = read_records(["gpu"], page.parent)
    assert record["checks"] and not record["traces"] and not record["costs"]
    assert not any(race["contenders"] for race in record["races"])


def test_what_does_not_fit_into_the_time_is_left_out_and_said(page: pathlib.Path, fakes: Any) -> None:
    assert gpu.main(["--budget", "1", "--print-only"]) == 0
    assert gpu.main(["--budget", "1", "--results", str(page.parent)]) == 0
    text = page.read_text()
    assert "did not fit into the 1 s of the run" in text and f"| {TF32.name} | not measured" in text
    assert "1 of 1 hold." in text


@pytest.mark.parametrize("break_it", [
    lambda answers: answers["checks"]["checks"][0].update(met=False),
    lambda answers: answers["traces"]["traces"]["dynamic, sink"]["scales"].__setitem__(3, 32.0),
    lambda answers: answers["traces"]["traces"]["fixed, host"].update(overflows=[False] * 4),
], ids=["a number", "a scale", "an overflow"])
def test_a_wrong_number_ends_the_command_with_1_and_stands_on_the_page(
    break_it: Callable[[Any], None], page: pathlib.Path, fakes: Any
) -> None:
    break_it(fakes)
    assert gpu.main(["--only", "checks", "traces", "--results", str(page.parent)]) == 1
    assert "**WRONG**" in page.read_text() or "**NO**" in page.read_text()


def test_a_machine_without_jax_is_told_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Interpreters, "of", lambda self, package: None)
    assert gpu.main([]) == 2
    assert "JAX is not installed here" in capsys.readouterr().err

    def fall(self: Asker, about: str, environment: Any = None, **request: Any) -> dict[str, Any]:
        raise ChildFailed("the process of ceilings ended (1)")

    monkeypatch.setattr(Interpreters, "of", lambda self, package: sys.executable)
    monkeypatch.setattr(Asker, "ask", fall)
    assert gpu.main([]) == 2
    assert "the process of ceilings ended" in capsys.readouterr().err


def test_wrong_options_are_refused() -> None:
    for wrong in (["--budget", "0"], ["--jobs", "0"], ["--contenders", "0"], ["--only", "alexnet"]):
        with pytest.raises(SystemExit):
            gpu.main(wrong)


def test_a_trace_on_the_gpu_that_differs_from_the_cpus_is_seen() -> None:
    other = copy.deepcopy(TRACES)
    other["traces"]["dynamic, sink"]["scales"][0] = 8.0  # type: ignore[index]
    rows = {row["what"]: row for row in trace_rows(TRACES, other)}
    assert rows["fixed, host"]["as_on_cpu"] is True and rows["dynamic, sink"]["as_on_cpu"] is False
    assert rows["dynamic, sink"]["as_the_rule"] is True and rows["dynamic, sink"]["moves"] == 2


def test_the_rule_of_the_traces_grows_after_a_window_halves_on_overflow_and_stays_above_the_floor() -> None:
    assert scales_by_rule(PLANTED, dynamic=True, **RULE) == [16.0, 16.0, 32.0, 16.0]
    assert scales_by_rule([True] * 6, dynamic=True, **RULE) == [16.0, 8.0, 4.0, 2.0, 1.0, 1.0]
    assert scales_by_rule([True] * 3, dynamic=False, **RULE) == [16.0] * 3


def test_a_network_is_limited_by_what_takes_longer_at_the_devices_ceiling() -> None:
    policies = ("float32", "mixed_float16", "mixed_bfloat16")
    cost = {"flops": dict.fromkeys(policies, 1e12), "bytes": dict.fromkeys(policies, 4e10)}
    record = {"race": "ResNet-50", "contenders": [{"name": TF32.name, "median": 40.0}]}
    plain, tensor, *_ = limit_rows(record, cost, CEILINGS)
    assert (plain["precision"], plain["limit"], plain["measured_ms"]) == ("float32", "arithmetic", None)
    assert plain["arithmetic_ms"] == pytest.approx(20.0)
    assert (tensor["limit"], tensor["bytes_ms"], tensor["share"]) == ("bytes", 10.0, 0.25)


def test_contenders_stand_beside_each_other_as_far_as_the_devices_memory_goes() -> None:
    case = CASES["resnet50"]
    race = case.race(on_cpu=False)
    groups = heats(race.contenders, case.need, 80.0)
    assert [contender for group in groups for contender in group] == list(EVERYONE)
    assert len(groups) > 2
    assert all(sum(map(case.need, group)) <= 72.0 for group in groups)
    assert heats(EVERYONE, lambda contender: 1e9, None) == [EVERYONE]
    assert [len(group) for group in heats(EVERYONE, lambda contender: 1e9, 80.0)] == [1] * len(EVERYONE)


def test_a_cpu_has_the_reduced_races_and_goals_name_contenders_of_ours_and_their_peers() -> None:
    case = CASES["resnet50"]
    assert case.race(on_cpu=False).workload.batch == 128 and case.race(on_cpu=True).workload.batch == 2
    for case in CASES.values():
        for race in (case.race(on_cpu=False), case.race(on_cpu=True)):
            names = [contender.name for contender in race.contenders]
            assert len(set(names)) == len(names)
            for goal in (*race.goals, *case.memory_race(race).goals):
                assert goal.ours in names and goal.peer in names and goal.ours.startswith("mixtrain")
            assert race.workload.network in in_keras.NETWORKS


def test_products_are_told_to_a_process_by_its_environment() -> None:
    assert FLOAT32.environment["JAX_DEFAULT_MATMUL_PRECISION"] == "float32"
    assert TF32.environment["JAX_DEFAULT_MATMUL_PRECISION"] == "tensorfloat32"
    assert "JAX_DEFAULT_MATMUL_PRECISION" not in FLOAT16.environment
    assert FLOAT16.environment["KERAS_BACKEND"] == "jax"
    assert "KERAS_BACKEND" not in TORCH.environment


@pytest.mark.slow
def test_resnet_50_has_as_many_trainable_parameters_as_counted() -> None:
    network = in_keras.network(CASES["resnet50"].race(on_cpu=True).workload)
    # 25,557,032 with a thousand classes.
    count = sum(int(np.prod(weight.shape)) for weight in network.trainable_variables)
    assert count == 25_557_032 - 2048 * 990 - 990


WRONG = """
import json, sys
from benchmarks import gpu_checks
from mixtrain import backend
right = [gpu_checks.product_row("float32"), gpu_checks.convolution_row("float16"), gpu_checks.rule_row(),
         gpu_checks.normalization_row("bfloat16")]
product, norm, rule = backend.product, backend.fused_batch_norm, gpu_checks.LossScaleRule
backend.product = lambda compute, a, b: product(compute, a, b) * (1 + 1e-5 if a.dtype == "float32" else 1.005)
backend.fused_batch_norm = lambda x, *args, **kwargs: norm(x.astype("float16").astype(x.dtype) * 1.01, *args, **kwargs)
gpu_checks.LossScaleRule = lambda factor, window, minimum: rule(factor, window + 1, minimum=minimum)
wrong = [gpu_checks.product_row("float32"), gpu_checks.convolution_row("float16"), gpu_checks.rule_row(),
         gpu_checks.normalization_row("bfloat16")]
print(json.dumps([[row["met"] for row in rows] for rows in (right, wrong)]))
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed here")
def test_the_checks_of_numbers_hold_and_each_catches_a_wrong_one() -> None:
    environment = {**os.environ, "KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    said = subprocess.run([sys.executable, "-c", WRONG], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(said.stdout.splitlines()[-1]) == [[True] * 4, [False] * 4]
