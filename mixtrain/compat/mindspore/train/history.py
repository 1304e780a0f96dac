"""`History`: records the last loss and the metrics of each epoch."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mixtrain import backend
from mixtrain.train.callback.callback import Callback
from mixtrain.train.run_context import RunContext


class History(Callback):
    """Records, for each epoch, the loss of the last step as "net_output" and the metrics of the evaluation by name.

    `Model.train` and `Model.fit` return another history, which has the mean loss of each epoch.

    Attributes:
        epoch: ``{"epoch": [1, 2, ...]}``, the numbers of the epochs of the last run; None before the first run.
        history: The values by name, over all runs.

    Example: ``history = History()``, then ``model.train(1, dataset, callbacks=[history])`` and ``history.history``.
    """

    __module__ = "mixtrain.train.callback.history"  # By which pickles name it.

    observes_only: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.history: dict[str, list[Any]] = {}
        self.epoch: dict[str, list[int]] | None = None

    def begin(self, run_context: RunContext) -> None:
        """Reset the epoch numbers."""
        self.epoch = {"epoch": []}

    def epoch_end(self, run_context: RunContext) -> None:
        """Record the values of the epoch."""
        arguments = run_context.original_args()
        if self.epoch is None:
            self.epoch = {"epoch": []}
        self.epoch["epoch"].append(arguments.get("cur_epoch_num", 1))
        outputs = arguments.net_outputs
        loss = outputs[0] if isinstance(outputs, (tuple, list)) else outputs
        values = {"net_output": float(np.mean(backend.to_numpy(loss))), **(arguments.get("metrics") or {})}
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)
