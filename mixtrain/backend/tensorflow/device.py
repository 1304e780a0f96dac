"""What device TensorFlow computes on, and what it is good at."""

from __future__ import annotations

import functools

import tensorflow as tf
from tensorflow.python.eager import context

from mixtrain.backend.info import DeviceInfo
from mixtrain.backend.processor import cpu_info, fast_bfloat16, peak_resident


@functools.cache
def describe_device() -> DeviceInfo:
    """Return info about the first accelerator, or of the CPU where there is none."""
    for kind in ("TPU", "GPU"):
        devices = tf.config.list_logical_devices(kind)
        if devices:
            return DeviceInfo(kind=kind, name=devices[0].name, fast_bfloat16=True)
    return DeviceInfo(kind="CPU", name="CPU", fast_bfloat16=fast_bfloat16(cpu_info()))


def has_started() -> bool:
    """Whether TensorFlow has computed anything in this process, or in one that it was forked from."""
    # TensorFlow has no public word for this; tests/train/test_forks.py fails if the name moves.
    return bool(getattr(context.context_safe(), "_initialized", False))


def peak_memory(*, restart: bool = False) -> int | None:
    """Return the most memory that the device has held, in bytes, on a CPU that of the process; None where unknown.

    Args:
        restart: Whether the peak begins anew, at what is held now, where the device can do that.
    """
    if describe_device().kind != "GPU":
        return peak_resident(restart=restart)
    if restart:
        tf.config.experimental.reset_memory_stats("GPU:0")
    return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])


def tf32_products() -> str:
    """Return how to have float32 products computed in float32, where the device computes them in TF32; else ""."""
    if describe_device().kind != "GPU" or not tf.config.experimental.tensor_float_32_execution_enabled():
        return ""
    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    if details.get("compute_capability", (0, 0)) < (8, 0):
        return ""
    return "tf.config.experimental.enable_tensor_float_32_execution(False)"


def can_fork() -> bool:
    """Whether a process that is forked from this one can run Python and NumPy."""
    return True
