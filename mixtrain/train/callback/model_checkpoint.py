"""`ModelCheckpoint`: writes checkpoints during training."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final

from mixtrain import checks
from mixtrain.distribution.processes import in_any_process
from mixtrain.serialization.files import finish_writing
from mixtrain.serialization.save import write_checkpoint
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.checkpoint_config import CheckpointConfig
from mixtrain.train.callback.checkpoint_files import (
    KeptFiles,
    free_prefix,
    make_folder,
    refuse_saving_alone,
    run_position,
    saves_together,
)
from mixtrain.train.run_context import CallbackArguments, RunContext

_WHERE: Final = "ModelCheckpoint"
NameOrFunction = str | Callable[[CallbackArguments], str]


class ModelCheckpoint(Callback):
    """Writes ``prefix-epoch_step.ckpt`` at intervals and at the end of training, with all that a resumed run needs.

    If the folder already has files with the prefix, the prefix becomes ``prefix_1`` and so on. With sink feed a file
    can be written only after a call, so after `sink_size` steps at the earliest. MindSpore's ``-graph.meta`` is not
    written: it holds a MindSpore graph.

    To resume a run::

        checkpoint = load_checkpoint("lenet-3_1875.ckpt")
        load_param_into_net(model.train_network, checkpoint)
        model.train(10, dataset, initial_epoch=checkpoint.initial_epoch)

    Args:
        prefix: First part of the files' names; or a function from the callback arguments to the whole name.
        directory: The folder, created if it is missing; or a function from the callback arguments to the folder; None
            for the current folder.
        config: When to write and what to keep; a `CheckpointConfig`.

    Raises: TypeError if an argument has the wrong type. ValueError if `prefix` is not a file name, or `directory` is
        empty. NotADirectoryError if `directory` is a file. PermissionError if `directory` cannot be written.

    Example: ``ModelCheckpoint("lenet", "./checkpoints", CheckpointConfig(100))``.
    """

    observes_only: ClassVar[bool] = True

    def __init__(
        self, prefix: NameOrFunction = "CKP", directory: NameOrFunction | os.PathLike[str] | None = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        super().__init__()
        config = CheckpointConfig() if config is None else config
        self._config = checks.instance(_WHERE, "config", config, CheckpointConfig, "config=CheckpointConfig(100)")
        self._prefix_arg = prefix if callable(prefix) else _checked_prefix(prefix)
        self._directory_arg = directory
        self._directory = "" if callable(directory) else make_folder(_WHERE, directory)
        self._prefix = "" if callable(prefix) else prefix
        if self._directory and not callable(prefix):
            self._prefix = free_prefix(self._directory, prefix)
        self._kept_files = KeptFiles(config.keep_checkpoint_max, config.keep_checkpoint_per_n_minutes)
        self._latest_ckpt_file_name = ""
        self._last_triggered_step = 0
        self._last_time = time.monotonic()
        self._arguments: CallbackArguments | None = None
        # Epoch and step after which an exception may end the run.
        self._last_step = (0, 0)

    @property
    def latest_ckpt_file_name(self) -> str:
        """Full path of the file that was written last; empty before the first."""
        return self._latest_ckpt_file_name

    def __exit__(self, *error: object) -> Any:
        if error and error[0] is not None and self._config.exception_save and self._arguments is not None:
            self._save_after_exception(self._arguments)
        self._arguments = None
        return None

    def on_train_begin(self, run_context: RunContext) -> None:
        """Count steps from 0."""
        self._last_triggered_step = 0
        if self._config.exception_save:
            refuse_saving_alone(_WHERE, "exception_save=True", run_context.original_args())
        self._arguments, self._last_step = run_context.original_args(), (0, 0)
        super().on_train_begin(run_context)

    def step_end(self, run_context: RunContext) -> None:
        """Write a file, if it is due."""
        arguments = run_context.original_args()
        self._arguments = arguments
        self._last_step = (arguments.get("cur_epoch_num", 1), arguments.cur_step_num)
        if self._is_due(arguments.cur_step_num):
            self._save(arguments)

    def end(self, run_context: RunContext) -> None:
        """Write a file of the last step, unless it has one, and wait for files written by a thread."""
        arguments = run_context.original_args()
        periodic = self._config.save_checkpoint_steps or self._config.save_checkpoint_seconds
        if periodic and arguments.cur_step_num != self._last_triggered_step:
            self._save(arguments)
        finish_writing()

    def free_steps(self, run_context: RunContext) -> float:
        """Return the steps until the next file; 1 if files are written by time."""
        if self._config.save_checkpoint_steps:
            done = run_context.original_args().get("cur_step_num", 0)
            return max(1, self._last_triggered_step + self._config.save_checkpoint_steps - done)
        return 1 if self._config.save_checkpoint_seconds else math.inf

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Write nothing in an evaluation."""

    def on_eval_end(self, run_context: RunContext) -> None:
        """Write nothing in an evaluation."""

    def _is_due(self, step: int) -> bool:
        if self._config.save_checkpoint_steps:
            return bool(step >= self._last_triggered_step + self._config.save_checkpoint_steps)
        if not self._config.save_checkpoint_seconds:
            return False
        due = time.monotonic() - self._last_time > self._config.save_checkpoint_seconds
        together = self._arguments is not None and saves_together(self._arguments)
        return in_any_process(due) if together else due

    def _save(self, arguments: CallbackArguments) -> None:
        epoch, step = arguments.get("cur_epoch_num", 1), arguments.cur_step_num
        prefix = self._resolve_prefix(arguments)
        # A function returns the whole name, a str only its first part.
        name = prefix if callable(self._prefix_arg) else f"{prefix}-{epoch}_{_step_in_epoch(arguments, step)}"
        path = self._write(arguments, f"{name}.ckpt", epoch, step)
        self._last_triggered_step, self._last_time = step, time.monotonic()
        self._latest_ckpt_file_name = path
        self._kept_files.add(path, self._last_time)

    def _save_after_exception(self, arguments: CallbackArguments) -> None:
        epoch, step = self._last_step
        prefix = self._resolve_prefix(arguments)
        if not callable(self._prefix_arg):
            prefix = free_prefix(self._directory, self._prefix_arg, after_exception=True)
        self._write(arguments, f"{prefix}-{epoch}_{_step_in_epoch(arguments, step)}_breakpoint.ckpt", epoch, step)
        finish_writing()

    def _resolve_prefix(self, arguments: CallbackArguments) -> str:
        """Return the prefix, after calling the user's functions for the folder and the prefix."""
        if callable(self._directory_arg):
            self._directory = make_folder(_WHERE, self._directory_arg(arguments))
        if callable(self._prefix_arg):
            self._prefix = _checked_prefix(self._prefix_arg(arguments))
        return self._prefix

    def _write(self, arguments: CallbackArguments, name: str, epoch: int, step: int) -> str:
        network = self._config.saved_network
        counts = {"epoch_num": epoch, "step_num": step}
        append_dict = {key: counts.get(key, value) for key, value in (self._config.append_dict or {}).items()}
        return write_checkpoint(
            arguments.train_network if network is None else network, os.path.join(self._directory, name),
            self._config.async_save, append_dict, position={**run_position(arguments), "epoch": epoch, "step": step},
        )


def _checked_prefix(prefix: Any) -> str:
    if not isinstance(prefix, str) or "/" in prefix:
        raise checks.fail_value(_WHERE, "prefix must be a str without /, or a function", prefix, 'prefix="lenet"')
    return prefix


def _step_in_epoch(arguments: CallbackArguments, step: int) -> int:
    return (step - 1) % (arguments.get("batch_num", 0) or max(step, 1)) + 1 if step else 0
