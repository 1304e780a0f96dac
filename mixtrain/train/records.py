"""Every step's results of one call: loss, overflow, loss scale; read from the device only when somebody looks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mixtrain import engine


class StepRecords:
    """The results of the steps of one call, oldest first.

    Args:
        loss: A tensor of shape (n, ...) or a list of n tensors; a loss that is no scalar counts by its mean.
        overflow: Likewise, bool; None without loss scaling.
        loss_scale: Likewise, float32; None without loss scaling.
        rows: Likewise, int: rows of each step's batch; None where all have as many.

    Example:
        >>> StepRecords([np.float32(2.0)]).loss.tolist()
        [2.0]
    """

    def __init__(self, loss: Any, overflow: Any = None, loss_scale: Any = None, *, rows: Any = None) -> None:
        self._loss, self._overflow, self._loss_scale, self._rows = loss, overflow, loss_scale, rows

    def __len__(self) -> int:
        return len(self._loss)

    def known(self) -> StepRecords:
        """Return these records with their values read from the device, which is done once."""
        if not isinstance(self._loss, np.ndarray):
            loss, overflow, loss_scale = self.loss, self.overflow, self.loss_scale
            scaled = self.scaled
            self._loss = loss
            self._overflow, self._loss_scale = (overflow, loss_scale) if scaled else (None, None)
        return self

    def each(self) -> list[StepRecords]:
        """Return the records of each step; what one of them reads from the device, all have."""
        return [_OneOfMany(self, index) for index in range(len(self))]

    @property
    def loss(self) -> np.ndarray:
        """The unscaled losses, float32 (n,)."""
        values = _array(self._loss)
        if values.ndim == 1:
            return values.astype(np.float32, copy=False)
        return values.reshape(len(values), -1).mean(axis=1, dtype=np.float32)

    @property
    def overflow(self) -> np.ndarray:
        """Whether each step overflowed, bool (n,); all False without loss scaling."""
        if self._overflow is None:
            return np.zeros(len(self), bool)
        return _array(self._overflow).reshape(-1).astype(bool)

    @property
    def loss_scale(self) -> np.ndarray:
        """The scale that each step used, float32 (n,); all 1 without loss scaling."""
        if self._loss_scale is None:
            return np.ones(len(self), np.float32)
        return _array(self._loss_scale).reshape(-1).astype(np.float32)

    @property
    def rows(self) -> np.ndarray:
        """By how many rows each step counts, int (n,); all 1 where all have as many."""
        return np.ones(len(self), int) if self._rows is None else _array(self._rows).reshape(-1).astype(int)

    @property
    def scaled(self) -> bool:
        """Whether the steps ran with loss scaling that can skip."""
        return self._overflow is not None

    @staticmethod
    def joined(parts: Iterable[StepRecords]) -> StepRecords:
        """Return the records of several calls as one."""
        parts = [part for part in parts if len(part)]
        if not parts:
            return StepRecords(np.zeros(0, np.float32))
        scaled = parts[0].scaled
        return StepRecords(
            np.concatenate([part.loss for part in parts]),
            np.concatenate([part.overflow for part in parts]) if scaled else None,
            np.concatenate([part.loss_scale for part in parts]) if scaled else None,
            rows=np.concatenate([part.rows for part in parts]),
        )


class _OneOfMany(StepRecords):
    """One step of the records of a call."""

    def __init__(self, whole: StepRecords, index: int) -> None:
        self._whole = whole
        self._place = slice(index, index + 1)

    def known(self) -> StepRecords:
        self._whole.known()
        return self

    def __len__(self) -> int:
        return 1

    @property
    def loss(self) -> np.ndarray:
        return self._whole.known().loss[self._place]

    @property
    def overflow(self) -> np.ndarray:
        return self._whole.known().overflow[self._place]

    @property
    def loss_scale(self) -> np.ndarray:
        return self._whole.known().loss_scale[self._place]

    @property
    def rows(self) -> np.ndarray:
        return self._whole.rows[self._place]

    @property
    def scaled(self) -> bool:
        return self._whole.scaled


def _array(values: Any) -> np.ndarray:
    """Return one stacked tensor, an array, or a list of tensors as an array."""
    if isinstance(values, list):
        return np.stack([engine.to_numpy(value) for value in values])
    return values if isinstance(values, np.ndarray) else engine.to_numpy(values)
