"""`EarlyStopping`: stops training when a monitored value has stopped improving."""

from __future__ import annotations

from mixtrain import backend, checks
from mixtrain.compat.mindspore.train.monitored import Mode, direction, monitored_value
from mixtrain.train.callback.callback import Callback
from mixtrain.train.run_context import RunContext
from mixtrain.typing import Network, Tensor, Variable

_WHERE = "EarlyStopping"


class EarlyStopping(Callback):
    """Stops training once a monitored value has not improved for `patience` epochs.

    Args:
        monitor: "loss" (of the last step), or with `Model.fit` "eval_loss" or the name of a metric.
        min_delta: What a change must exceed to count as an improvement.
        patience: Epochs without improvement after which training stops.
        verbose: Whether to print when training is stopped.
        mode: "min" (lower is better), "max", or "auto": by the name; for unknown names higher is better.
        baseline: What a value must also improve on to reset the count of epochs.
        restore_best_weights: Whether the train network, including its optimizer, is restored to its best epoch when
            training is stopped early.

    Attributes:
        wait: Epochs since the last improvement.
        best: The best value so far.
        stopped_epoch: Number of the epoch after which training was stopped; 0 if it was not.

    Raises: TypeError if an argument has the wrong type. ValueError if one is out of range, or the value is no scalar.

    Example: ``EarlyStopping("eval_loss", patience=2)``.
    """

    __module__ = "mixtrain.train.callback.early_stopping"  # By which pickles name it.

    def __init__(
        self, monitor: str = "eval_loss", min_delta: float = 0, patience: int = 0, verbose: bool = False,
        mode: Mode = "auto", baseline: float | None = None, restore_best_weights: bool = False,
    ) -> None:
        super().__init__()
        self._direction = direction(_WHERE, monitor, mode, min_delta)
        self.monitor, self.mode, self.min_delta = monitor, mode, self._direction.min_delta
        self.patience = checks.integer(_WHERE, "patience", patience, at_least=0, example=3)
        self.verbose = checks.boolean(_WHERE, "verbose", verbose)
        self.baseline = None if baseline is None else checks.number(_WHERE, "baseline", baseline, example=0.5)
        self.restore_best_weights = checks.boolean(_WHERE, "restore_best_weights", restore_best_weights)
        self._reset()

    def _reset(self) -> None:
        self.wait = 0
        self.stopped_epoch = 0
        self.best = self._direction.worst
        self._best_values: list[tuple[Variable, Tensor]] = []

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the state of an earlier run."""
        self._reset()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Compare the value with the best one, and request a stop if it is due."""
        arguments = run_context.original_args()
        value = monitored_value(_WHERE, self.monitor, arguments)
        if value is None:
            return
        # Keep the values of the first epoch, in case no epoch is ever an improvement.
        if self.restore_best_weights and not self._best_values:
            self._best_values = _snapshot(arguments.train_network)
        self.wait += 1
        if self._direction.better(value, self.best):
            self.best = value
            self._best_values = _snapshot(arguments.train_network) if self.restore_best_weights else []
            if self.baseline is None or self._direction.better(value, self.baseline):
                self.wait = 0
        if self.wait >= self.patience:
            self.stopped_epoch = arguments.cur_epoch_num
            run_context.request_stop()
            if self._best_values and self.verbose:
                print("Restoring the values of the best epoch.", flush=True)
            for variable, best_value in self._best_values:
                variable.assign(best_value)

    def on_train_end(self, run_context: RunContext) -> None:
        """Print the last epoch if training was stopped early; release the values of the best epoch."""
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch:05d}: early stopping", flush=True)
        self._best_values = []


def _snapshot(train_network: Network) -> list[tuple[Variable, Tensor]]:
    """Return every variable of a train network and its optimizer with a copy of its value."""
    variables = list(train_network.get_parameters())
    driver = getattr(train_network, "driver", None)
    if driver is not None:
        variables += driver.state_variables()
    distinct = {id(variable): variable for variable in variables}
    return [(variable, backend.snapshot(variable)) for variable in distinct.values()]
