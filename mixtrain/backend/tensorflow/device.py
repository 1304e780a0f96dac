"""What device TensorFlow computes on, and what it is good at."""

from __future__ import annotations

import functools

import tensorflow as tf

from mixtrain.backend.facts import DeviceFacts
from mixtrain.backend.processor import BFLOAT16_FLAGS, cpu_flags


@functools.cache
def describe_device() -> DeviceFacts:
    """Return the facts of the first accelerator, or of the CPU where there is none."""
    for kind in ("TPU", "GPU"):
        devices = tf.config.list_logical_devices(kind)
        if devices:
            return DeviceFacts(kind=kind, name=devices[0].name, fast_bfloat16=True)
    return DeviceFacts(kind="CPU", name="CPU", fast_bfloat16=bool(BFLOAT16_FLAGS & cpu_flags()))
