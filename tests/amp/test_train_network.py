"""`build_train_network`: which train cell comes of which level and manager, and that it trains."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, LossScaleManager, amp, backend, nn
from tests.backends import quick_every

X, LABEL = mixtrain.Tensor([[1.0, 2.0]]), mixtrain.Tensor([[0.0]])


class Driven(LossScaleManager):
    """A manager that is driven from Python."""

    def get_loss_scale(self) -> float:
        return 32.0

    def update_loss_scale(self, overflow: Any) -> None:
        return None


class Undropped(Driven):
    """One that lets overflows through."""

    def get_drop_overflow_update(self) -> bool:
        return False


def _build(*, optimizer_scale: float = 1.0, **options: Any) -> tuple[Any, Any]:
    net = nn.Dense(2, 1, weight_init="ones", has_bias=False)
    optimizer = nn.SGD(net.trainable_params(), 0.125, loss_scale=optimizer_scale)
    return net, amp.build_train_network(net, optimizer, nn.MSELoss(), **options)


@quick_every(7)
@pytest.mark.parametrize(
    ("options", "scaled", "scale"),
    [
        ({}, False, None),
        ({"level": "O1", "loss_scale_manager": None}, False, None),
        ({"level": "O3", "loss_scale_manager": None}, False, None),
        ({"level": "O2"}, True, 2.0**24),
        ({"level": "O2", "cast_model_type": mixtrain.bfloat16}, False, None),
        ({"level": "O2", "loss_scale_manager": None}, False, None),
        ({"loss_scale_manager": DynamicLossScaleManager(64)}, True, 64.0),
        ({"loss_scale_manager": FixedLossScaleManager(16)}, True, 16.0),
        ({"loss_scale_manager": FixedLossScaleManager(8, False), "optimizer_scale": 8.0}, False, None),
        ({"loss_scale_manager": Driven()}, True, 32.0),
        ({"loss_scale_manager": Undropped(), "optimizer_scale": 32.0}, False, None),
    ],
)
def test_the_train_cell_fits_level_and_manager(options: dict[str, Any], scaled: bool, scale: float | None) -> None:
    net, step = _build(**options)
    assert isinstance(step, nn.TrainOneStepCell)
    assert isinstance(step, nn.TrainOneStepWithLossScaleCell) is scaled
    assert step.training
    result = step(X, LABEL)
    if scaled and scale != 2.0**24:
        assert [float(value) for value in result] == [9.0, 0.0, scale]
    elif not scaled:
        assert float(result) == 9.0
    if scale == 2.0**24:  # overflows in half, and so is skipped
        assert (bool(result[1]), float(result[2]), float(step.scale_sense)) == (True, scale, 2.0**23)
        assert net.weight.asnumpy().tolist() == [[1.0, 1.0]]
    else:
        assert net.weight.asnumpy().tolist() == [[0.25, -0.5]]


def test_the_network_computes_as_the_level_says() -> None:
    net, _ = _build(level="O3", loss_scale_manager=None)
    assert net.cast_rule.inputs == mixtrain.float16
    net, _ = _build(level="O2", cast_model_type="bfloat16")
    assert net.cast_rule.inputs == mixtrain.bfloat16


def test_a_network_that_returns_its_loss_needs_no_loss_function() -> None:
    net = nn.WithLossCell(nn.Dense(2, 1, weight_init="ones", has_bias=False), nn.MSELoss())
    step = amp.build_train_network(net, nn.SGD(net.trainable_params(), 0.125))
    assert float(step(X, LABEL)) == 9.0


def test_a_keras_network_with_a_keras_optimizer_and_a_loss_by_name() -> None:
    start = keras.initializers.Ones()
    net = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, use_bias=False, kernel_initializer=start)])
    step = amp.build_train_network(net, keras.optimizers.SGD(0.125), "mse", level="O2", loss_scale_manager=None)
    assert float(step(X, LABEL)) == 9.0
    assert backend.to_numpy(net.weights[0]).tolist() == [[0.25], [-0.5]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"level": "O5"}, ValueError, "amp_level must be one of O0, O1, O2, O3, auto; got 'O5'"),
        ({"boost_level": "O1"}, ValueError, "build_train_network: boost_level must be one of O0; got 'O1'"),
        ({"loss_scale_manager": 8}, TypeError, "build_train_network: loss_scale_manager must be a LossScaleManager or"),
        ({"keep_batchnorm_fp32": "yes"}, TypeError, "keep_batchnorm_fp32 must be True or False; got str 'yes'"),
        ({"cast_model_type": "int8"}, ValueError, "cast_model_type must be float16, bfloat16 or float8; got 'int8'"),
        ({"optimizer_scale": 2.0, "level": "O2"}, ValueError, "optimizer's loss_scale must be 1; got 2"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        _build(**options)
    assert message in str(caught.value)


def test_a_refusal_leaves_the_network_as_it_was() -> None:
    net = nn.Dense(2, 1)
    optimizer = nn.SGD(net.trainable_params(), 0.1, loss_scale=4.0)
    with pytest.raises(ValueError, match="divide twice"):
        amp.build_train_network(net, optimizer, nn.MSELoss(), level="O2")
    assert amp.applied_plan(net) is None


def test_a_loop_of_ones_own_trains_with_it() -> None:
    draw = np.random.default_rng(0)
    data = draw.standard_normal((32, 2)).astype(np.float32)
    label = data.sum(axis=1, keepdims=True)
    net = nn.Dense(2, 1)
    step = amp.build_train_network(
        net, nn.Momentum(net.trainable_params(), 0.1, 0.9), nn.MSELoss(), level="O2",
        loss_scale_manager=DynamicLossScaleManager(2**10, 2, 5),
    )
    results = [step(mixtrain.Tensor(data), mixtrain.Tensor(label)) for _ in range(20)]
    assert float(results[-1][0]) < 0.2 * float(results[0][0])
    assert [float(scale) for *_, scale in results[::5]] == [2.0**10, 2.0**11, 2.0**12, 2.0**13]
