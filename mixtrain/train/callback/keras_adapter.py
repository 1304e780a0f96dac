"""`KerasCallbackAdapter`: calls a Keras callback in a mixtrain run, with its ``logs`` and ``self.model``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.keras_backup import CompanionBackup
from mixtrain.train.callback.keras_view import model_view
from mixtrain.train.callback.steps import any_applied, epoch_of, steps_of
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.running_loss import RunningLoss
from mixtrain.train.training_metrics import last_values

# The methods in which Keras callbacks look for an improvement, with whether there can be one.
_IMPROVEMENT_METHODS: Final[dict[str, Callable[[CallbackArguments], bool]]] = {
    "on_train_batch_end": lambda arguments: any_applied(steps_of(arguments)),
    "on_epoch_end": lambda arguments: any_applied(epoch_of(arguments)),
}
_BETTER_WHEN_HIGHER: Final = ("acc", "auc", "precision", "recall", "f1", "top", "iou", "dice")
_BETTER_WHEN_LOWER: Final = ("loss", "mae", "mse", "error", "perplexity", "distance")
# The number of an epoch, its logs, and the names in the logs before the first callback.
_NO_LOGS: Final[tuple[int | None, dict[str, Any], frozenset[str]]] = (None, {}, frozenset())


def keras_params(arguments: CallbackArguments) -> dict[str, Any]:
    """Return the `params` of Keras callbacks."""
    return {
        "verbose": arguments.get("verbose", 0),
        "epochs": arguments.get("keras_epochs", arguments.get("epoch_num", 1)), "steps": arguments.get("batch_num"),
    }


def added_to_logs(arguments: CallbackArguments) -> dict[str, Any]:
    """Return the values that Keras callbacks added to the logs of the last epoch, such as "learning_rate"."""
    epoch, logs, initial_names = arguments.get("keras_logs", _NO_LOGS)
    if epoch != arguments.get("cur_epoch_num"):
        return {}
    return {name: value for name, value in logs.items() if name not in initial_names}


class KerasCallbackAdapter(Callback):
    """Calls the methods that a Keras callback overrides from the hooks of a run.

    As in Keras, epochs and batches are counted from 0 and logs hold Python floats. With sink feed a batch hook is
    called once per call, for its last batch, as with Keras's ``steps_per_execution``. Setting
    ``self.model.stop_training`` requests a stop. With loss scaling the logs also hold "loss_scale", "overflow" (1 if a
    step of the call, or of the epoch, overflowed) and "skipped_steps" (so far in the epoch). If no step was applied the
    network is unchanged, so callbacks that look for an improvement are not called for that call or epoch.
    """

    def __init__(self, callback: keras.callbacks.Callback, arguments: CallbackArguments) -> None:
        self.keras_callback = callback
        self.keras_methods: dict[str, str] = {}
        self._model = model_view(arguments)
        backup = isinstance(callback, keras.callbacks.BackupAndRestore)
        # For a Cell, Keras's callback writes a mixtrain checkpoint, which holds everything.
        self._companion = CompanionBackup(callback) if backup and isinstance(self._model.model, keras.Model) else None
        self._running_loss = RunningLoss(0)
        callback.set_params(keras_params(arguments))
        callback.set_model(self._model.model)
        _set_direction(callback)
        for hook, (methods, values_for) in _KERAS_METHODS.items():
            if any(_overrides(callback, method) for method in methods):
                self.keras_methods[hook] = methods[0]
                # Set on the instance, because `CallbackList` calls only hooks that differ from those of the base class.
                setattr(self, hook, functools.partial(self._pass_on, methods[0], values_for))

    def __enter__(self) -> KerasCallbackAdapter:
        self._model.set_optimizer()
        self._model.model.stop_training = False
        return self

    def __exit__(self, *error: object) -> None:
        self._model.restore_optimizer()

    def _pass_on(self, method: str, values_for: _Values, run_context: RunContext) -> None:
        arguments = run_context.original_args()
        values = values_for(self, arguments)
        can_improve = _IMPROVEMENT_METHODS.get(method)
        if can_improve is not None and _monitors_improvement(self.keras_callback) and not can_improve(arguments):
            if isinstance(self.keras_callback, keras.callbacks.ReduceLROnPlateau):
                # Callbacks after it read this value: a CSVLogger takes its columns from the first epoch.
                rate = self._model.model.optimizer.learning_rate
                values[1]["learning_rate"] = float(keras.ops.convert_to_numpy(rate))
            return
        getattr(self.keras_callback, method)(*values)
        if method == "on_train_begin" and self._model.restored_epochs:
            arguments.epochs_done = max(self._model.restored_epochs, arguments.get("epochs_done", 0))
        if self._companion is not None and method == "on_train_begin":
            self._companion.restore(arguments)
        elif self._companion is not None and method in ("on_train_batch_end", "on_epoch_end"):
            self._companion.save(arguments)
        if getattr(self._model.model, "stop_training", False):
            run_context.request_stop()

    def _step_logs(self, arguments: CallbackArguments) -> dict[str, Any]:
        """Return the values of the epoch so far, as in Keras: the mean loss of applied steps, and the metrics.

        Before the first applied step, the loss is the last finite loss of a skipped step: usually only gradients
        overflow. Without one it is that of the step, which is not finite; `TerminateOnNaN` is not shown it.
        """
        records, epoch = steps_of(arguments), arguments.get("cur_epoch_num", 1)
        running = self._running_loss
        if running.epoch != epoch:
            self._running_loss = running = RunningLoss(epoch, running.loss, running.any_applied)
        logs = running.update(records) | last_values(records)
        if "loss" not in logs and not isinstance(self.keras_callback, keras.callbacks.TerminateOnNaN):
            logs = {"loss": float(records.loss[-1])} | logs
        if records.scaled:
            logs["loss_scale"] = float(records.loss_scale[-1])
            logs |= {"overflow": float(records.overflow.any()), "skipped_steps": float(running.skipped)}
        return logs

    def _epoch_logs(self, arguments: CallbackArguments) -> dict[str, float]:
        """Return the values of the epoch: one dict for all Keras callbacks, as some add values that later ones read."""
        epoch, logs, _ = arguments.get("keras_logs", _NO_LOGS)
        if epoch != arguments.get("cur_epoch_num"):
            logs = _floats(arguments.get("epoch_values"))
            if "skipped_steps" in logs:
                logs["overflow"] = float(logs["skipped_steps"] > 0)
            arguments.keras_logs = (arguments.cur_epoch_num, logs, frozenset(logs))
        return logs  # type: ignore[no-any-return]


def _monitors_improvement(callback: keras.callbacks.Callback) -> bool:
    """Whether a callback looks for an improvement, so that epochs without applied steps would count as a plateau."""
    if isinstance(callback, keras.callbacks.ModelCheckpoint):
        return bool(callback.save_best_only)
    return isinstance(callback, (keras.callbacks.EarlyStopping, keras.callbacks.ReduceLROnPlateau))


def _eval_logs(arguments: CallbackArguments) -> dict[str, Any]:
    """Return the results of an evaluation, with its loss under Keras's name."""
    results = arguments.get("eval_results") or arguments.get("metrics") or {}
    return _floats({("loss" if name == "eval_loss" else name): value for name, value in results.items()})


