"""Errors of compiled calls, in one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

import jax

# JAX raises Python's own errors for values, shapes or dtypes that an operation does not support.
VALUE_ERRORS: Final[tuple[type[Exception], ...]] = ()


@contextlib.contextmanager
def naming_layers(where: str) -> Iterator[None]:
    """Shapes that do not match are errors of the layer itself in the trace, and are not converted."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        raise ValueError(
            f"{where}: expected columns whose shapes and values fit the network and each other; got, at run time: "
            f"{error_reason(error)}. Write batches of one shape, or train with dataset_sink_mode=False to see the "
            "batch."
        ) from error


def error_reason(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "").rstrip(".") or type(error).__name__
