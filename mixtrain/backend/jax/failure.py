"""What fails inside a compiled call, said in one sentence."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax


@contextlib.contextmanager
def naming_layers(where: str) -> Iterator[None]:
    """Turn the backend's report of values that do not fit into a ValueError.

    Shapes that do not fit are errors of the layer itself on JAX, where it is traced, and pass as they are.

    Args:
        where: Who runs the call, for the message.

    Raises:
        ValueError: Values inside the call did not fit.
    """
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        said = str(error).strip().splitlines()[0].rstrip(".")
        raise ValueError(
            f"{where}: expected columns whose shapes and values fit the network and each other; got, at run time: "
            f"{said}. Write batches of one shape, or train with dataset_sink_mode=False to see the batch."
        ) from error
