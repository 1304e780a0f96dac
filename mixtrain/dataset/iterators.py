"""The iterators that a dataset gives out: epoch after epoch, as tensors or NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from mixtrain import backend
from mixtrain.dataset.pass_seed import PassSeed
from mixtrain.dataset.stage import Row, Stage


class DatasetIterator:
    """Rows of one run: each ``for`` loop over it reads one epoch.

    Args:
        stage: Makes the rows.
        build: From a row to what the iterator gives.
        num_epochs: How many epochs it has, -1 without end.
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
        """End the iterator: it gives no more rows."""
        self._rows = None
        self._num_epochs = self._epoch

    def release(self) -> None:
        """End the iterator, as `stop`."""
        self.stop()


def to_output(value: Any, output_numpy: bool) -> Any:
    """Return what iterators give of a column: a tensor, or the array itself where asked or where it has strings.

    Of a column of dicts: a dict of them.
    """
    if isinstance(value, dict):
        return {key: to_output(item, output_numpy) for key, item in value.items()}
    if isinstance(value, list):
        return [to_output(item, output_numpy) for item in value]
    if value.dtype.hasobject:
        return to_output(value.item(), output_numpy)
    return value if output_numpy or value.dtype.kind in "US" else backend.public_tensor(backend.to_tensor(value))
