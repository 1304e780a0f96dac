"""Peak device memory of this process, as tracked by its framework."""

from __future__ import annotations

import os
import sys
from typing import Any


def device_peak_bytes() -> int | None:
    """Return the peak bytes of an accelerator's memory, or None where the framework does not track them."""
    if "torch" in sys.modules:
        return _of_torch(sys.modules["torch"])
    if "jax" in sys.modules and os.environ.get("KERAS_BACKEND") == "jax":
        return _of_jax(sys.modules["jax"])
    return None


def _of_torch(torch: Any) -> int | None:
    return int(torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else None


def _of_jax(jax: Any) -> int | None:
    stats = jax.local_devices()[0].memory_stats() or {}
    return int(stats["peak_bytes_in_use"]) if "peak_bytes_in_use" in stats else None
