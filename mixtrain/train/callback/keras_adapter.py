"""A Keras callback in a mixtrain run: its hooks, its ``logs`` and its ``self.model``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np

from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.keras_backup import BesideBackup
from mixtrain.train.callback.keras_view import model_view
from mixtrain.train.callback.steps import any_applied, epoch_of, steps_of
from mixtrain.train.records import StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.training_metrics import last_values

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
# The methods in which Keras's callbacks look for an improvement, with whether there can be one.
_JUDGED: Final[dict[str, Callable[[CallbackArguments], bool]]] = {
    "on_train_batch_end": lambda arguments: any_applied(steps_of(arguments)),
    "on_epoch_end": lambda arguments: any_applied(epoch_of(arguments)),
}
_BETTER_WHEN_HIGHER: Final = ("acc", "auc", "precision", "recall", "f1", "top", "iou", "dice")
_BETTER_WHEN_LOWER: Final = ("loss", "mae", "mse", "error", "perplexity", "distance")


# The number of an epoch, its logs, and the names that they had before a callback saw them.
_NO_LOGS: Final[tuple[int | None, dict[str, Any], frozenset[str]]] = (None, {}, frozenset())


def keras_params(arguments: CallbackArguments) -> dict[str, Any]:
    """Return what Keras calls the `params` of a run."""
    return {
        "verbose": arguments.get("verbose", 0),
        "epochs": arguments.get("epoch_num", 1),
        "steps": arguments.get("batch_num"),
    }


def added_to_logs(arguments: CallbackArguments) -> dict[str, Any]:
    """Return what Keras callbacks have added to the logs of the epoch that has just ended."""
    number, logs, before = arguments.get("keras_logs", _NO_LOGS)
    added = logs if number == arguments.get("cur_epoch_num") else {}
    return {name: value for name, value in added.items() if name not in before}


@dataclasses.dataclass
class _SoFar:
    """What the logs of an epoch's batches are made of.

    Attributes:
        epoch: Its number.
        loss: The loss to show; None where there was none yet.
        begun: Whether a step of the run was applied.
        total: The sum of the losses of applied steps, each times its rows.
        rows: The rows of applied steps.
        skipped: How many steps were skipped.
    """

    epoch: int
    loss: float | None
    begun: bool
    total: float = 0.0
    rows: int = 0
    skipped: int = 0

    def taken_in(self, records: StepRecords) -> dict[str, float]:
        """Take in some steps; return the loss, where there is one."""
        overflow, losses, rows = records.overflow, records.loss.astype(np.float64), records.rows
        applied = ~overflow
        self.skipped += int(overflow.sum())
        self.total += float(losses[applied] @ rows[applied])
        self.rows += int(rows[applied].sum())
        if applied.any():
            self.loss, self.begun = self.total / self.rows, True
        elif not self.begun and np.isfinite(losses).any():
            self.loss = float(losses[np.isfinite(losses)][-1])
        return {} if self.loss is None else {"loss": self.loss}


class KerasCallbackAdapter(Callback):
    """Passes a run's hooks on to a Keras callback, those alone that it overrides.

    Epochs and batches are counted from 0 and logs hold Python floats, as Keras has it; with sink feed a batch hook
    comes once per call, for the call's last batch, as with Keras's ``steps_per_execution``. Setting
    ``self.model.stop_training`` requests a stop. With loss scaling the logs hold "loss_scale", "overflow" (1 where a
    step of the call, or of the epoch, overflowed) and "skipped_steps" (so far in the epoch) too. Where no step was
    applied, the network is what it was, so callbacks that look for an improvement are not told of the call or epoch.

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
        self._model = model_view(arguments.get("network"), arguments.get("optimizer"), arguments.get("train_network"))
        backup = isinstance(callback, keras.callbacks.BackupAndRestore)
        # Of a Cell the file is a mixtrain checkpoint, which holds everything.
        self._beside = BesideBackup(callback) if backup and isinstance(self._model.model, keras.Model) else None
        self._so_far = _SoFar(0, None, False)
        callback.set_params(keras_params(arguments))
        callback.set_model(self._model.model)
        _settle_direction(callback)
        senders: dict[str, Callable[[CallbackArguments], tuple[Any, ...]]] = {
            "on_train_begin": lambda _: ({},),
            "on_train_epoch_begin": lambda arguments: (arguments.cur_epoch_num - 1, {}),
            "on_train_step_begin": lambda arguments: (_batch(arguments), {}),
            "on_train_step_end": lambda arguments: (_batch(arguments), self._step_logs(arguments)),
            "on_train_epoch_end": lambda arguments: (arguments.cur_epoch_num - 1, self._epoch_logs(arguments)),
            "on_train_end": lambda arguments: (self._epoch_logs(arguments),),
            "on_eval_begin": lambda _: ({},),
            "on_eval_step_begin": lambda arguments: (_batch(arguments), {}),
            "on_eval_step_end": lambda arguments: (_batch(arguments), _evaluated(arguments)),
            "on_eval_end": lambda arguments: (_evaluated(arguments),),
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
        arguments = run_context.original_args()
        told = values(arguments)
        if method in _JUDGED and _judges(self.keras_callback) and not _JUDGED[method](arguments):
            if isinstance(self.keras_callback, keras.callbacks.ReduceLROnPlateau):
                # What it writes for callbacks after it: a CSVLogger takes its columns from the first epoch.
                told[1]["learning_rate"] = float(keras.ops.convert_to_numpy(self._model.model.optimizer.learning_rate))
            return
        getattr(self.keras_callback, method)(*told)
        if method == "on_train_begin" and self._model.epochs_done:
            arguments.epochs_done = max(self._model.epochs_done, arguments.get("epochs_done", 0))
        if self._beside is not None and method == "on_train_begin":
            self._beside.take_up(arguments)
        elif self._beside is not None and method in ("on_train_batch_end", "on_epoch_end"):
            self._beside.keep(arguments)
        if getattr(self._model.model, "stop_training", False):
            run_context.request_stop()

    def _step_logs(self, arguments: CallbackArguments) -> dict[str, Any]:
        """Return the values of the epoch so far, as Keras has them: the mean loss of applied steps, and the metrics.

        While all were skipped the loss is that of the last skipped one that was finite: what overflows is mostly
        gradients.
        """
        records, epoch = steps_of(arguments), arguments.get("cur_epoch_num", 1)
        if self._so_far.epoch != epoch:
            self._so_far = _SoFar(epoch, self._so_far.loss, self._so_far.begun)
        logs = self._so_far.taken_in(records) | last_values(records)
        if records.scaled:
            logs["loss_scale"] = float(records.loss_scale[-1])
            logs |= {"overflow": float(records.overflow.any()), "skipped_steps": float(self._so_far.skipped)}
        return logs

    def _epoch_logs(self, arguments: CallbackArguments) -> dict[str, float]:
        """Return the epoch's values: one dict for all Keras callbacks, for some add to it what later ones read."""
        number, logs, _ = arguments.get("keras_logs", _NO_LOGS)
        if number != arguments.get("cur_epoch_num"):
            logs = _floats(arguments.get("epoch_values"))
            if "skipped_steps" in logs:
                logs["overflow"] = float(logs["skipped_steps"] > 0)
            arguments.keras_logs = (arguments.cur_epoch_num, logs, frozenset(logs))
        return logs  # type: ignore[no-any-return]


def _judges(callback: keras.callbacks.Callback) -> bool:
    """Whether a callback looks for an improvement: it would take epochs that changed nothing for a plateau."""
    if isinstance(callback, keras.callbacks.ModelCheckpoint):
        return bool(callback.save_best_only)
    return isinstance(callback, (keras.callbacks.EarlyStopping, keras.callbacks.ReduceLROnPlateau))


def _evaluated(arguments: CallbackArguments) -> dict[str, Any]:
    """Return what an evaluation found, with its loss under Keras's name."""
    results = arguments.get("eval_results") or arguments.get("metrics") or {}
    named: dict[str, Any] = {("loss" if name == "eval_loss" else name): value for name, value in results.items()}
    return _floats(named)


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
    elif any(part in name for part in _BETTER_WHEN_LOWER):
        callback.mode = "min"
