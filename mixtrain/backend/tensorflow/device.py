"""The device that TensorFlow uses, and its properties."""

from __future__ import annotations

import functools

import tensorflow as tf
from tensorflow.python.eager import context

from mixtrain.backend.info import DeviceInfo, DeviceMemory, cpu_info, fast_bfloat16, peak_resident
from mixtrain.typing import BackendTensor


@functools.cache
def describe_device() -> DeviceInfo:
    """The first accelerator, or the CPU without one."""
    for kind in ("TPU", "GPU"):
        devices = tf.config.list_logical_devices(kind)
        if devices:
            return DeviceInfo(kind=kind, name=devices[0].name, fast_bfloat16=True)
    return DeviceInfo(kind="CPU", name="CPU", fast_bfloat16=fast_bfloat16(cpu_info()))


def has_started() -> bool:
    # TensorFlow has no public function for this; tests/train/test_forks.py fails if the name changes.
    return bool(getattr(context.context_safe(), "_initialized", False))


def peak_memory(*, restart: bool = False) -> int | None:
    if describe_device().kind != "GPU":
        return peak_resident(restart=restart)
    if restart:
        restart_peak()
    return device_memory().peak_allocated


def device_memory() -> DeviceMemory:
    """TensorFlow does not tell what it reserves; that is counted as what is allocated."""
    if describe_device().kind != "GPU":
        return DeviceMemory()
    info = tf.config.experimental.get_memory_info("GPU:0")
    return DeviceMemory(info["current"], info["current"], info["peak"], info["peak"])


def restart_peak() -> bool:
    if describe_device().kind == "GPU":
        tf.config.experimental.reset_memory_stats("GPU:0")
    return True


def synchronize() -> None:
    if tf.executing_eagerly():
        tf.test.experimental.sync_devices()


def version() -> str:
    return f"tensorflow {tf.__version__}"


def tf32_products() -> str:
    if describe_device().kind != "GPU" or not tf.config.experimental.tensor_float_32_execution_enabled():
        return ""
    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    if details.get("compute_capability", (0, 0)) < (8, 0):
        return ""
    return "tf.config.experimental.enable_tensor_float_32_execution(False)"


def device_of(tensor: BackendTensor) -> str:
    spec = tf.DeviceSpec.from_string(tensor.device)
    return "CPU" if spec.device_type == "CPU" else f"{spec.device_type}:{spec.device_index}"


def can_fork() -> bool:
    return True
