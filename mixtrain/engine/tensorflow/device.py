"""What device TensorFlow computes on, and what it is good at."""

from __future__ import annotations

import functools
import pathlib
import re

import tensorflow as tf

from mixtrain.engine.facts import DeviceFacts

_BFLOAT16_FLAGS = frozenset({"amx_bf16", "avx512_bf16"})
_CPU_INFO = pathlib.Path("/proc/cpuinfo")


@functools.cache
def describe_device() -> DeviceFacts:
    """Return the facts of the first accelerator, or of the CPU where there is none."""
    for kind in ("TPU", "GPU"):
        devices = tf.config.list_logical_devices(kind)
        if devices:
            return DeviceFacts(kind=kind, name=devices[0].name, fast_bfloat16=True)
    return DeviceFacts(kind="CPU", name="CPU", fast_bfloat16=bool(_BFLOAT16_FLAGS & _cpu_flags()))


def _cpu_flags() -> frozenset[str]:
    """Return the instruction-set flags of this CPU; empty where the system does not list them (not Linux)."""
    if not _CPU_INFO.exists():
        return frozenset()
    found = re.search(r"^flags\s*:(.*)$", _CPU_INFO.read_text(errors="replace"), flags=re.MULTILINE)
    return frozenset(found.group(1).split()) if found else frozenset()
