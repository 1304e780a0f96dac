"""Scripts of keras.io's kinds run with `Model(...).fit(...)` in place of `compile` and `fit`, with Keras's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from tests.train.keras_scripts import SCRIPTS, Script


class LogsRecorder(keras.callbacks.Callback):
    """Keeps the logs of every hook that has some."""

    def __init__(self) -> None:
        super().__init__()
        self.logs: list[tuple[str, dict[str, Any]]] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.logs.append((f"batch {batch}", dict(logs)))

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        self.logs.append((f"test batch {batch}", dict(logs)))

    def on_test_end(self, logs: Any = None) -> None:
        self.logs.append(("test", dict(logs)))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.logs.append((f"epoch {epoch}", dict(logs)))


def _run(script: Script, train: Callable[..., Any]) -> tuple[dict[str, list[float]], LogsRecorder]:
    recorded, options = LogsRecorder(), dict(script.fit)
    callbacks = options.pop("callbacks", list)()
    keras.utils.set_random_seed(5)
    history = train(x=script.x, y=script.y, verbose=0, shuffle=False, callbacks=[*callbacks, recorded], **options)
    return dict(history.history), recorded


def _by_keras(script: Script) -> tuple[dict[str, list[float]], LogsRecorder]:
    script.network.compile(script.optimizer(), script.loss, **script.compile)
    return _run(script, script.network.fit)


def _by_us(script: Script, **options: Any) -> tuple[dict[str, list[float]], LogsRecorder]:
    model = mixtrain.Model(script.network, script.loss, script.optimizer(), **script.compile, **options)
    return _run(script, model.fit)


def _made(make: Callable[[], Script]) -> Script:
    keras.utils.set_random_seed(1)
    script = make()
    if not script.network.built:
        script.network(script.x[:1])
    return script


@pytest.mark.slow
@pytest.mark.parametrize("make", SCRIPTS, ids=lambda make: make.__name__)
def test_history_and_logs_are_those_of_keras(make: Callable[[], Script]) -> None:
    (expected, recorded_by_keras), (result, recorded) = _by_keras(_made(make)), _by_us(_made(make))
    assert sorted(result) == sorted(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(result[name], values, rtol=2e-5, atol=2e-6, err_msg=name)
    assert [where for where, _ in recorded.logs] == [where for where, _ in recorded_by_keras.logs]
    for (where, logs), (_, peers) in zip(recorded.logs, recorded_by_keras.logs, strict=True):
        assert sorted(logs) == sorted(peers), where
        for name, value in peers.items():
            np.testing.assert_allclose(logs[name], value, rtol=2e-5, atol=2e-6, err_msg=f"{name} in {where}")


@pytest.mark.slow
@pytest.mark.parametrize("make", SCRIPTS, ids=lambda make: make.__name__)
def test_the_script_trains_in_half(make: Callable[[], Script]) -> None:
    result, _ = _by_us(_made(make), amp_level="O2", cast_model_type="bfloat16")
    assert np.isfinite(result["loss"]).all()
