"""tune: a row for each level, the fastest within tolerance, and a Model that is as before."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, Model, backend, nn
from mixtrain.dtype import bfloat16, float16
from mixtrain.precision.planner import plan_precision
from mixtrain.train.tuning import TunedLevel, Tuning


def network(kind: str) -> Any:
    mixtrain.set_seed(1)
    if kind == "cell":
        return nn.SequentialCell(nn.Dense(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dense(8, 1))
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cell", "keras"])
def test_every_level_is_measured_and_nothing_is_trained(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    net = network(kind)
    manager = DynamicLossScaleManager(2.0**8)
    model = Model(net, "mse", keras.optimizers.SGD(0.1), amp_level="O2", loss_scale_manager=manager)
    draw = np.random.default_rng(0)
    data = [tuple(draw.standard_normal((8, size)).astype(np.float32) for size in (4, 1)) for _ in range(2)]
    variables = net.get_parameters() if kind == "cell" else net.variables
    variables = list(variables)
    before = [backend.to_numpy(variable).tobytes() for variable in variables]
    result = mixtrain.tune(model, data, steps=2)
    assert [backend.to_numpy(variable).tobytes() for variable in variables] == before
    assert manager.get_loss_scale() == 2.0**8 and model.precision_report().level == "O2"
    assert [(level.amp_level, level.half) for level in result.levels] == [
        ("O0", float16), ("O1", float16), ("O1", bfloat16), ("O2", float16), ("O2", bfloat16), ("O3", float16),
        ("O3", bfloat16),
    ]
    errors = {(level.amp_level, level.half.name): level.error for level in result.levels}
    assert errors["O0", "float16"] == 0 < errors["O2", "float16"] < errors["O2", "bfloat16"] < 0.2
    assert all(level.milliseconds > 0 for level in result.levels)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 9 and printed[-1].endswith(f"Model(..., {result.best.line})")
    assert model.train(1, data, verbose=0)["skipped_steps"] == [0]


@pytest.mark.slow
def test_accumulated_gradients_are_as_before() -> None:
    draw = np.random.default_rng(0)
    data = [tuple(draw.standard_normal((8, size)).astype(np.float32) for size in (4, 1)) for _ in range(3)]
    weights = []
    for tuned in (True, False):
        keras.utils.set_random_seed(0)
        net = network("keras")
        model = Model(net, "mse", keras.optimizers.SGD(0.1), ["mae"], accumulate_steps=2)
        before = model._networks.step.variables() if net.built else []
        values = [backend.to_numpy(variable).tobytes() for variable in before]
        if tuned:
            mixtrain.tune(model, data, steps=1, verbose=False)
            after = [backend.to_numpy(variable).tobytes() for variable in before]
            assert after == values and any(variable is model._networks.step.window.counts for variable in before)
        history = model.train(2, data, verbose=0)
        weights.append([history["loss"], history["mae"], *(value.tolist() for value in net.get_weights())])
    assert weights[0] == weights[1]


def test_the_line_says_what_to_write() -> None:
    rows = (TunedLevel("O0", float16, 2.0, None, 0.0), TunedLevel("O2", bfloat16, 1.0, 2**20, 0.01))
    lines = str(Tuning(rows, rows[1], 0.1, "CPU (CPU)")).splitlines()
    assert lines[1].split() == ["O0", "-", "2", "-", "0"]
    assert lines[2].split() == ["O2", "bfloat16", "1", "1", "0.01"]
    assert lines[3].endswith('Model(..., amp_level="O2", cast_model_type=mixtrain.bfloat16)')


def test_a_device_that_computes_float32_products_in_tf32_is_told_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_precision(nn.SequentialCell(nn.Dense(2, 2)), "O1")
    assert "TF32" not in str(plan)
    monkeypatch.setattr(backend, "tf32_products", lambda: "set_this(False)")
    assert str(plan).splitlines()[-1] == "float32 products run in TF32 on this device: set_this(False) changes that"
    assert "TF32" not in str(plan_precision(nn.Dense(2, 2), "O3"))


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="model"):
        mixtrain.tune(3, [])  # type: ignore[arg-type]
    model = Model(network("cell"), "mse", keras.optimizers.SGD(0.1))
    with pytest.raises(ValueError, match="tolerance"):
        mixtrain.tune(model, [], 0)
