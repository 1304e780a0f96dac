"""Random numbers that Keras lacks."""

from __future__ import annotations

import jax

from mixtrain.typing import Tensor


def poisson(seed: Tensor, rate: Tensor, shape: tuple[int, ...]) -> Tensor:
    return jax.random.poisson(seed, rate, shape).astype(jax.numpy.float32)
