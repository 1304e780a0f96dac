"""`EarlyStopping`: ends training when a watched value has stopped getting better."""

from __future__ import annotations

from typing import Any

from mixtrain import backend, checks
from mixtrain.step.train_cell import TrainOneStepCell
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.monitored import Mode, direction, monitored_value
from mixtrain.train.run_context import RunContext

_WHERE = "EarlyStopping"


class EarlyStopping(Callback):
    """Ends training once a value has not got better for `patience` epochs.

    Args:
        monitor: "loss" (the last step's), or with `Model.fit` "eval_loss" or the name of a metric.
        min_delta: A change must exceed it to count as better.
        patience: Epochs without a better value after which training ends.
        verbose: Whether to print when it happens.
        mode: "min" (lower is better), "max", or "auto": by the name; names that are not known are better when higher.
        baseline: A value must also be better than this for the epochs to be counted anew.
        restore_best_weights: Whether the train network, its optimizer included, gets back the values of its best epoch
            when training is ended early.

    Attributes:
        wait: Epochs since the last better value.
        best: The best value so far.
        stopped_epoch: Number of the epoch after which training ended; 0 before.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range; the value is not a scalar.

    Example:
        >>> stopping = EarlyStopping("loss", patience=1)
        >>> for loss in (0.5, 0.25, 0.25):
        ...     context = RunContext({"cur_epoch_num": 1, "net_outputs": loss})
        ...     stopping.on_train_epoch_end(context)
        ...     print(context.get_stop_requested())
        False
        False
        True

    Source: MindSpore, `mindspore.train.EarlyStopping`.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: Mode = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__()
        self._direction = direction(_WHERE, monitor, mode, min_delta)
        self.monitor, self.mode, self.min_delta = monitor, mode, self._direction.min_delta
        self.patience = checks.integer(_WHERE, "patience", patience, at_least=0, example=3)
        self.verbose = checks.boolean(_WHERE, "verbose", verbose)
        self.baseline = None if baseline is None else checks.number(_WHERE, "baseline", baseline, example=0.5)
        self.restore_best_weights = checks.boolean(_WHERE, "restore_best_weights", restore_best_weights)
        self._forget()

    def _forget(self) -> None:
        self.wait = 0
        self.stopped_epoch = 0
        self.best = self._direction.worst
        self._best_values: list[tuple[Any, Any]] = []

    def on_train_begin(self, run_context: RunContext) -> None:
        """Forget an earlier run."""
        self._forget()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Look at the value, and ask for the end where it is time."""
        arguments = run_context.original_args()
        value = monitored_value(_WHERE, self.monitor, arguments)
        if value is None:
            return
        keeps = self.restore_best_weights
        if keeps and not self._best_values:
            self._best_values = _values(arguments.train_network)
        self.wait += 1
        if self._direction.better(value, self.best):
            self.best = value
            self._best_values = _values(arguments.train_network) if keeps else []
            if self.baseline is None or self._direction.better(value, self.baseline):
                self.wait = 0
        if self.wait >= self.patience:
            self.stopped_epoch = arguments.cur_epoch_num
            run_context.request_stop()
            self._restore()

    def on_train_end(self, run_context: RunContext) -> None:
        """Tell which epoch was the last, where training was ended early; let the kept values go."""
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping", flush=True)
        self._best_values = []

    def _restore(self) -> None:
        if self._best_values and self.verbose:
            print("Restoring the values of the best epoch.", flush=True)
        for variable, value in self._best_values:
            variable.assign(value)


def _values(train_network: Any) -> list[tuple[Any, Any]]:
    """Return every variable of a train network, its optimizer's included, with a copy of its value."""
    variables = list(train_network.get_parameters())
    if isinstance(train_network, TrainOneStepCell):
        variables += train_network.driver.state_variables()
    distinct = {id(variable): variable for variable in variables}
    return [(variable, backend.snapshot(variable)) for variable in distinct.values()]
