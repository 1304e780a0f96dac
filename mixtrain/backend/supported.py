"""Which Keras backends are supported, and the error for those that are not."""

from __future__ import annotations

import os
from typing import Final

from mixtrain.errors import UnsupportedBackendError

SUPPORTED: Final = ("tensorflow", "jax")


def check_backend(name: str) -> None:
    """Refuse a Keras backend that is not supported. Raises: UnsupportedBackendError if `name` is not supported."""
    if name not in SUPPORTED:
        raise UnsupportedBackendError(
            f'mixtrain: the Keras backend must be {" or ".join(SUPPORTED)}; got "{name}". '
            "Set the environment variable KERAS_BACKEND=tensorflow or KERAS_BACKEND=jax before Python starts."
        )


def check_asked_backend() -> None:
    """Refuse an unsupported backend in the environment before Keras is imported, which fails if it is not installed.

    Raises: UnsupportedBackendError if it is not supported.
    """
    name = os.environ.get("KERAS_BACKEND")
    if name:
        check_backend(name)
