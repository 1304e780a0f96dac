"""What device TensorFlow computes on, and what it is good at."""

from __future__ import annotations

import functools

import tensorflow as tf
from tensorflow.python.eager import context

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


def has_started() -> bool:
    """Whether TensorFlow has computed anything in this process, or in one that it was forked from."""
    # TensorFlow has no public word for this; tests/train/test_forks.py fails if the name moves.
    return bool(getattr(context.context_safe(), "_initialized", False))