def _batch(arguments: CallbackArguments) -> int:
    return (arguments.cur_step_num - 1) % max(arguments.get("batch_num", 0) or arguments.cur_step_num, 1)


def _floats(values: Any) -> dict[str, Any]:
    """Convert values by name to Python floats, except those that are not numbers."""
    numbers = {}
    for name, value in (values or {}).items():
        try:
            numbers[name] = float(value)
        except (TypeError, ValueError):
            numbers[name] = value
    return numbers


_Values = Callable[[KerasCallbackAdapter, CallbackArguments], tuple[Any, ...]]
# The Keras methods of each hook, of which the first is called (by default it calls the second), and their arguments.
_KERAS_METHODS: Final[dict[str, tuple[tuple[str, ...], _Values]]] = {
    "on_train_begin": (("on_train_begin",), lambda _, arguments: ({},)),
    "on_train_epoch_begin": (("on_epoch_begin",), lambda _, arguments: (arguments.cur_epoch_num - 1, {})),
    "on_train_step_begin": (("on_train_batch_begin", "on_batch_begin"), lambda _, arguments: (_batch(arguments), {})),
    "on_train_step_end": (
        ("on_train_batch_end", "on_batch_end"), lambda self, arguments: (_batch(arguments), self._step_logs(arguments))
    ),
    "on_train_epoch_end": (
        ("on_epoch_end",), lambda self, arguments: (arguments.cur_epoch_num - 1, self._epoch_logs(arguments))
    ),
    "on_train_end": (("on_train_end",), lambda self, arguments: (self._epoch_logs(arguments),)),
    "on_eval_begin": (("on_test_begin",), lambda _, arguments: ({},)),
    "on_eval_step_begin": (("on_test_batch_begin",), lambda _, arguments: (_batch(arguments), {})),
    "on_eval_step_end": (("on_test_batch_end",), lambda _, arguments: (_batch(arguments), _eval_logs(arguments))),
    "on_eval_end": (("on_test_end",), lambda _, arguments: (_eval_logs(arguments),)),
}


def _overrides(callback: keras.callbacks.Callback, method: str) -> bool:
    return getattr(getattr(callback, method), "__func__", None) is not getattr(keras.callbacks.Callback, method)


def _set_direction(callback: keras.callbacks.Callback) -> None:
    """Set the mode "auto" of a callback by the name of its metric; Keras would need a compiled model."""
    if getattr(callback, "mode", None) != "auto" or getattr(callback, "monitor_op", True) is not None:
        return
    name = callback.monitor.removeprefix("val_").lower()
    if "loss" not in name and any(part in name for part in _BETTER_WHEN_HIGHER):
        callback.mode = "max"
    elif any(part in name for part in _BETTER_WHEN_LOWER):
        callback.mode = "min"
