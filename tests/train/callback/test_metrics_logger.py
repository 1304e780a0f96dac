"""MetricsLogger: what it tells a logger of, and when, in every feed."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

from mixtrain import DynamicLossScaleManager, MetricsLogger, Model, set_seed
from tests.train.callback.run import tell_run

X = np.arange(32, dtype=np.float32).reshape(8, 4) / 32
Y = np.arange(8) % 2
Told = list[tuple[int, dict[str, float]]]


class Log(Told):
    """A logger that keeps what it is told."""

    def __call__(self, values: dict[str, float], *, step: int) -> None:
        self.append((step, values))

    def without_times(self) -> Told:
        return [(step, {k: v for k, v in values.items() if not k.endswith("ms_a_step")}) for step, values in self]


@pytest.mark.parametrize("call", [1, 2, 4])
def test_steps_are_told_every_so_often_whatever_a_call_runs(call: int) -> None:
    log = Log()
    overflow = [[False, True, False, False], [True, True, False, False]]
    scales = [[8.0, 8.0, 4.0, 4.0], [4.0, 2.0, 1.0, 1.0]]
    losses = [[1.0, np.nan, 3.0, 5.0], [np.nan, np.nan, 7.0, 9.0]]
    tell_run(MetricsLogger(log, every=3), losses, call=call, overflow=overflow, scales=scales)
    steps = [(step, values) for step, values in log.without_times() if "epoch/number" not in values]
    assert steps == [
        (3, {"train/loss": 2.0, "train/loss_scale": 4.0, "train/skipped_steps": 1.0}),
        (6, {"train/loss": 5.0, "train/loss_scale": 2.0, "train/skipped_steps": 3.0}),
    ]
    assert all(type(value) is float for _, values in log for value in values.values())


def _network() -> Any:
    set_seed(0)
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, "relu"), keras.layers.Dense(2)])


@pytest.mark.slow
@pytest.mark.parametrize("sink", [False, True])
def test_a_run_is_told_with_its_metrics_and_evaluations(sink: bool) -> None:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    manager = DynamicLossScaleManager(2**10, 2, 3)
    optimizer = keras.optimizers.SGD(0.1)
    model = Model(_network(), loss, optimizer, {"accuracy"}, amp_level="O2", loss_scale_manager=manager)
    batches, log = [(X[:4], Y[:4]), (X[4:], Y[4:])], Log()
    history = model.fit(2, batches, batches, callbacks=MetricsLogger(log), dataset_sink_mode=sink, verbose=0)
    model.eval(batches, callbacks=MetricsLogger(log))
    names = {f"train/{name}" for name in
             ("loss", "accuracy", "learning_rate", "grad_norm", "loss_scale", "skipped_steps", "ms_a_step")}
    assert [(step, set(values) == names) for step, values in log] == [
        (1, True), (2, True), (2, False), (3, True), (4, True), (4, False), (0, False)
    ]
    epochs = [values for _, values in log.without_times() if "epoch/number" in values]
    for epoch, values in enumerate(epochs):
        line = {f"epoch/{name}": float(column[epoch]) for name, column in history.items()}
        assert values == {"epoch/number": epoch + 1.0, **line}
    assert log[1][1]["train/accuracy"] == epochs[0]["epoch/accuracy"]
    assert all(values["epoch/ms_a_step"] > 0 for _, values in log if "epoch/number" in values)
    evaluated = {f"eval/{name}": epochs[1][f"epoch/val_{name}"] for name in ("loss", "accuracy")}
    assert log[-1][1] == pytest.approx(evaluated)


def test_only_epochs_are_told_where_no_steps_are_wanted() -> None:
    log = Log()
    tell_run(MetricsLogger(log, every=0), [[1.0, 2.0], [3.0, 4.0]])
    assert [(step, values["epoch/number"]) for step, values in log] == [(2, 1.0), (4, 2.0)]


@pytest.mark.parametrize(("given", "error", "says"), [
    ({"log": 3}, TypeError, r"log must be a function; got int 3. Write MetricsLogger\(wandb.log\)"),
    ({"log": print, "every": -1}, ValueError, "every must be at least 0"),
])
def test_wrong_arguments_are_refused(given: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        MetricsLogger(**given)
