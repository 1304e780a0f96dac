"""What `Model` refuses: arguments, pairs of manager and optimizer, numbers of a run, each with what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, FixedLossScaleManager, Model, amp, nn
from tests.backends import quick_every

DATA = [(np.ones((4, 6), np.float32), np.ones((4, 1), np.float32))] * 2


def _dense() -> nn.Dense:
    return nn.Dense(6, 1)


def _make(**options: Any) -> Model:
    net = _dense()
    return Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), 0.05), **options)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no network": (lambda: Model(None), TypeError, "Model: network must be a mixtrain.nn.Cell or a keras.Model; got N"),
    "a function": (lambda: Model(len, nn.MSELoss()), TypeError, "network must be a mixtrain.nn.Cell or a keras.Model"),
    "eval_network": (lambda: Model(_dense(), eval_network=5), TypeError, "eval_network must be a mixtrain.nn.Cell or"),
    "optimizer": (lambda: Model(_dense(), None, 5), TypeError, "it must be an optimizer of mixtrain or Keras"),
    "optimizer's name": (lambda: Model(_dense(), nn.MSELoss(), "nope"), ValueError, "nope"),
    "loss": (lambda: Model(_dense(), 5, "sgd"), TypeError, "loss_fn must be a Cell, a Keras loss or a function"),
    "loss class": (lambda: Model(_dense(), nn.MSELoss, "sgd"), TypeError, "Write loss_fn=nn.MSELoss()"),
    "loss's name": (lambda: Model(_dense(), "nope", "sgd"), ValueError, "nope"),
    "manager": (lambda: _make(loss_scale_manager=8), TypeError, "must be a LossScaleManager or None; got int 8. Write"),
    "manager alone": (
        lambda: Model(_dense(), nn.MSELoss(), loss_scale_manager=FixedLossScaleManager()), ValueError,
        "loss_scale_manager needs an optimizer",
    ),
    "metrics alone": (lambda: Model(_dense(), metrics={"loss"}), ValueError, "metrics need a loss_fn or an eval_netw"),
    "level": (lambda: _make(amp_level="O9"), ValueError, 'one of O0, O1, O2, O3, auto; got \'O9\'. Write amp_level="O'),
    "level's type": (lambda: _make(amp_level=2), ValueError, "amp_level must be one of O0, O1, O2, O3, auto; got 2"),
    "half": (lambda: _make(cast_model_type="float64"), ValueError, "must be float16, bfloat16 or float8; got"),
    "keep": (lambda: _make(keep_batchnorm_fp32=1), TypeError, "keep_batchnorm_fp32 must be True or False; got int 1"),
    "bad_step_max 0": (lambda: _make(bad_step_max=0), ValueError, "bad_step_max must be at least 1; got 0. Write bad_"),
    "bad_step_max 1.5": (lambda: _make(bad_step_max=1.5), TypeError, "bad_step_max must be an int; got float 1.5"),
    "boost_level": (lambda: _make(boost_level="O1"), ValueError, "boost_level must be one of O0; got 'O1'"),
    "typing error": (lambda: _make(loss_scale=1), TypeError, "loss_scale"),
    "eval_indexes": (
        lambda: Model(_dense(), eval_network=_dense(), eval_indexes=[0, 1], metrics={"mse"}), ValueError,
        "eval_indexes must be 3 ints",
    ),
    "a level for a train step": (
        lambda: Model(_make().train_network, amp_level="O2"), ValueError,
        'own train step must be O0; got \'O2\'. Write amp.auto_mixed_precision(network, "O2") before',
    ),
}


@quick_every(3)
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_at_once(case: str) -> None:
    make, error, message = REFUSED[case]
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def _scaled(loss_scale: float) -> tuple[Any, Any]:
    net = _dense()
    return net, nn.Momentum(net.trainable_params(), 0.1, 0.9, loss_scale=loss_scale)


@pytest.mark.parametrize(
    ("loss_scale", "manager", "message"),
    [
        (4.0, lambda: FixedLossScaleManager(8, False), "must be the manager's 8; got 4. Write Momentum(..., loss_"),
        (1.0, lambda: FixedLossScaleManager(8, False), "must be the manager's 8; got 1. Write Momentum(..., loss_"),
        (8.0, lambda: FixedLossScaleManager(8), "must be 1; got 8, which would divide twice. Write Momentum("),
        (8.0, lambda: DynamicLossScaleManager(8), "must be 1; got 8, which would divide twice"),
    ],
)
@pytest.mark.parametrize("build", ["Model", "build_train_network"])
def test_a_manager_and_an_optimizer_whose_scales_do_not_go_together_are_refused(
    loss_scale: float, manager: Any, message: str, build: str
) -> None:
    net, optimizer = _scaled(loss_scale)
    with pytest.raises(ValueError) as caught:
        if build == "Model":
            Model(net, nn.MSELoss(), optimizer, loss_scale_manager=manager())
        else:
            amp.build_train_network(net, optimizer, nn.MSELoss(), loss_scale_manager=manager())
    assert str(caught.value).startswith(f"{build}: ") and message in str(caught.value)


def test_a_keras_optimizer_that_divides_must_agree_as_well() -> None:
    for factor, manager, message in (
        (4.0, FixedLossScaleManager(8, False), r"got 4. Write SGD\(..., loss_scale_factor=8\)"),
        (8.0, FixedLossScaleManager(8), r"which would divide twice. Write SGD\(..., loss_scale_factor=1\)"),
    ):
        with pytest.raises(ValueError, match=message):
            Model(_dense(), "mse", keras.optimizers.SGD(0.1, loss_scale_factor=factor), loss_scale_manager=manager)
    with pytest.raises(ValueError, match="mixtrain scales the loss itself"):
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1))
        Model(_dense(), "mse", optimizer, loss_scale_manager=FixedLossScaleManager(8))


def test_an_optimizer_that_cannot_divide_is_told_of_the_manager_that_needs_no_help() -> None:
    net = _dense()
    with pytest.raises(ValueError, match=r"Write FixedLossScaleManager\(8\), which drops overflowing steps and needs"):
        optimizer = nn.AdamWeightDecay(net.trainable_params())
        Model(net, "mse", optimizer, loss_scale_manager=FixedLossScaleManager(8, False))


@quick_every(4)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epoch": 0}, ValueError, "epoch must be at least 1; got 0. Write epoch=1"),
        ({"epoch": 1.0}, TypeError, "epoch must be an int; got float 1.0"),
        ({"epoch": True}, TypeError, "epoch must be an int; got bool True"),
        ({"initial_epoch": 2}, ValueError, "initial_epoch must be less than epoch=2; got 2. Write initial_epoch=0"),
        ({"initial_epoch": -1}, ValueError, "initial_epoch must be at least 0; got -1"),
        ({"sink_size": 0}, ValueError, "sink_size must be at least 1; got 0"),
        ({"sink_size": -2}, ValueError, "sink_size must be at least 1; got -2"),
        ({"sink_size": 1.5}, TypeError, "sink_size must be an int; got float 1.5"),
        ({"dataset_sink_mode": 1}, TypeError, "dataset_sink_mode must be True or False; got int 1"),
        ({"verbose": 7}, ValueError, 'verbose must be "auto", 0, 1 or 2; got 7'),
        ({"callbacks": 5}, TypeError, "got int 5. Write callbacks="),
    ],
)
@pytest.mark.parametrize("method", ["train", "fit"])
def test_numbers_and_flags_of_a_run_are_checked(
    options: dict[str, Any], error: type[Exception], message: str, method: str
) -> None:
    with pytest.raises(error) as caught:
        getattr(_make(), method)(**{"epoch": 2, "train_dataset": DATA, "verbose": 0, **options})
    assert message in str(caught.value)
    if "callbacks" not in options:
        assert str(caught.value).startswith(f"Model.{method}: ")
