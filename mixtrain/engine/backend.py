"""Which Keras backends have an engine, and the error for those that have none."""

from __future__ import annotations

import os
from typing import Final

from mixtrain.errors import UnsupportedBackendError

SUPPORTED: Final = ("tensorflow", "jax")


def check_backend(name: str) -> None:
    """Refuse a Keras backend without an engine.

    Raises:
        UnsupportedBackendError: There is no engine for `name`.
    """
    if name not in SUPPORTED:
        raise UnsupportedBackendError(
            f'mixtrain: the Keras backend must be {" or ".join(SUPPORTED)}; got "{name}". '
            "Set the environment variable KERAS_BACKEND=tensorflow or KERAS_BACKEND=jax before Python starts."
        )


def check_asked_backend() -> None:
    """Refuse the backend that the environment asks for before Keras is imported, which fails where it is missing.

    Raises:
        UnsupportedBackendError: There is no engine for it.
    """
    asked = os.environ.get("KERAS_BACKEND")
    if asked:
        check_backend(asked)
