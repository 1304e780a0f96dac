"""A Keras callback in a mixtrain run: its hooks, its ``logs`` and its ``self.model``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.keras_view import model_view
from mixtrain.train.callback.steps import steps_of
from mixtrain.train.run_context import CallbackArguments, RunContext

# Each hook with the Keras methods that it stands for; the first of them is the one called, and calls the second.
_KERAS_METHODS: Final[dict[str, tuple[str, ...]]] = {
    "on_train_begin": ("on_train_begin",),
    "on_train_epoch_begin": ("on_epoch_begin",),
    "on_train_step_begin": ("on_train_batch_begin", "on_batch_begin"),
    "on_train_step_end": ("on_train_batch_end", "on_batch_end"),
    "on_train_epoch_end": ("on_epoch_end",),
    "on_train_end": ("on_train_end",),
    "on_eval_begin": ("on_test_begin",),
    "on_eval_step_begin": ("on_test_batch_begin",),
    "on_eval_step_end": ("on_test_batch_end",),
    "on_eval_end": ("on_test_end",),
}
_BETTER_WHEN_HIGHER: Final = ("acc", "auc", "precision", "recall", "f1", "top", "iou", "dice")


class KerasCallbackAdapter(Callback):
    """Passes a run's hooks on to a Keras callback, those alone that it overrides.

    Epochs and batches are counted from 0 and logs hold Python floats, as Keras has it; with sink feed a batch hook
    comes once per call, for the call's last batch, as with Keras's ``steps_per_execution``. Setting
    ``self.model.stop_training`` requests a stop.

    Args:
        callback: The Keras callback.
        arguments: The state of the run.

    Attributes:
        keras_callback: The Keras callback.
        keras_methods: The Keras method that each hook calls.
    """

    def __init__(self, callback: keras.callbacks.Callback, arguments: CallbackArguments) -> None:
        self.keras_callback = callback
        self.keras_methods: dict[str, str] = {}
        self._model = model_view(arguments.get("network"), arguments.get("optimizer"))
        self._last_loss: dict[str, float] = {}
        self._last_logs: dict[str, float] = {}
        callback.set_params(
            {"verbose": 1, "epochs": arguments.get("epoch_num", 1), "steps": arguments.get("batch_num")}
        )
        callback.set_model(self._model.model)
        _settle_direction(callback)
        senders: dict[str, Callable[[CallbackArguments], tuple[Any, ...]]] = {
            "on_train_begin": lambda _: ({},),
            "on_train_epoch_begin": lambda arguments: (arguments.cur_epoch_num - 1, {}),
            "on_train_step_begin": lambda arguments: (_batch(arguments), {}),
            "on_train_step_end": lambda arguments: (_batch(arguments), self._step_logs(arguments)),
            "on_train_epoch_end": lambda arguments: (arguments.cur_epoch_num - 1, self._epoch_logs(arguments)),
            "on_train_end": lambda _: (self._last_logs,),
            "on_eval_begin": lambda _: ({},),
            "on_eval_step_begin": lambda arguments: (_batch(arguments), {}),
            "on_eval_step_end": lambda arguments: (_batch(arguments), {}),
            "on_eval_end": lambda arguments: (_floats(arguments.get("metrics")),),
        }
        for hook, methods in _KERAS_METHODS.items():
            if any(_overrides(callback, method) for method in methods):
                self.keras_methods[hook] = methods[0]
                # An instance attribute: the list calls a hook only where it is not the base class's.
                setattr(self, hook, functools.partial(self._pass_on, methods[0], senders[hook]))

    def __enter__(self) -> KerasCallbackAdapter:
        self._model.lend_optimizer()
        self._model.model.stop_training = False
        return self

    def __exit__(self, *error: Any) -> None:
        self._model.take_back_optimizer()

    def _pass_on(
        self, method: str, values: Callable[[CallbackArguments], tuple[Any, ...]], run_context: RunContext
    ) -> None:
        getattr(self.keras_callback, method)(*values(run_context.original_args()))
        if getattr(self._model.model, "stop_training", False):
            run_context.request_stop()

    def _step_logs(self, arguments: CallbackArguments) -> dict[str, float]:
        """Return the loss of the last step that was applied so far; no loss while all were skipped."""
        records = steps_of(arguments)
        applied = records.loss[~records.overflow]
        if len(applied):
            self._last_loss = {"loss": float(applied[-1])}
        return dict(self._last_loss)

    def _epoch_logs(self, arguments: CallbackArguments) -> dict[str, float]:
        self._last_logs = _floats(arguments.get("epoch_values"))
        return self._last_logs


def _batch(arguments: CallbackArguments) -> int:
    return (arguments.cur_step_num - 1) % max(arguments.get("batch_num", 0) or arguments.cur_step_num, 1)


def _floats(values: Any) -> dict[str, Any]:
    """Return values by name, numbers as Python floats."""
    numbers = {}
    for name, value in (values or {}).items():
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError):
            numbers[name] = value
    return numbers


def _overrides(callback: keras.callbacks.Callback, method: str) -> bool:
    own = getattr(callback, method)
    return getattr(own, "__func__", None) is not getattr(keras.callbacks.Callback, method)


def _settle_direction(callback: Any) -> None:
    """Tell a callback that watches a metric whether higher is better; Keras would ask a compiled model."""
    if getattr(callback, "mode", None) != "auto" or getattr(callback, "monitor_op", True) is not None:
        return
    name = callback.monitor.removeprefix("val_").lower()
    if "loss" not in name and any(part in name for part in _BETTER_WHEN_HIGHER):
        callback.mode = "max"
    elif any(part in name for part in ("loss", "mae", "mse", "error")):
        callback.mode = "min"
