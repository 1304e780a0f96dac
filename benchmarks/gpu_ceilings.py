"""Measure the ceilings of a device: matrix products in each dtype, memory bandwidth and host-to-device copies."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

PRODUCTS: Final[dict[str, tuple[str, str]]] = {
    "float32": ("float32", "float32"),
    "tensorfloat32": ("float32", "tensorfloat32"),
    "float16": ("float16", "default"),
    "bfloat16": ("bfloat16", "default"),
}
# Whether this is a CPU -> size of the matrices, number of chained products.
SIZES: Final = {False: (8192, 16), True: (512, 4)}


def answer(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the device's name, memory and ceilings; CPUs get smaller matrices."""
    device = jax.devices()[0]
    on_cpu = device.platform == "cpu"
    stats = device.memory_stats() or {}
    return {
        "platform": device.platform,
        "kind": str(device.device_kind),
        "memory_bytes": None if on_cpu else stats.get("bytes_limit"),
        "ceilings": {
            **{f"{name} products": products(*row, *SIZES[on_cpu]) for name, row in PRODUCTS.items()},
            "copy": memory_bandwidth((32 if on_cpu else 2048) << 20),
            "host to device": host_to_device((32 if on_cpu else 512) << 20),
        },
    }


def products(dtype: str, precision: str, size: int, count: int) -> dict[str, Any]:
    """Return the TFLOP/s of chained products of square matrices."""
    random = np.random.default_rng(0)
    # Scaled to keep the variance from product to product.
    weight = jnp.asarray(random.standard_normal((size, size), np.float32) / np.sqrt(size), dtype)
    start = jnp.asarray(random.standard_normal((size, size), np.float32), dtype)

    @jax.jit
    def run(x: Any, weight: Any) -> Any:
        return jax.lax.fori_loop(0, count, lambda _, x: jnp.matmul(x, weight), x)

    with jax.default_matmul_precision(precision):
        seconds = median_seconds(lambda: run(start, weight))
    return {"value": 2e-12 * count * size**3 / seconds, "unit": "TFLOP/s", "of": f"{count} products, {size}x{size}"}


def memory_bandwidth(size: int) -> dict[str, Any]:
    """Return the GB/s of reading and writing the device's memory."""
    x = jnp.zeros(size // 4, jnp.float32)
    add = jax.jit(lambda x: x + 1)
    return {"value": 2e-9 * size / median_seconds(lambda: add(x)), "unit": "GB/s", "of": f"x + 1 on {size >> 20} MiB"}


def host_to_device(size: int) -> dict[str, Any]:
    """Return the GB/s of copies from host to device."""
    x = np.zeros(size // 4, np.float32)
    seconds = median_seconds(lambda: jax.device_put(x, may_alias=False))
    return {"value": 1e-9 * size / seconds, "unit": "GB/s", "of": f"an array of {size >> 20} MiB"}


def median_seconds(run: Callable[[], Any], rounds: int = 7) -> float:
    """Return the median seconds of a call and its computation, after two warm-up calls."""
    seconds = []
    for _ in range(rounds + 2):
        started = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[2:])
