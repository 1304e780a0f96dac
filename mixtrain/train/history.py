"""`EpochHistory`: what `train` and `fit` return, a mapping from name to one value an epoch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class EpochHistory(Mapping[str, list[float]]):
    """Values by name, one an epoch: "loss", "loss_scale", "skipped_steps", "val_..."

    Attributes:
        epoch: The numbers of the epochs, from 1.

    Example:
        >>> history = EpochHistory()
        >>> history.add(1, {"loss": 0.5})
        >>> history["loss"]
        [0.5]
    """

    def __init__(self) -> None:
        self.epoch: list[int] = []
        self._values: dict[str, list[float]] = {}

    def add(self, epoch: int, values: Mapping[str, Any]) -> None:
        """Add one epoch's values."""
        self.epoch.append(epoch)
        for name, value in values.items():
            self._values.setdefault(name, []).append(value)

    @property
    def history(self) -> dict[str, list[float]]:
        """The values as a dict, under Keras's name for it."""
        return dict(self._values)

    def __getitem__(self, name: str) -> list[float]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"EpochHistory({self._values})"
