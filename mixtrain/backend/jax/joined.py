"""Sums over the replicas of a step whose batch statistics are joined: those of a `keras.distribution`, as in Keras."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Final

import jax

from mixtrain.typing import Tensor

_axis: Final[contextvars.ContextVar[str | None]] = contextvars.ContextVar("joined_axis", default=None)


@contextlib.contextmanager
def joining(axis: str | None) -> Iterator[None]:
    """Join statistics over an axis of the mesh while a replica is traced; None for those of each replica."""
    token = _axis.set(axis)
    try:
        yield
    finally:
        _axis.reset(token)


def joined_sum(value: Tensor | float) -> Tensor | None:
    axis = _axis.get()
    return None if axis is None else jax.lax.psum(value, axis)
