"""What device JAX computes on, and what it is good at."""

from __future__ import annotations

import functools

import jax
from jax._src import xla_bridge

from mixtrain.backend.facts import DeviceFacts
from mixtrain.backend.processor import BFLOAT16_FLAGS, cpu_flags


@functools.cache
def describe_device() -> DeviceFacts:
    """Return the facts of the device that JAX uses by default."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        return DeviceFacts(kind="CPU", name="CPU", fast_bfloat16=bool(BFLOAT16_FLAGS & cpu_flags()))
    return DeviceFacts(
        kind="TPU" if device.platform == "tpu" else "GPU", name=str(device.device_kind), fast_bfloat16=True
    )


def has_started() -> bool:
    """Whether JAX has computed anything in this process, or in one that it was forked from."""
    # JAX has no public word for this; tests/train/test_forks.py fails if the name moves.
    return bool(xla_bridge.backends_are_initialized())
