"""`OnRequestExit`: a run that is asked to end, by a signal or in a file, ends after its step and writes where it is."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any, Final

from mixtrain import checks
from mixtrain.serialization.background import finish_writing
from mixtrain.serialization.export import export
from mixtrain.serialization.read import load_checkpoint
from mixtrain.serialization.run_state import trains
from mixtrain.serialization.save import write_checkpoint
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.checkpoint_files import make_folder
from mixtrain.train.feed import Feed
from mixtrain.train.run_context import CallbackArguments, RunContext

_WHERE: Final = "OnRequestExit"
_KEY: Final = "GracefulExit"
_UNCATCHABLE: Final = tuple(getattr(signal, name) for name in ("SIGKILL", "SIGSTOP") if hasattr(signal, name))


class OnRequestExit(Callback):
    """Ends training or an evaluation after the step, or call, during which the process is asked to exit.

    The files go to ``rank_0`` in the folder: ``Net_train.ckpt``, with all that a resumed run needs, or
    ``Net_eval.ckpt``. A run that finds the first goes on from it, in the middle of an epoch too; an evaluation by
    `Model.eval` that finds either evaluates its parameters. While it runs the signal is this callback's, and afterwards
    whose it was before: the process exits with the status of its own script. (MindSpore heeds the signal before the
    last step only with ``MS_ENABLE_GRACEFUL_EXIT=1``, and begins again with the first epoch.)

    Args:
        save_ckpt: Whether a checkpoint is written, and read.
        save_mindir: Whether the network's inference graph is written, as the SavedModel ``Net_train`` or ``Net_eval``:
            a MINDIR is a graph of MindSpore's own. Not of a network that is its own train step.
        file_name: First part of the files' names.
        directory: The folder, made where it is missing; None for the present one.
        config_file: A JSON file that is looked into after every step: ``{"GracefulExit": 1}`` asks to exit too.
        sig: The signal.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: `file_name` is no name, `directory` is empty, or there is no such signal to take.
        RuntimeError: On running: it is not the main thread, which alone takes signals.

    Attributes:
        exit: Whether the last run was asked to exit.

    Example:
        >>> import tempfile
        >>> OnRequestExit(save_mindir=False, file_name="lenet", directory=tempfile.mkdtemp()).exit
        False

    Source: MindSpore, `mindspore.train.OnRequestExit`.
    """

    def __init__(
        self,
        save_ckpt: bool = True,
        save_mindir: bool = True,
        file_name: str = "Net",
        directory: str | os.PathLike[str] | None = "./",
        config_file: str | os.PathLike[str] | None = None,
        sig: int = signal.SIGTERM,
    ) -> None:
        super().__init__()
        self.save_ckpt = checks.boolean(_WHERE, "save_ckpt", save_ckpt)
        self.save_mindir = checks.boolean(_WHERE, "save_mindir", save_mindir)
        checks.instance(_WHERE, "file_name", file_name, str, 'file_name="lenet"')
        if not file_name or os.path.basename(file_name) != file_name:
            raise checks.fail_value(_WHERE, "file_name must be a name without folders", file_name, 'file_name="lenet"')
        self.sig = _checked_signal(sig)
        if config_file is not None:
            checks.instance(_WHERE, "config_file", config_file, (str, os.PathLike), 'config_file="exit.json"')
        self.config_file = config_file
        self.train_name = self.eval_name = ""
        if self.save_ckpt or self.save_mindir:
            folder = make_folder(_WHERE, os.path.join(make_folder(_WHERE, directory), "rank_0"))
            self.train_name = os.path.join(folder, f"{file_name}_train")
            self.eval_name = os.path.join(folder, f"{file_name}_eval")
        self.exit = False
        self._saved = False
        self._before: Any = None
        self._listens = False

    def __exit__(self, *error: Any) -> Any:
        if self._listens:
            # None: it was taken by code that is not Python's, which cannot be put back.
            signal.signal(self.sig, signal.SIG_DFL if self._before is None else self._before)
            self._listens = False
        return None

    # ---- training ---------------------------------------------------------------------------------------------
    def on_train_begin(self, run_context: RunContext) -> None:
        """Listen to the signal, and take up the run whose file is there."""
        self._listen()
        arguments = run_context.original_args()
        resumed = arguments.get("epochs_done") is not None
        if self.save_ckpt and not resumed and os.path.isfile(f"{self.train_name}.ckpt"):
            checkpoint = load_checkpoint(f"{self.train_name}.ckpt", arguments.train_network)
            arguments.epochs_done, arguments.batches_done = checkpoint.initial_epoch, checkpoint.initial_step

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Save and end the run, where that was asked for."""
        if self._asked():
            self._save(run_context.original_args())
            run_context.request_stop()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Save and end the run, where that was asked for since the last step."""
        self.on_train_step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Save, where the request came after the last epoch."""
        if self.exit:
            self._save(run_context.original_args())

    # ---- evaluation -------------------------------------------------------------------------------------------
    def on_eval_begin(self, run_context: RunContext) -> None:
        """Listen to the signal, and read the parameters of the run whose file is there; not between epochs."""
        arguments = run_context.original_args()
        if "train_network" in arguments:
            return
        self._listen()
        for name in (self.eval_name, self.train_name) if self.save_ckpt else ():
            if os.path.isfile(f"{name}.ckpt"):
                load_checkpoint(f"{name}.ckpt", arguments.network)
                return

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """End the evaluation, where that was asked for."""
        if self._asked():
            run_context.request_stop()

    def on_eval_end(self, run_context: RunContext) -> None:
        """Save, where the evaluation was ended; what ends one between epochs ends the training that has it."""
        arguments = run_context.original_args()
        if self.exit and "train_network" not in arguments:
            self._save(arguments)

    # ---- the request --------------------------------------------------------------------------------------------
    def _listen(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(
                f"{_WHERE}: expected to run in the main thread, which alone takes signals; got "
                f"{threading.current_thread().name}. Write model.train in the main thread."
            )
        self.exit = self._saved = False
        self._before = signal.signal(self.sig, self._note)
        self._listens = True

    def _note(self, *_: Any) -> None:
        self.exit = True

    def _asked(self) -> bool:
        """Whether the signal has come, or the file asks."""
        self.exit = self.exit or (self.config_file is not None and _asks(self.config_file))
        return self.exit

    # ---- what is written --------------------------------------------------------------------------------------
    def _save(self, arguments: CallbackArguments) -> None:
        """Write the files, once in a run."""
        if self._saved:
            return
        self._saved = True
        training = arguments.mode == "train"
        name, dataset = (
            (self.train_name, arguments.train_dataset) if training else (self.eval_name, arguments.valid_dataset)
        )
        if self.save_ckpt:
            epoch, step = arguments.get("cur_epoch_num", 0), arguments.cur_step_num
            place = {"epoch": epoch, "step": step, "batch_num": int(arguments.get("batch_num", 0) or 0)}
            counted = {"epoch_num": epoch, "step_num": step, "batch_num": place["batch_num"]}
            saved = arguments.train_network if training else arguments.network
            write_checkpoint(saved, f"{name}.ckpt", False, counted if training else None, place=place)
            finish_writing()
        if self.save_mindir and not trains(arguments.network):
            batch = Feed(dataset, _WHERE).first()
            inputs = batch if arguments.get("loss_fn") is None else batch[:1]
            export(arguments.network, *inputs, file_name=name, file_format="SAVED_MODEL")


def _asks(path: str | os.PathLike[str]) -> bool:
    """Whether a file asks to exit; one that is missing, or only half written, does not."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get(_KEY) == 1


def _checked_signal(sig: Any) -> int:
    number = checks.integer(_WHERE, "sig", sig, at_least=1, example=int(signal.SIGTERM))
    if number in _UNCATCHABLE or number not in signal.valid_signals():
        raise checks.fail_value(_WHERE, "sig must be a signal that a process can take", sig, "sig=signal.SIGTERM")
    return number
