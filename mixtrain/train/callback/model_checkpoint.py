"""`ModelCheckpoint`: writes checkpoints of a run as it goes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any, ClassVar, Final

from mixtrain import checks
from mixtrain.serialization.background import finish_writing
from mixtrain.serialization.save import write_checkpoint
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.checkpoint_config import CheckpointConfig
from mixtrain.train.callback.checkpoint_files import KeptFiles, free_prefix, make_folder
from mixtrain.train.run_context import CallbackArguments, RunContext

_WHERE: Final = "ModelCheckpoint"
Named = str | Callable[[CallbackArguments], str]


class ModelCheckpoint(Callback):
    """Writes ``prefix-epoch_step.ckpt`` every so often and at the end of training, with all that a resumed run needs.

    Where files with the prefix are in the folder already, the prefix becomes ``prefix_1`` and so on. With sink feed a
    file can be written after a call alone, so after `sink_size` steps at the earliest. MindSpore's ``-graph.meta`` is
    not written: it holds a graph of MindSpore's own.

    To go on with a run::

        checkpoint = load_checkpoint("lenet-3_1875.ckpt")
        load_param_into_net(model.train_network, checkpoint)
        model.train(10, dataset, initial_epoch=checkpoint.initial_epoch)

    Args:
        prefix: First part of the files' names; or a function from the callback arguments to the whole name.
        directory: The folder, made where it is missing; a function from the callback arguments to it; None for the
            present folder.
        config: When to write and what to keep; a `CheckpointConfig`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `prefix` is no name, or `directory` is empty.
        NotADirectoryError: `directory` is a file.
        PermissionError: `directory` cannot be written.

    Example:
        >>> import tempfile
        >>> ModelCheckpoint("lenet", tempfile.mkdtemp(), CheckpointConfig(100)).latest_ckpt_file_name
        ''

    Source: MindSpore, `mindspore.train.ModelCheckpoint`.
    """

    observes_only: ClassVar[bool] = True

    def __init__(
        self,
        prefix: Named = "CKP",
        directory: Named | os.PathLike[str] | None = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        super().__init__()
        config = CheckpointConfig() if config is None else config
        self._config = checks.instance(_WHERE, "config", config, CheckpointConfig, "config=CheckpointConfig(100)")
        self._given_prefix = prefix if callable(prefix) else _checked_prefix(prefix)
        self._given_directory = directory
        self._directory = "" if callable(directory) else make_folder(_WHERE, directory)
        self._prefix = "" if callable(prefix) else prefix
        if self._directory and not callable(prefix):
            self._prefix = free_prefix(self._directory, prefix)
        self._kept = KeptFiles(config.keep_checkpoint_max, config.keep_checkpoint_per_n_minutes)
        self._latest_ckpt_file_name = ""
        self._last_triggered_step = 0
        self._last_time = time.time()
        self._arguments: CallbackArguments | None = None
        self._finished = (0, 0)

    @property
    def latest_ckpt_file_name(self) -> str:
        """The file that was written last, its full path; empty before the first."""
        return self._latest_ckpt_file_name

    # ---- hooks ------------------------------------------------------------------------------------------------
    def __exit__(self, *error: Any) -> Any:
        if error and error[0] is not None and self._config.exception_save and self._arguments is not None:
            self._save_after_exception(self._arguments)
        self._arguments = None
        return None

    def on_train_begin(self, run_context: RunContext) -> None:
        """Count steps from 0."""
        self._last_triggered_step = 0
        self._arguments, self._finished = run_context.original_args(), (0, 0)
        super().on_train_begin(run_context)

    def step_end(self, run_context: RunContext) -> None:
        """Write a file, where it is time."""
        arguments = run_context.original_args()
        self._arguments = arguments
        self._finished = (arguments.get("cur_epoch_num", 1), arguments.cur_step_num)
        if self._is_time(arguments.cur_step_num):
            self._save(arguments)

    def end(self, run_context: RunContext) -> None:
        """Write the last file, where the last step has none, and wait for what a thread writes."""
        arguments = run_context.original_args()
        some = self._config.save_checkpoint_steps or self._config.save_checkpoint_seconds
        if some and arguments.cur_step_num != self._last_triggered_step:
            self._save(arguments)
        finish_writing()

    def free_steps(self, run_context: RunContext) -> float:
        """Return the steps until the next file; one where a file is due by the clock."""
        if self._config.save_checkpoint_steps:
            done = run_context.original_args().get("cur_step_num", 0)
            return max(1, self._last_triggered_step + self._config.save_checkpoint_steps - done)
        return 1 if self._config.save_checkpoint_seconds else math.inf

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Write nothing in an evaluation."""

    def on_eval_end(self, run_context: RunContext) -> None:
        """Write nothing in an evaluation."""

    # ---- writing ----------------------------------------------------------------------------------------------
    def _is_time(self, step: int) -> bool:
        if self._config.save_checkpoint_steps:
            return bool(step >= self._last_triggered_step + self._config.save_checkpoint_steps)
        if not self._config.save_checkpoint_seconds:
            return False
        return bool(time.time() - self._last_time > self._config.save_checkpoint_seconds)

    def _save(self, arguments: CallbackArguments) -> None:
        epoch, step = arguments.get("cur_epoch_num", 1), arguments.cur_step_num
        name = f"{self._place(arguments)}.ckpt" if callable(self._given_prefix) else (
            f"{self._place(arguments)}-{epoch}_{_step_in_epoch(arguments, step)}.ckpt"
        )
        path = self._write(arguments, name, epoch, step)
        self._last_triggered_step, self._last_time = step, time.time()
        self._latest_ckpt_file_name = path
        self._kept.add(path, self._last_time)

    def _save_after_exception(self, arguments: CallbackArguments) -> None:
        epoch, step = self._finished
        prefix = self._place(arguments)
        if not callable(self._given_prefix):
            prefix = free_prefix(self._directory, self._given_prefix, after_exception=True)
        self._write(arguments, f"{prefix}-{epoch}_{_step_in_epoch(arguments, step)}_breakpoint.ckpt", epoch, step)
        finish_writing()

    def _place(self, arguments: CallbackArguments) -> str:
        """Return the prefix, after asking the user's functions for it and for the folder."""
        if callable(self._given_directory):
            self._directory = make_folder(_WHERE, self._given_directory(arguments))
        if callable(self._given_prefix):
            self._prefix = _checked_prefix(self._given_prefix(arguments))
        return self._prefix

    def _write(self, arguments: CallbackArguments, name: str, epoch: int, step: int) -> str:
        network = self._config.saved_network
        counted = {"epoch_num": epoch, "step_num": step}
        appended = {key: counted.get(key, value) for key, value in (self._config.append_dict or {}).items()}
        return write_checkpoint(
            arguments.train_network if network is None else network,
            os.path.join(self._directory, name),
            self._config.async_save,
            appended,
            place={"epoch": epoch, "step": step, "batch_num": int(arguments.get("batch_num", 0) or 0)},
        )


def _checked_prefix(prefix: Any) -> str:
    if not isinstance(prefix, str) or "/" in prefix:
        raise checks.fail_value(_WHERE, "prefix must be a str without /, or a function", prefix, 'prefix="lenet"')
    return prefix


def _step_in_epoch(arguments: CallbackArguments, step: int) -> int:
    return (step - 1) % (arguments.get("batch_num", 0) or max(step, 1)) + 1 if step else 0
