"""Environment of a run: versions, device, CPU flags and load average."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import os
import platform
import time
from collections.abc import Mapping
from typing import Any, Final

import keras

import mixtrain
from mixtrain import backend
from mixtrain.backend.info import cpu_field, cpu_info

# CPU features that decide how fast half precision is.
FLAGS: Final = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16")

_PACKAGES: Final = {"tensorflow": ("tensorflow",), "jax": ("jax", "jaxlib")}


def surroundings() -> dict[str, Any]:
    """Return device, processor and system as an entry of the record."""
    text = cpu_info()
    device = backend.describe_device()
    return {
        "device": device.kind,
        "fast_bfloat16": device.fast_bfloat16,
        "cpu": cpu_field(text, "model name") or platform.processor(),
        "cpu_flags": cpu_flags(text),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def cpu_flags(text: str) -> list[str]:
    """Return those of `FLAGS` that the text of `cpu_info` lists."""
    flags = cpu_field(text, "flags").split()
    return [flag for flag in FLAGS if flag in flags]


def versions() -> dict[str, str]:
    """Return the versions of mixtrain and its backend."""
    names = ("keras", "numpy", *_PACKAGES[keras.backend.backend()])
    return {"mixtrain": mixtrain.__version__, **{name: importlib.metadata.version(name) for name in names}}


def load_average() -> float:
    """Return the mean number of running processes over the last minute; NaN where the system has none."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


@dataclasses.dataclass(frozen=True)
class RunStart:
    """Time and load average at the start of a run, for the metadata of its record.

    Attributes:
        at: Start time, from `time.perf_counter`.
        load: Load average at the start.
    """

    at: float = dataclasses.field(default_factory=time.perf_counter)
    load: float = dataclasses.field(default_factory=load_average)

    def metadata(self, name: str, versions: Mapping[str, str]) -> dict[str, Any]:
        """Return the metadata of a record at the end of the run.

        Args:
            name: Name of the record.
            versions: Versions of the packages that were measured.
        """
        return {
            "set": name,
            "surroundings": surroundings(),
            "versions": dict(versions),
            "load_average": {"before": self.load, "after": load_average()},
            "seconds": time.perf_counter() - self.at,
        }
