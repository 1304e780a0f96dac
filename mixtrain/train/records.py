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

    Example:
        >>> StepRecords([np.float32(2.0)]).loss.tolist()
        [2.0]
    """

    def __init__(self, loss: Any, overflow: Any = None, loss_scale: Any = None) -> None:
        self._loss, self._overflow, self._loss_scale = loss, overflow, loss_scale

    def __len__(self) -> int:
        return len(self._loss)

    @property
    def loss(self) -> np.ndarray:
        """The unscaled losses, float32 (n,)."""
        values = _array(self._loss)
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
        )


def _array(values: Any) -> np.ndarray:
    """Return one stacked tensor, an array, or a list of tensors as an array."""
    if isinstance(values, list):
        return np.stack([engine.to_numpy(value) for value in values])
    return values if isinstance(values, np.ndarray) else engine.to_numpy(values)
