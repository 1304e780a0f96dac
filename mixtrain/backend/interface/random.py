"""Random numbers that Keras lacks."""

from __future__ import annotations

from mixtrain.typing import Tensor


def poisson(seed: Tensor, rate: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return float32 numbers of Poisson distributions whose means, `rate`, are the last axes of `shape`."""
