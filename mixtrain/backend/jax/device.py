"""What device JAX computes on, and what it is good at."""

from __future__ import annotations

import functools

import jax
from jax._src import xla_bridge

from mixtrain.backend.info import DeviceInfo
from mixtrain.backend.processor import peak_resident


@functools.cache
def describe_device() -> DeviceInfo:
    """Return info about the device that JAX uses by default."""
    device = jax.devices()[0]
    if device.platform == "cpu":
        # Whatever the processor has: jaxlib 0.10 multiplies bfloat16 there in 1.1 to 1.5 times the time that float32
        # takes (`python -m benchmarks.tune_choices`).
        return DeviceInfo(kind="CPU", name="CPU", fast_bfloat16=False)
    return DeviceInfo(
        kind="TPU" if device.platform == "tpu" else "GPU", name=str(device.device_kind), fast_bfloat16=True
    )


def has_started() -> bool:
    """Whether JAX has computed anything in this process, or in one that it was forked from."""
    # JAX has no public word for this; tests/train/test_forks.py fails if the name moves.
    return bool(xla_bridge.backends_are_initialized())


def peak_memory(*, restart: bool = False) -> int | None:
    """Return the most memory that the device has held, in bytes, on a CPU that of the process; None where unknown.

    Args:
        restart: Whether the peak begins anew, at what is held now, where the device can do that.
    """
    if describe_device().kind != "GPU":
        return peak_resident(restart=restart)
    statistics = jax.devices()[0].memory_stats() or {}
    return statistics.get("peak_bytes_in_use")  # type: ignore[no-any-return]


def tf32_products() -> str:
    """Return how to have float32 products computed in float32, where the device computes them in TF32; else ""."""
    chosen = jax.config.jax_default_matmul_precision
    if describe_device().kind != "GPU" or chosen in ("highest", "float32", "F32_F32_F32"):
        return ""
    capability = str(getattr(jax.devices()[0], "compute_capability", "0"))
    if int(capability.partition(".")[0] or 0) < 8:
        return ""
    return 'jax.config.update("jax_default_matmul_precision", "highest")'


def can_fork() -> bool:
    """Whether a process that is forked from this one can run Python and NumPy: beside JAX's threads it may hang."""
    return False
