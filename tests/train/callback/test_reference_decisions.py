"""EarlyStopping, ReduceLROnPlateau and LearningRateScheduler decide as MindSpore's on recorded sequences."""

from __future__ import annotations

import pathlib
from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import nn
from mixtrain.train.callback import Callback, EarlyStopping, LearningRateScheduler, ReduceLROnPlateau
from mixtrain.train.run_context import CallbackArguments, RunContext
from tests.backends import quick_every
from tests.data.callback_cases import FUNCTIONS, REDUCING, SCHEDULED_STEPS, STOPPING
from tests.optim.setting import parameter

REFERENCE = np.load(pathlib.Path(__file__).parents[2] / "data/callback_reference.npz")
# MindSpore 2.10 reads min_delta in place of baseline, so that it never matters there.
WITHOUT_BASELINE = {"baseline_not_reached": [(1, 0.25, 0), (2, 0.5, 0), (3, 0.5, 0), (4, 0.5, 4)]}
OPTIMIZERS = pytest.mark.parametrize("kind", ["keras", "mixtrain"])


def _optimizer(kind: str, rate: float) -> Any:
    return keras.optimizers.SGD(rate) if kind == "keras" else nn.SGD([parameter("w", 1.0)], rate)


def _rate(optimizer: Any) -> np.float32:
    return np.float32(keras.ops.convert_to_numpy(optimizer.learning_rate))


def _epochs(callback: Any, values: list[float], **fields: Any) -> Any:
    arguments = CallbackArguments(mode="train", **fields)
    context = RunContext(arguments)
    callback.on_train_begin(context)
    for epoch, value in enumerate(values, start=1):
        arguments._set(cur_epoch_num=epoch, eval_results={callback.monitor: value}, net_outputs=np.float32(value))
        callback.on_train_epoch_end(context)
        yield context


@pytest.mark.parametrize("name", STOPPING)
def test_early_stopping_stops_when_the_reference_does(name: str) -> None:
    options, values = STOPPING[name]
    callback = EarlyStopping(**options)
    rows = []
    for context in _epochs(callback, values):
        rows.append((callback.wait, callback.best, callback.stopped_epoch))
        if context.get_stop_requested():
            break
    expected = np.float32(WITHOUT_BASELINE.get(name, REFERENCE[f"stopping/{name}"]))
    np.testing.assert_array_equal(np.array(rows, np.float32), expected)


@quick_every(3)
@OPTIMIZERS
@pytest.mark.parametrize("name", REDUCING)
def test_the_rate_is_reduced_when_the_reference_reduces_it(name: str, kind: str) -> None:
    options, values = REDUCING[name]
    callback, optimizer = ReduceLROnPlateau(**options), _optimizer(kind, 0.5)
    rows = [
        (callback.wait, callback.cooldown_counter, _rate(optimizer))
        for _ in _epochs(callback, values, optimizer=optimizer)
    ]
    np.testing.assert_allclose(np.array(rows, np.float32), REFERENCE[f"reducing/{name}"], rtol=1e-6)


@OPTIMIZERS
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_sets_the_rate_as_in_the_reference(name: str, kind: str) -> None:
    first, function = FUNCTIONS[name]
    callback: Callback = LearningRateScheduler(function)
    optimizer = _optimizer(kind, first)
    rates = []
    for step in range(1, SCHEDULED_STEPS + 1):
        callback.step_end(RunContext({"cur_step_num": step, "optimizer": optimizer}))
        rates.append(_rate(optimizer))
    np.testing.assert_allclose(rates, REFERENCE[f"scheduled/{name}"], rtol=1e-6)
