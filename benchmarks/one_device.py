"""Measure the cost of `data_parallel(1)`: epochs of LeNet-5 with a Model created inside it and one outside.

    python -m benchmarks.one_device
    KERAS_BACKEND=jax python -m benchmarks.one_device --print-only --rounds 2
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.call_pairs import BACKENDS
from benchmarks.diagnostics_cost import Pair, epoch, main, nothing, safe
from mixtrain.distribution import data_parallel

NAMES: Final = tuple(f"one_device_{backend}" for backend in BACKENDS)


def pairs() -> Iterator[Pair]:
    """Yield an epoch inside and one outside, for each feed."""
    for feed in ("host", "sink"):
        with data_parallel(1):
            inside = epoch(nothing, sink=feed == "sink", manager=safe())
        yield f"data_parallel(1), {feed}", 1.03, inside, epoch(nothing, sink=feed == "sink", manager=safe())


if __name__ == "__main__":
    main("one_device", pairs, __doc__)
