"""From `model.train` to the compiled call, to the loss in its trace and to a callback, there are few frames of ours."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
from mixtrain import Model
from mixtrain.train.stepper import Stepper
from tests.backends import ON_TENSORFLOW

PACKAGE = str(pathlib.Path(mixtrain.__file__).parent)
BATCH = (np.ones((4, 3), np.float32), np.ones((4, 1), np.float32))
MAX_FRAMES = 7


def project_files() -> list[str]:
    """Return the files of the functions of mixtrain's that are running, the innermost first."""
    frame: Any = sys._getframe()
    files = []
    while frame is not None:
        files += [frame.f_code.co_filename] * frame.f_code.co_filename.startswith(PACKAGE)
        frame = frame.f_back
    return files


def project_frames() -> int:
    """Return how many functions of mixtrain's are running."""
    return len(project_files())


class Looking(keras.losses.Loss):
    """The mean square error; notes the files of the functions that call it, without that of `train`."""

    def __init__(self) -> None:
        super().__init__()
        self.files: list[str] = []

    def call(self, y_true: Any, y_pred: Any) -> Any:
        self.files = project_files()[:-1]
        return keras.ops.mean((y_pred - y_true) ** 2)


class Controlling(mixtrain.Callback):
    """Wants a call for each step; notes how deep its hook is called."""

    def __init__(self) -> None:
        super().__init__()
        self.depths: list[int] = []

    def on_train_step_end(self, run_context: Any) -> None:
        self.depths.append(project_frames())


class InKeras(keras.callbacks.Callback):
    """The same for Keras's hook."""

    def __init__(self) -> None:
        super().__init__()
        self.depths: list[int] = []

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.depths.append(project_frames())


def model(**options: Any) -> Model:
    return Model(keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]), "mse", "sgd", **options)


@pytest.fixture
def depths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How deep the array library is called by steps that were compiled before."""
    if ON_TENSORFLOW:
        from mixtrain.backend.tensorflow.compile import DirectCall as Compiled
    else:
        from mixtrain.backend.jax.state import Stateful as Compiled  # type: ignore[assignment]
    call, frames = Compiled.__call__, []

    def counted(self: Any, *tensors: Any, **options: Any) -> Any:
        frames.append(project_frames() + 1)
        return call(self, *tensors, **options)

    monkeypatch.setattr(Compiled, "__call__", counted)
    return frames


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"amp_level": "O2"}, {"amp_level": "O2", "sample_weight": True}])
def test_a_step_is_at_most_seven_frames_below_train(depths: list[int], options: dict[str, Any]) -> None:
    batch = (*BATCH, np.ones(4, np.float32)) if "sample_weight" in options else BATCH
    manager = mixtrain.DynamicLossScaleManager(8.0) if options else None
    model(**options, loss_scale_manager=manager).train(1, [batch] * 5, callbacks=Controlling(), verbose=0)
    assert len(depths) == 5 and max(depths) <= MAX_FRAMES


def test_steps_after_the_search_for_the_first_scale_are_no_deeper(depths: list[int]) -> None:
    model(amp_level="O2").train(1, [BATCH] * 5, callbacks=Controlling(), verbose=0)
    assert max(depths[-4:]) <= MAX_FRAMES and max(depths) == MAX_FRAMES + 1


@pytest.mark.parametrize(("sink", "frames", "files"), [(False, 23, 12), (True, 26, 13)], ids=["host", "sink"])
def test_the_loss_of_a_keras_network_is_traced_in_few_frames(sink: bool, frames: int, files: int) -> None:
    loss = Looking()
    network = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    Model(network, loss, "sgd", amp_level="O2").train(1, [BATCH] * 2, dataset_sink_mode=sink, verbose=0)
    assert (len(loss.files) <= frames, len(set(loss.files)) <= files) == (True, True), "\n".join(loss.files)


def test_callbacks_are_told_at_most_seven_frames_below_train() -> None:
    callbacks = Controlling(), InKeras()
    model(amp_level="O2").fit(1, [BATCH] * 3, [BATCH], callbacks=list(callbacks), verbose=0)
    assert [max(callback.depths) <= MAX_FRAMES for callback in callbacks] == [True, True]


def test_a_group_of_steps_is_one_call_of_the_stepper(depths: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mixtrain.train.steps_per_call.StepsPerCall.estimate", lambda self, batch_bytes, most=0: 4)
    frames: list[int] = []
    several = Stepper.several

    def counted(self: Stepper, group: Any, **options: Any) -> Any:
        frames.append(project_frames() + 1)
        return several(self, group, **options)

    monkeypatch.setattr(Stepper, "several", counted)
    model().train(1, [BATCH] * 8, verbose=0)
    assert frames == [5, 5], "train, run, the epoch, the group, the stepper"
