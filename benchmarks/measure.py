"""Interleaved timing: every contender once a round, in turn, and the medians of their rounds."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

import mixtrain
from mixtrain import engine


@dataclasses.dataclass(frozen=True)
class Timing:
    """One contender's rounds.

    Attributes:
        name: Its name.
        milliseconds: Milliseconds a step, one value a round.
    """

    name: str
    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median, in milliseconds a step."""
        return statistics.median(self.milliseconds)

    @property
    def spread(self) -> float:
        """The distance of the quartiles over the median."""
        low, _, high = statistics.quantiles(self.milliseconds, n=4)
        return (high - low) / self.median


def interleaved(contenders: Mapping[str, Callable[[], int]], *, rounds: int, warmup: int = 2) -> dict[str, Timing]:
    """Time contenders in turn.

    Args:
        contenders: By name, a function that runs some steps and returns how many.
        rounds: How often each is timed.
        warmup: Rounds before that.

    Returns:
        The timings by name.
    """
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(warmup + rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            steps = run()
            elapsed = (time.perf_counter() - start) * 1000 / steps
            if number >= warmup:
                found[name].append(elapsed)
    return {name: Timing(name, tuple(values)) for name, values in found.items()}


def ratio(timings: Mapping[str, Timing], ours: str, peer: str) -> float:
    """Return the median over rounds of ours divided by the peer's of the same round."""
    pairs = zip(timings[ours].milliseconds, timings[peer].milliseconds, strict=True)
    return statistics.median(a / b for a, b in pairs)


def surroundings() -> dict[str, Any]:
    """Return versions and device, for the record."""
    device = engine.describe_device()
    model = next(
        (line.split(":", 1)[1].strip() for line in _cpu_lines() if line.startswith("model name")), platform.processor()
    )
    return {
        "mixtrain": mixtrain.__version__,
        "keras": keras.__version__,
        "backend": keras.backend.backend(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": device.kind,
        "cpu": model,
        "cores": os.cpu_count(),
        "fast_bfloat16": device.fast_bfloat16,
    }


def _cpu_lines() -> list[str]:
    path = pathlib.Path("/proc/cpuinfo")
    return path.read_text(errors="replace").splitlines() if path.exists() else []


def write_json(path: pathlib.Path, record: Mapping[str, Any]) -> None:
    """Write a record, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, suffix=".json") as file:
        json.dump(record, file, indent=1)
        file.write("\n")
    pathlib.Path(file.name).replace(path)
