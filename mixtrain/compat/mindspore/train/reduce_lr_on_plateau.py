"""`ReduceLROnPlateau`: reduces the learning rate when a monitored value has stopped improving."""

from __future__ import annotations

import numpy as np

from mixtrain import checks
from mixtrain.compat.mindspore.train.monitored import Mode, direction, monitored_value, rate_variable
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.rates import read_rate
from mixtrain.train.run_context import RunContext

_WHERE = "ReduceLROnPlateau"


class ReduceLROnPlateau(Callback):
    """Reduces the learning rate, mixtrain's or Keras's, once a monitored value has not improved for `patience` epochs.

    Args:
        monitor: "loss" (of the last step), or with `Model.fit` "eval_loss" or the name of a metric.
        factor: What the learning rate is multiplied by, between 0 and 1.
        patience: Epochs without improvement after which it is reduced.
        verbose: Whether to print when it is reduced.
        mode: "min" (lower is better), "max", or "auto": by the name; for unknown names higher is better.
        min_delta: What a change must exceed to count as an improvement.
        cooldown: Epochs after a reduction that are not counted.
        min_lr: Lower bound of the learning rate.

    Attributes:
        wait: Epochs since the last improvement or reduction.
        best: The best value so far.
        cooldown_counter: Remaining epochs that are not counted.

    Raises: TypeError if an argument has the wrong type. ValueError if one is out of range, the value is not a
        scalar, or the rate is a schedule.

    Example: ``ReduceLROnPlateau("eval_loss", factor=0.5, patience=3)``.
    """

    __module__ = "mixtrain.train.callback.reduce_lr_on_plateau"  # By which pickles name it.

    def __init__(
        self, monitor: str = "eval_loss", factor: float = 0.1, patience: int = 10, verbose: bool = False,
        mode: Mode = "auto", min_delta: float = 1e-4, cooldown: int = 0, min_lr: float = 0,
    ) -> None:
        super().__init__()
        self._direction = direction(_WHERE, monitor, mode, min_delta)
        self.monitor, self.mode, self.min_delta = monitor, mode, self._direction.min_delta
        self.factor = checks.number(_WHERE, "factor", factor, above=0.0, at_most=1.0, example=0.1)
        if self.factor == 1.0:
            raise checks.fail_value(_WHERE, "factor must be less than 1", factor, "factor=0.1")
        self.patience = checks.integer(_WHERE, "patience", patience, at_least=0, example=10)
        self.verbose = checks.boolean(_WHERE, "verbose", verbose)
        self.cooldown = checks.integer(_WHERE, "cooldown", cooldown, at_least=0)
        self.min_lr = checks.number(_WHERE, "min_lr", min_lr, example=0.0)
        self._reset()

    def _reset(self) -> None:
        self.wait = 0
        self.cooldown_counter = 0
        self.best = self._direction.worst

    def on_train_begin(self, run_context: RunContext) -> None:
        """Reset the state of an earlier run."""
        self._reset()

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Compare the value with the best one, and reduce the rate if it is due."""
        arguments = run_context.original_args()
        variable = rate_variable(_WHERE, arguments)
        value = monitored_value(_WHERE, self.monitor, arguments)
        if value is None:
            return
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.wait = 0
        if self._direction.better(value, self.best):
            self.best, self.wait = value, 0
            return
        if self.cooldown_counter > 0:
            return
        self.wait += 1
        if self.wait < self.patience:
            return
        self.cooldown_counter, self.wait = self.cooldown, 0
        rate = np.float32(read_rate(variable))
        if rate > np.float32(self.min_lr):
            reduced = max(rate * np.float32(self.factor), np.float32(self.min_lr))
            variable.assign(reduced)
            if self.verbose:
                epoch = arguments.get("cur_epoch_num", 1)
                print(f"Epoch {epoch:05d}: ReduceLROnPlateau reducing learning rate to {reduced!s}.", flush=True)
