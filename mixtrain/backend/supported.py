"""Which Keras backends are supported, and the error for those that are not."""

from __future__ import annotations

import os
from typing import Final

from mixtrain.errors import UnsupportedBackendError

SUPPORTED: Final = ("tensorflow", "jax")


def check_backend(name: str) -> None:
    """Refuse a Keras backend that is not supported.

    Raises:
        UnsupportedBackendError: `name` is not supported.
    """
    if name not in SUPPORTED:
        raise UnsupportedBackendError(
            f'mixtrain: the Keras backend must be {" or ".join(SUPPORTED)}; got "{name}". '
            "Set the environment variable KERAS_BACKEND=tensorflow or KERAS_BACKEND=jax before Python starts."
        )


def check_asked_backend() -> None:
    """Refuse the backend that the environment asks for before Keras is imported, which fails where it is missing.

    Raises:
        UnsupportedBackendError: It is not supported.
    """
    asked = os.environ.get("KERAS_BACKEND")
    if asked:
        check_backend(asked)
