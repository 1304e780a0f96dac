"""`OnRequestExit`: ends a run on a signal or on a request in a file, after its step, and writes a checkpoint."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any, Final

from mixtrain import checks, serialization
from mixtrain.serialization.files import finish_writing
from mixtrain.serialization.into_net import load_param_into_net
from mixtrain.serialization.read import read_checkpoint
from mixtrain.serialization.run_state import trains
from mixtrain.serialization.save import write_checkpoint
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.checkpoint_files import make_folder, refuse_saving_alone, run_position
from mixtrain.train.feed import Feed, dicts_of
from mixtrain.train.resume import resume_run
from mixtrain.train.run_context import CallbackArguments, RunContext

_WHERE: Final = "OnRequestExit"
_KEY: Final = "GracefulExit"
_UNCATCHABLE: Final = tuple(getattr(signal, name) for name in ("SIGKILL", "SIGSTOP") if hasattr(signal, name))


class OnRequestExit(Callback):
    """Ends training or an evaluation after the step, or call, during which the process is asked to exit.

    Files are written to ``rank_0`` in the folder: ``Net_train.ckpt``, with all that a resumed run needs, or
    ``Net_eval.ckpt``. A run that finds the first file says so and resumes from it, also in the middle of an epoch, and
    removes it at its end; an evaluation by `Model.eval` that finds either file evaluates its parameters. During the run
    this callback handles the signal; afterwards the previous handler is restored, and the process exits with the status
    of its own script. (MindSpore handles the signal before the last step only with ``MS_ENABLE_GRACEFUL_EXIT=1``, and
    starts again with the first epoch.)

    Args:
        save_ckpt: Whether a checkpoint is written, and read.
        save_mindir: Whether the network's inference graph is written, as the SavedModel ``Net_train`` or ``Net_eval``
            (a MINDIR is a MindSpore graph). Not written for a network that is its own train step.
        file_name: First part of the files' names.
        directory: The folder, created if it is missing; None for the current folder.
        config_file: A JSON file that is read after every step; ``{"GracefulExit": 1}`` also requests to exit.
        sig: The signal.

    Raises: TypeError if an argument has the wrong type. ValueError if `file_name` is not a file name, `directory` is
        empty, or `sig` cannot be handled. RuntimeError if a run is not in the main thread, the only one that can
        handle signals.

    Attributes:
        exit: Whether the last run was asked to exit.

    Example: ``OnRequestExit(file_name="lenet", directory="./checkpoints")``.
    """

    __module__ = "mixtrain.train.callback.on_request_exit"  # By which pickles name it.

    def __init__(
        self, save_ckpt: bool = True, save_mindir: bool = True, file_name: str = "Net",
        directory: str | os.PathLike[str] | None = "./", config_file: str | os.PathLike[str] | None = None,
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
        self._previous_handler: Any = None
        self._installed = False

    def __exit__(self, *error: object) -> Any:
        if self._installed:
            # None means a handler that was not installed from Python; it cannot be restored.
            signal.signal(self.sig, signal.SIG_DFL if self._previous_handler is None else self._previous_handler)
            self._installed = False
        return None

    def on_train_begin(self, run_context: RunContext) -> None:
        """Install the signal handler, and resume the run whose file is in the folder."""
        arguments = run_context.original_args()
        if self.save_ckpt:  # A signal reaches one process at a time.
            refuse_saving_alone(_WHERE, "save_ckpt=True", arguments)
        self._install_handler()
        resumed = arguments.get("epochs_done") is not None
        if self.save_ckpt and not resumed and os.path.isfile(f"{self.train_name}.ckpt"):
            resume_run(_WHERE, read_checkpoint(f"{self.train_name}.ckpt"), arguments, verbose=True)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Save and end the run, if requested."""
        if self._exit_requested():
            self._save(run_context.original_args())
            run_context.request_stop()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Save and end the run, if requested since the last step."""
        self.on_train_step_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Save, if the request came after the last epoch; else remove the file of the run that has now ended."""
        if self.exit:
            self._save(run_context.original_args())
        elif self.save_ckpt and os.path.isfile(f"{self.train_name}.ckpt"):
            os.remove(f"{self.train_name}.ckpt")

    def on_eval_begin(self, run_context: RunContext) -> None:
        """Install the signal handler and load the parameters of an interrupted run; not between epochs."""
        arguments = run_context.original_args()
        if "train_network" in arguments:
            return
        self._install_handler()
        for name in (self.eval_name, self.train_name) if self.save_ckpt else ():
            if os.path.isfile(f"{name}.ckpt"):
                load_param_into_net(arguments.network, read_checkpoint(f"{name}.ckpt"))
                return

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """End the evaluation, if requested."""
        if self._exit_requested():
            run_context.request_stop()

    def on_eval_end(self, run_context: RunContext) -> None:
        """Save, if the evaluation was ended; a request between epochs also ends training, which saves."""
        arguments = run_context.original_args()
        if self.exit and "train_network" not in arguments:
            self._save(arguments)

    def _install_handler(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(
                f"{_WHERE}: expected to run in the main thread, the only one that handles signals; got "
                f"{threading.current_thread().name}. Write model.train in the main thread."
            )
        self.exit = self._saved = False
        self._previous_handler = signal.signal(self.sig, self._handle_signal)
        self._installed = True

    def _handle_signal(self, *_: Any) -> None:
        self.exit = True

    def _exit_requested(self) -> bool:
        """Whether the signal was received, or the file requests to exit."""
        self.exit = self.exit or (self.config_file is not None and _requests_exit(self.config_file))
        return self.exit

    def _save(self, arguments: CallbackArguments) -> None:
        """Write the files, once per run."""
        if self._saved:
            return
        self._saved = True
        training = arguments.mode == "train"
        name, dataset = (
            (self.train_name, arguments.train_dataset) if training else (self.eval_name, arguments.valid_dataset)
        )
        if self.save_ckpt:
            position = run_position(arguments)
            counts = {"epoch_num": position["epoch"], "step_num": position["step"], "batch_num": position["batch_num"]}
            network = arguments.train_network if training else arguments.network
            write_checkpoint(network, f"{name}.ckpt", False, counts if training else None, position=position)
            finish_writing()
        if self.save_mindir and not trains(arguments.network):
            batch = Feed(dataset, _WHERE, dicts=dicts_of(arguments.network)).first()
            inputs = batch if arguments.get("loss_fn") is None else batch[:1]
            serialization.export(arguments.network, *inputs, file_name=name, file_format="SAVED_MODEL")


def _requests_exit(path: str | os.PathLike[str]) -> bool:
    """Whether a file requests to exit; one that is missing or half written does not."""
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get(_KEY) == 1


def _checked_signal(sig: Any) -> int:
    number = checks.integer(_WHERE, "sig", sig, at_least=1, example=int(signal.SIGTERM))
    if number in _UNCATCHABLE or number not in signal.valid_signals():
        raise checks.fail_value(_WHERE, "sig must be a signal that a process can handle", sig, "sig=signal.SIGTERM")
    return number
