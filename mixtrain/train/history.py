"""`EpochHistory`: the result of `train` and `fit`, values per epoch by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mixtrain.typing import Network


class EpochHistory(Mapping[str, list[float]]):
    """Values per epoch by name: "loss", Keras's metrics, "loss_scale", "skipped_steps", "val_..."

    Values that a Keras callback adds to the logs of an epoch ("learning_rate") are included. It has the attributes of
    `keras.callbacks.History`.

    Args:
        model: The trained network.
        params: "verbose", "epochs" and "steps" of the run.

    Attributes:
        epoch: The numbers of the epochs: from 1, as in MindSpore; of ``fit(x, y)`` from 0, as in Keras.
        model, params: As passed.

    Example: ``model.train(2, dataset)["loss"]``.
    """

    def __init__(self, model: Network | None = None, params: Mapping[str, Any] | None = None) -> None:
        self.model = model
        self.params = dict(params or {})
        self.epoch: list[int] = []
        self._values: dict[str, list[float]] = {}

    def add(self, epoch: int, values: Mapping[str, Any]) -> None:
        """Add values of an epoch; may be called several times for the same epoch."""
        if epoch not in self.epoch[-1:]:
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
