"""The list: order, who is called, what happens to errors, and evaluations between epochs."""

from __future__ import annotations

import math
from typing import Any

import keras
import pytest

from mixtrain.train.callback import Callback, CallbackList, LossMonitor
from mixtrain.train.callback.callback import HOOKS
from mixtrain.train.run_context import CallbackArguments, RunContext
from tests.train.callback.run import tell_run


def recorder(said: list[str], *names: str, label: str = "") -> Callback:
    """Return a callback whose methods `names` note that they were called."""

    def method(name: str) -> Any:
        return lambda self, run_context: said.append(label + name)

    return type("Recorder", (Callback,), {name: method(name) for name in names})()


def test_hooks_come_in_the_order_of_a_run() -> None:
    said: list[str] = []
    tell_run(recorder(said, *HOOKS), [[1.0, 1.0]], metrics=[{"accuracy": 0.5}])
    step = ["on_train_step_begin", "on_train_step_end"]
    evaluation = [
        "on_eval_begin", "on_eval_epoch_begin", "on_eval_step_begin", "on_eval_step_end", "on_eval_epoch_end",
        "on_eval_end",
    ]
    assert said == [
        "on_train_begin", "on_train_epoch_begin", *step, *step, *evaluation, "on_train_epoch_end", "on_train_end",
    ]


def test_older_names_are_told_of_training_and_of_an_evaluation_alone() -> None:
    said: list[str] = []
    callback = recorder(said, *set(HOOKS.values()))
    tell_run(callback, [[1.0]], metrics=[{"accuracy": 0.5}])
    assert said == ["begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end"]
    said.clear()
    CallbackList(callback).on_eval_step_end(RunContext({"mode": "eval"}))
    assert said == ["step_end"]


def test_callbacks_are_told_in_the_order_given_whatever_their_kind() -> None:
    said: list[str] = []

    class OfKeras(keras.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            said.append("keras")

    first, last = (recorder(said, "epoch_begin", label=label) for label in ("first ", "last "))
    tell_run([first, OfKeras(), last], [[1.0]])
    assert said == ["first epoch_begin", "keras", "last epoch_begin"]


def test_only_overridden_hooks_are_listened_to() -> None:
    callbacks = CallbackList([recorder([], "on_train_end"), recorder([], "step_end"), Callback()])
    heard = [hook for hook in HOOKS if callbacks.listens(hook)]
    assert heard == ["on_train_step_end", "on_train_end", "on_eval_step_end"]
    assert not any(CallbackList(Callback()).listens(hook) for hook in HOOKS)


def test_a_hook_set_on_the_object_is_heard() -> None:
    said: list[int] = []
    callback = Callback()
    callback.step_end = lambda run_context: said.append(1)  # type: ignore[method-assign]
    tell_run(callback, [[1.0, 1.0]])
    assert said == [1, 1]


def test_a_hook_that_calls_its_base_reaches_the_older_name_once() -> None:
    said: list[str] = []

    class Both(Callback):
        def on_train_step_end(self, run_context: RunContext) -> None:
            said.append("new")
            super().on_train_step_end(run_context)

        def step_end(self, run_context: RunContext) -> None:
            said.append("old")

    tell_run(Both(), [[1.0]])
    assert said == ["new", "old"]


@pytest.mark.parametrize("name", ["step_end", "on_train_step_end"])
def test_an_error_names_the_callback_and_the_hook(name: str) -> None:
    def fail(self: Any, run_context: RunContext) -> None:
        raise ZeroDivisionError("by zero")

    with pytest.raises(ZeroDivisionError, match="by zero") as caught:
        tell_run(type("Faulty", (Callback,), {name: fail})(), [[1.0]])
    assert caught.value.__notes__ == [f"Raised by the callback Faulty in {name}."]


def test_an_error_of_a_keras_callback_names_its_own_method() -> None:
    class Faulty(keras.callbacks.Callback):
        def on_batch_end(self, batch: int, logs: Any = None) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        tell_run(Faulty(), [[1.0]])
    assert caught.value.__notes__ == ["Raised by the callback Faulty in on_train_batch_end."]


def test_a_stop_asked_for_in_an_evaluation_between_epochs_ends_it_alone() -> None:
    class Stop(Callback):
        def on_eval_step_end(self, run_context: RunContext) -> None:
            run_context.request_stop()

    assert not tell_run(Stop(), [[1.0], [1.0]], metrics=[{}, {}]).get_stop_requested()


def test_an_evaluation_between_epochs_lends_the_arguments() -> None:
    seen: list[Any] = []

    class Look(Callback):
        def on_eval_begin(self, run_context: RunContext) -> None:
            arguments = run_context.original_args()
            seen.append((arguments.mode, arguments.cur_step_num, arguments.batch_num, arguments.cur_epoch_num))

        def on_train_epoch_end(self, run_context: RunContext) -> None:
            arguments = run_context.original_args()
            seen.append((arguments.mode, arguments.cur_step_num, arguments.batch_num, arguments.cur_epoch_num))

    tell_run(Look(), [[1.0, 1.0]], metrics=[{"accuracy": 0.5}])
    assert seen == [("eval", 0, 1, 1), ("train", 2, 2, 1)]


def test_callbacks_are_entered_in_order_and_left_in_reverse_even_after_an_error() -> None:
    said: list[str] = []

    class Room(Callback):
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> Room:
            said.append(f"in {self.name}")
            return self

        def __exit__(self, *error: Any) -> None:
            said.append(f"out {self.name}")

    with pytest.raises(KeyError), CallbackList([Room("a"), Room("b")]):
        raise KeyError
    assert said == ["in a", "in b", "out b", "out a"]


def test_what_is_entered_may_be_another_callback() -> None:
    said: list[str] = []

    class Door(Callback):
        def __enter__(self) -> Any:
            return recorder(said, "begin")

    tell_run(Door(), [[1.0]])
    assert said == ["begin"]


def test_a_callback_that_fails_to_enter_exits_those_before() -> None:
    said: list[str] = []

    class Room(Callback):
        def __exit__(self, *error: Any) -> None:
            said.append("out")

    class Locked(Callback):
        def __enter__(self) -> Any:
            raise KeyError

    with pytest.raises(KeyError), CallbackList([Room(), Locked()]):
        pass
    assert said == ["out"]


def test_none_one_and_many_are_listed_as_given() -> None:
    monitor, history = LossMonitor(), keras.callbacks.History()
    assert list(CallbackList(None)) == []
    assert list(CallbackList(monitor)) == [monitor]
    assert list(CallbackList((monitor, history))) == [monitor, history]
    arguments = CallbackArguments()
    listed = CallbackList(iter([history]), arguments)
    assert len(listed) == 1
    assert arguments.list_callback is listed


def test_steps_are_free_of_monitors_and_of_those_that_do_not_listen_to_them() -> None:
    class Listening(Callback):
        def on_train_step_end(self, run_context: RunContext) -> None:
            run_context.request_stop()

    class Loud(LossMonitor):
        def step_end(self, run_context: RunContext) -> None:
            run_context.request_stop()

    context = RunContext({"cur_step_num": 3})
    assert CallbackList([LossMonitor(), Callback(), keras.callbacks.EarlyStopping()]).free_steps(context) == math.inf
    assert CallbackList([LossMonitor(), Listening()]).free_steps(context) == 1
    assert CallbackList([Loud()]).free_steps(context) == 1  # its parent's word does not hold for it


@pytest.mark.parametrize("wrong", [3, [LossMonitor], [LossMonitor(), "x"]])
def test_what_is_no_callback_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="callbacks: .*Write callbacks="):
        CallbackList(wrong)
