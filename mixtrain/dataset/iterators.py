"""The iterator of a dataset: one epoch after another, as tensors or NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mixtrain import backend
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage


class DatasetIterator:
    """The rows of one run, each as `build` returns it; each ``for`` loop reads one epoch of at most `num_epochs`, -1:
    no limit.
    """

    def __init__(self, stage: Stage, build: Callable[[Row], Any], num_epochs: int) -> None:
        self._stage = stage
        self._build = build
        self._num_epochs = num_epochs
        self._pass_seed = PassSeed.start()
        self._epoch = 0
        self._rows: Iterator[Row] | None = None

    def __iter__(self) -> DatasetIterator:
        return self

    def __next__(self) -> Any:
        if self._rows is None:
            if self._epoch == self._num_epochs:
                raise RuntimeError(
                    f"dataset iterator: expected at most {self._num_epochs} epochs, its num_epochs; got another. "
                    f"Write num_epochs={self._num_epochs + 1}, or -1 for no limit."
                )
            self._rows = self._stage.rows(self._pass_seed.at_epoch(self._epoch))
            self._epoch += 1
        row = next(self._rows, None)
        if row is None:
            self._rows = None
            raise StopIteration
        return self._build(row)

    def stop(self) -> None:
        """Stop the iterator: it yields no more rows."""
        self._rows = None
        self._num_epochs = self._epoch

    def release(self) -> None:
        """Stop the iterator, like `stop`."""
        self.stop()


def to_output(value: Any, output_numpy: bool) -> Any:
    """Return the value of a column as a tensor, or as the array itself if requested or if it contains strings.

    Dicts and lists are converted value by value.
    """
    if isinstance(value, dict):
        return {key: to_output(item, output_numpy) for key, item in value.items()}
    if isinstance(value, list):
        return [to_output(item, output_numpy) for item in value]
    if value.dtype.hasobject:
        return to_output(value.item(), output_numpy)
    return value if output_numpy or value.dtype.kind in "US" else backend.public_tensor(backend.to_tensor(value))
