"""`HooksInKeras`: calls mixtrain's callbacks from Keras's own loop, with what that tells of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import checks
from mixtrain.errors import LossScaleExhausted
from mixtrain.keras import PreparedOptimizer
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.callback.model_checkpoint import ModelCheckpoint
from mixtrain.train.records import EpochRecords, StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext


class HooksInKeras(keras.callbacks.Callback):
    """A Keras callback that calls the hooks of mixtrain's, and adds the loss scale and skipped steps to epochs.

    `hooks`: The callbacks, entered. `arguments`: The state of the run, with what does not change in it. `optimizers`:
    Those of the model that scale losses. `limit`: Maximum number of consecutive steps that overflow.

    Raises: ValueError if a callback needs what only a step of mixtrain's own knows.
    """

    def __init__(
        self, hooks: CallbackList, arguments: CallbackArguments, optimizers: Sequence[PreparedOptimizer], limit: int
    ) -> None:
        super().__init__()
        _check(hooks)
        self._hooks, self._arguments, self._optimizers, self._limit = hooks, arguments, optimizers, limit
        self._context = RunContext(arguments)
        self._records = EpochRecords()
        self._step = self._before_batch = self._in_a_row = 0
        self._skipped = self._skipped_before_epoch = 0
        self._scale = 1.0
        self._evaluation = contextlib.ExitStack()

    def on_train_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Begin the run."""
        self._arguments._set(batch_num=self.params.get("steps") or 0)
        self._read_scale()
        self._hooks.on_train_begin(self._context)

    def on_epoch_begin(self, epoch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Begin an epoch."""
        self._records, self._before_batch = EpochRecords(), 0
        self._skipped_before_epoch = self._skipped
        self._arguments._set(cur_epoch_num=epoch + 1, steps_before_epoch=self._step)
        self._hooks.on_train_epoch_begin(self._context)

    def on_train_batch_begin(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Begin a step."""
        self._arguments._set(cur_step_num=self._step + 1, train_dataset_element=None)
        self._hooks.on_train_step_begin(self._context)

    def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """End a step, or with Keras's ``steps_per_execution`` several."""
        steps, self._before_batch = batch + 1 - self._before_batch, batch + 1
        self._step += steps
        scale, before = self._scale, self._skipped
        self._read_scale()
        loss = np.float32((logs or {}).get("loss", np.nan))
        overflow = self._skipped > before
        self._in_a_row = self._in_a_row + steps if self._skipped - before >= steps else 0
        records = StepRecords([loss], *([[overflow], [np.float32(scale)]] if self._optimizers else []))
        self._records.add(records)
        outputs = (loss, overflow, scale) if self._optimizers else loss
        self._arguments._set(cur_step_num=self._step, step_results=records, net_outputs=outputs)
        self._hooks.on_train_step_end(self._context)
        if self._in_a_row > self._limit:
            raise LossScaleExhausted(
                f"Model: gradients must be finite now and then; {self._in_a_row} steps in a row overflowed, the last "
                f"of them step {self._step} at loss scale {scale:g}. Write a smaller learning rate or initial scale, "
                "or to_float(layer, float32).",
                step=self._step, loss_scale=scale, layer=None,
            )
        self._stop_if_requested()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """End an epoch: other callbacks and the history see the loss scale, too."""
        logs = {} if logs is None else logs
        if self._optimizers:
            logs |= {"loss_scale": self._scale, "skipped_steps": self._skipped - self._skipped_before_epoch}
        self._arguments._set(epoch_values=dict(logs), epoch_results=self._records.joined())
        self._hooks.on_train_epoch_end(self._context)
        self._stop_if_requested()

    def on_train_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """End the run."""
        self._hooks.on_train_end(self._context)

    def on_test_begin(self, logs: Mapping[str, Any] | None = None) -> None:
        """Begin an evaluation between epochs."""
        self._evaluation.enter_context(self._hooks.between_epochs(mode="eval", cur_step_num=0))
        self._hooks.on_eval_begin(self._context)

    def on_test_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
        """Pass a step of an evaluation on."""
        self._arguments._set(cur_step_num=batch + 1)
        self._hooks.on_eval_step_begin(self._context)
        self._hooks.on_eval_step_end(self._context)

    def on_test_end(self, logs: Mapping[str, Any] | None = None) -> None:
        """End an evaluation."""
        values = dict(logs or {})
        loss = {"eval_loss": values["loss"]} if "loss" in values else {}
        self._arguments._set(metrics=values, eval_results={**values, **loss})
        self._hooks.on_eval_end(self._context)
        self._evaluation.close()

    def _read_scale(self) -> None:
        """Read the counts of skipped updates and the scale of the first optimizer that has one."""
        if self._optimizers:
            self._skipped = sum(optimizer.skipped_steps for optimizer in self._optimizers)
            self._scale = float(self._optimizers[0].loss_scale_manager.get_loss_scale())  # type: ignore[union-attr]

    def _stop_if_requested(self) -> None:
        if self._context.get_stop_requested():
            self.model.stop_training = True


def _check(hooks: CallbackList) -> None:
    for callback in hooks:
        needs = getattr(callback, "needs", ()) or getattr(callback, "sample_every", None)
        if needs or isinstance(callback, ModelCheckpoint) or hooks.hears_overflows(callback):
            write = "keras.callbacks.ModelCheckpoint" if isinstance(callback, ModelCheckpoint) else "it without this"
            raise checks.fail_value(
                "Model", "a network with a train_step of its own is trained by Keras's loop, which does not tell what "
                "this callback needs", type(callback).__name__, write,
            )
