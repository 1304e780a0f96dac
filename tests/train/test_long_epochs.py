"""Long epochs and evaluations: what is kept of each step stays small, and each value is read from the device once."""

from __future__ import annotations

import gc
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import LossScaleMonitor, Model, backend
from mixtrain.train import records as records_module
from mixtrain.train.callback import loss_scale_monitor
from mixtrain.train.records import EpochRecords, StepRecords

STEPS = 40


class OnDevice:
    """A value that counts how often it is read."""

    reads = 0
    alive = 0

    def __init__(self, value: Any) -> None:
        self.value = value
        type(self).alive += 1

    def __del__(self) -> None:
        type(self).alive -= 1


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> type[OnDevice]:
    """Keep 8 steps as they came, and count what is on the device and what is read."""
    read = backend.to_numpy

    def counted(value: Any) -> Any:
        if not isinstance(value, OnDevice):
            return read(value)
        OnDevice.reads += 1
        return np.asarray(value.value)

    OnDevice.reads = OnDevice.alive = 0
    monkeypatch.setattr(backend, "to_numpy", counted)
    monkeypatch.setattr(records_module, "RECENT_STEPS", 8)
    return OnDevice


def step(number: int) -> StepRecords:
    return StepRecords(
        [OnDevice(np.float32(number))], [OnDevice(number % 10 == 3)], [OnDevice(np.float32(16))],
        rows=np.array([4]), grad_norm=[OnDevice(np.float32(-number))],
    )


def test_an_epoch_holds_few_values_on_the_device_and_reads_each_once(device: type[OnDevice]) -> None:
    epoch, most = EpochRecords(), 0
    for number in range(STEPS):
        epoch.add(step(number))
        most = max(most, device.alive)
    assert most <= 4 * 2 * 8 < 4 * STEPS
    joined = epoch.joined()
    assert joined.loss.tolist() == list(range(STEPS))
    assert np.flatnonzero(joined.overflow).tolist() == [3, 13, 23, 33]
    assert joined.loss_scale.tolist() == [16] * STEPS and joined.rows.tolist() == [4] * STEPS
    assert joined.grad_norm.tolist() == [-number for number in range(STEPS)]
    assert np.isnan(joined.learning_rate).all() and joined.scaled
    joined.loss, joined.overflow  # noqa: B018
    assert device.reads == 4 * STEPS


def test_what_a_callback_has_read_is_not_read_again(device: type[OnDevice]) -> None:
    epoch = EpochRecords()
    for number in range(STEPS):
        records = step(number)
        assert float(records.loss[0]) == number
        epoch.add(records)
    joined = epoch.joined()
    for column in (joined.loss, joined.overflow, joined.loss_scale, joined.grad_norm):
        assert len(column) == STEPS
    assert device.reads == 4 * STEPS


def test_calls_of_many_steps_and_runs_without_loss_scaling_are_compacted_too(device: type[OnDevice]) -> None:
    epoch = EpochRecords()
    for start in range(0, STEPS, 5):
        epoch.add(StepRecords(np.arange(start, start + 5, dtype=np.float32)))
    joined = epoch.joined()
    assert len(joined) == STEPS and not joined.scaled and not joined.overflow.any()
    assert joined.loss.tolist() == list(range(STEPS))


def test_a_column_of_one_value_takes_the_memory_of_one() -> None:
    many = 100_000
    compacted = StepRecords(
        np.arange(many, dtype=np.float32), np.zeros(many, bool), np.full(many, 8, np.float32), rows=np.full(many, 4)
    ).compacted()
    held = [getattr(compacted, name) for name in ("overflow", "loss_scale", "rows", "learning_rate", "grad_norm")]
    assert [column.strides for column in held] == [(0,)] * 5 and all(len(column) == many for column in held)
    assert compacted.loss.tolist() == list(range(many))


@pytest.mark.slow
@pytest.mark.parametrize("monitors", [[], [LossScaleMonitor]], ids=["alone", "monitor"])
def test_a_run_keeps_few_records_of_an_epoch_whatever_its_length(
    monitors: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def alive() -> int:
        return sum(isinstance(value, StepRecords) for value in gc.get_objects())

    class Counting(mixtrain.Callback):
        alive: list[int] = []

        def on_train_step_end(self, run_context: Any) -> None:
            if run_context.original_args().cur_step_num % 200 == 0:
                self.alive.append(alive() - before)

    for module in (records_module, loss_scale_monitor):
        monkeypatch.setattr(module, "RECENT_STEPS", 8)
    gc.collect()
    before, steps, counting = alive(), 400, Counting()
    model = Model(keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]), "mse", "sgd", amp_level="O2")
    data = [(np.ones((2, 3), np.float32), np.ones((2, 1), np.float32))] * steps
    model.train(1, data, callbacks=[counting, *(make() for make in monitors)], verbose=0)
    # Those kept as they came, here and by the monitor, and one for each block of older ones.
    assert max(counting.alive) <= 2 * (2 * 8) + steps / 8 + 4
