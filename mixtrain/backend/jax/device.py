"""The device that JAX uses, and its properties."""

from __future__ import annotations

import functools

import jax
from jax._src import xla_bridge

from mixtrain.backend.info import DeviceInfo, DeviceMemory, peak_resident
from mixtrain.typing import BackendTensor


@functools.cache
def describe_device() -> DeviceInfo:
    device = jax.devices()[0]
    if device.platform == "cpu":
        # On any processor: products of bfloat16 take 1.1 to 1.5 times as long as those of float32 with jaxlib 0.10
        # (`python -m benchmarks.tune_choices`).
        return DeviceInfo(kind="CPU", name="CPU", fast_bfloat16=False)
    return DeviceInfo(
        kind="TPU" if device.platform == "tpu" else "GPU", name=str(device.device_kind), fast_bfloat16=True,
        # Ada and Hopper are the first GPUs of NVIDIA's with float8.
        fast_float8=device.platform != "tpu" and _compute_capability() >= (8, 9),
    )


def has_started() -> bool:
    # JAX has no public function for this; tests/train/test_forks.py fails if the name changes.
    return bool(xla_bridge.backends_are_initialized())


def peak_memory(*, restart: bool = False) -> int | None:
    if describe_device().kind != "GPU":
        return peak_resident(restart=restart)
    return device_memory().peak_allocated or None


def device_memory() -> DeviceMemory:
    statistics = jax.devices()[0].memory_stats() or {}  # None on a CPU.
    kinds = ("bytes_in_use", "pool_bytes", "peak_bytes_in_use", "peak_pool_bytes")
    return DeviceMemory(*(statistics.get(kind, 0) for kind in kinds))


def restart_peak() -> bool:
    """JAX keeps the peak of the whole process."""
    return describe_device().kind == "CPU"


def synchronize() -> None:
    jax.block_until_ready(jax.live_arrays())


def version() -> str:
    return f"jax {jax.__version__}"


def tf32_products() -> str:
    precision = jax.config.jax_default_matmul_precision
    if describe_device().kind != "GPU" or precision in ("highest", "float32", "F32_F32_F32"):
        return ""
    if _compute_capability() < (8, 0):
        return ""
    return 'jax.config.update("jax_default_matmul_precision", "highest")'


def _compute_capability() -> tuple[int, ...]:
    """Return the version of an NVIDIA GPU's instructions, as (9, 0); (0,) of another device."""
    version = str(getattr(jax.devices()[0], "compute_capability", "0"))
    return tuple(int(part) for part in version.split(".") if part.isdigit()) or (0,)


def device_of(tensor: BackendTensor) -> str:
    device = next(iter(tensor.devices()))
    return "CPU" if device.platform == "cpu" else f"{device.platform.upper()}:{device.id}"


def can_fork() -> bool:
    """It may hang because of JAX's threads."""
    return False
