"""`Training`: the checked arguments of `Model.train` or `Model.fit`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from mixtrain import checks
from mixtrain.train.callback.callback import CallbacksLike
from mixtrain.train.feed import DictBatches, Feed
from mixtrain.train.keras_data import is_dataset
from mixtrain.train.progress import Verbose
from mixtrain.typing import DatasetLike


@dataclasses.dataclass(frozen=True)
class Training:
    """The arguments of `Model.train` or `Model.fit`.

    Attributes:
        where: "Model.train" or "Model.fit", for errors.
        dicts: What a batch that is a dict holds.
        in_keras_style: Whether the call has Keras's arguments: its history counts epochs from 0.
        joint: As in `Feed`.

    Raises: TypeError if a number or flag has the wrong type. ValueError if one is out of range.
    """

    where: str
    epoch: int
    dataset: DatasetLike
    callbacks: CallbacksLike | None
    sink: bool
    sink_size: int
    initial_epoch: int
    verbose: Verbose
    resume: str | os.PathLike[str] | None
    dicts: DictBatches
    valid_dataset: DatasetLike | None = None
    valid_frequency: int | Sequence[int] = 1
    in_keras_style: bool = False
    joint: Any = None

    def __post_init__(self) -> None:
        if hasattr(self.epoch, "shape") or is_dataset(self.epoch) or isinstance(self.epoch, (list, tuple, dict)):
            raise checks.fail_type(
                self.where, "the first argument must be the number of epochs, and data the second", self.epoch,
                "model.train(epochs, batches), or model.fit(x, y, epochs=...) for arrays",
            )
        epochs, frequency = ("epochs", "validation_freq") if self.in_keras_style else ("epoch", "valid_frequency")
        checks.integer(self.where, epochs, self.epoch, at_least=1)
        checks.integer(self.where, "initial_epoch", self.initial_epoch, at_least=0)
        if self.initial_epoch >= self.epoch:
            raise checks.fail_value(
                self.where, f"initial_epoch must be less than {epochs}={self.epoch}", self.initial_epoch,
                "initial_epoch=0",
            )
        checks.boolean(self.where, "dataset_sink_mode", self.sink)
        if self.sink_size != -1:
            checks.integer(self.where, "sink_size", self.sink_size, at_least=1)
        if self.verbose not in ("auto", 0, 1, 2):
            raise checks.fail_value(
                self.where, 'verbose must be "auto", 0, 1 or 2', self.verbose, 'verbose="auto"'
            )
        if not self._lists_epochs():
            checks.integer(self.where, frequency, self.valid_frequency, at_least=1)

    def _lists_epochs(self) -> bool:
        """Whether `valid_frequency` is a list of epochs."""
        epochs = self.valid_frequency
        return isinstance(epochs, (list, tuple)) and all(isinstance(epoch, int) for epoch in epochs)

    def evaluates_after(self, epoch: int) -> bool:
        """Whether an evaluation is due after an epoch, counted from 1."""
        if self._lists_epochs():
            return epoch in self.valid_frequency  # type: ignore[operator]
        return epoch % self.valid_frequency == 0  # type: ignore[operator]

    def _position_after(self, epochs: int) -> tuple[int, int]:
        """Return the number of complete passes over the dataset in some epochs, and of batches of one more."""
        if not (epochs and self.sink and self.sink_size > 0):
            return epochs, 0
        counted = getattr(self.dataset, "get_dataset_size", None)
        size = Feed(self.dataset, self.where).size if counted is None else counted()
        return divmod(epochs * self.sink_size, size) if size else (0, 0)

    def feed_after(self, epochs: int) -> tuple[Feed, int]:
        """Return the dataset as read from after some epochs, and how many batches of its first pass they took.

        Sink feed skips those batches.
        """
        passes, batches = self._position_after(epochs)
        return Feed(self.dataset, self.where, passes, dicts=self.dicts, joint=self.joint), batches
