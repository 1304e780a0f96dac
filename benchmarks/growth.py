"""Growth: the MLP with its batch, its depth or its width enlarged, one at a time, ours beside Keras's `fit`."""

from __future__ import annotations

import dataclasses
from typing import Final

from benchmarks.contender import Contender
from benchmarks.goals import Goal
from benchmarks.race import Race
from benchmarks.workloads import MLP, Workload

_PEER = Contender("Keras fit", "keras")
_OURS = Contender("mixtrain O0", "mixtrain", scaling="none")
# What is enlarged, and to what; the others stay as they are in the first row.
POINTS: Final = (
    ("batch", 32), ("batch", 128), ("batch", 512), ("depth", 8), ("depth", 32), ("width", 256), ("width", 1024),
)


def parameters(workload: Workload) -> int:
    """Return the number of parameters of an MLP."""
    sizes = [workload.shape[0], *[workload.width] * workload.depth, workload.classes]
    return sum(a * b + b for a, b in zip(sizes, sizes[1:], strict=False))


def _race(axis: str, size: int) -> Race:
    workload = dataclasses.replace(MLP, **{axis: size})  # type: ignore[arg-type]
    title = f"MLP, batch {workload.batch}, {workload.depth} hidden layers of {workload.width}"
    return Race(
        workload,
        (_PEER, _OURS),
        steps=96,
        rounds=5,
        patience=10.0,
        title=f"{title}, {parameters(workload):,} parameters",
        goals=(Goal(f"{title}, against Keras fit", _OURS.name, _PEER.name),),
    )


GROWTH: Final = tuple(_race(axis, size) for axis, size in POINTS)
