"""The settings of datasets: the seed, the number of threads, and MindSpore's settings for workers."""

from __future__ import annotations

import dataclasses
import random

import numpy as np

from mixtrain import checks, seed as common_seed
from mixtrain.dataset.worker_settings import (
    ErrorSamplesMode, get_auto_num_workers, get_auto_offload, get_autotune_interval, get_callback_timeout,
    get_debug_mode, get_dynamic_shape, get_enable_autotune, get_enable_shared_mem, get_enable_watchdog,
    get_error_samples_mode, get_fast_recovery, get_monitor_sampling_interval, get_multiprocessing_start_method,
    get_multiprocessing_timeout_interval, get_numa_enable, get_video_backend, set_auto_num_workers, set_auto_offload,
    set_autotune_interval, set_callback_timeout, set_debug_mode, set_dynamic_shape, set_enable_autotune,
    set_enable_shared_mem, set_enable_watchdog, set_error_samples_mode, set_fast_recovery,
    set_monitor_sampling_interval, set_multiprocessing_start_method, set_multiprocessing_timeout_interval,
    set_numa_enable, set_sending_batches, set_video_backend,
)

__all__ = [
    "ErrorSamplesMode", "get_auto_num_workers", "get_auto_offload", "get_autotune_interval", "get_callback_timeout",
    "get_debug_mode", "get_dynamic_shape", "get_enable_autotune", "get_enable_shared_mem", "get_enable_watchdog",
    "get_error_samples_mode", "get_fast_recovery", "get_monitor_sampling_interval", "get_multiprocessing_start_method",
    "get_multiprocessing_timeout_interval", "get_num_parallel_workers", "get_numa_enable", "get_prefetch_size",
    "get_seed", "get_video_backend", "set_auto_num_workers", "set_auto_offload", "set_autotune_interval",
    "set_callback_timeout", "set_debug_mode", "set_dynamic_shape", "set_enable_autotune", "set_enable_shared_mem",
    "set_enable_watchdog", "set_error_samples_mode", "set_fast_recovery", "set_monitor_sampling_interval",
    "set_multiprocessing_start_method", "set_multiprocessing_timeout_interval", "set_num_parallel_workers",
    "set_numa_enable", "set_prefetch_size", "set_seed", "set_sending_batches", "set_video_backend",
]


@dataclasses.dataclass
class _Settings:
    """The values that were set.

    `generator` is the process's generator when the seed was set; a later `mixtrain.set_seed` replaces the latter.
    """

    seed: int | None = None
    generator: np.random.Generator | None = None
    num_parallel_workers: int = 8
    prefetch_size: int = 16


_settings = _Settings()


def set_seed(seed: int) -> None:
    """Seed the shuffles and random transforms of datasets, and also `random` and `numpy.random`.

    Args: seed: From 0 to 2**32 - 1. It is in force until another is set here or by `mixtrain.set_seed`.

    Example:
        >>> from mixtrain.dataset import config
        >>> config.set_seed(1000)
        >>> config.get_seed()
        1000
    """
    value = checks.integer("config.set_seed", "seed", seed, at_least=0)
    if value >= 2**32:
        raise checks.fail_value("config.set_seed", "seed must be less than 2**32", seed, "seed=0")
    _settings.seed, _settings.generator = value, common_seed.generator()
    random.seed(value)
    np.random.seed(value)


def get_seed() -> int | None:
    """Return the seed of datasets: the one set here or the process's, whichever was set last; None without one."""
    set_last = _settings.seed is not None and _settings.generator is common_seed.generator()
    return _settings.seed if set_last else common_seed.get_seed()


def set_num_parallel_workers(num: int) -> None:
    """Set how many threads read files and run transforms if `num_parallel_workers` is not passed. `num`: at least 1."""
    _settings.num_parallel_workers = checks.integer("config.set_num_parallel_workers", "num", num, at_least=1)


def get_num_parallel_workers() -> int:
    """Return the value passed to `set_num_parallel_workers`; 8 by default."""
    return _settings.num_parallel_workers


def set_prefetch_size(size: int) -> None:
    """Accept MindSpore's queue length; the backend chooses how many batches are prefetched. `size`: at least 1."""
    _settings.prefetch_size = checks.integer("config.set_prefetch_size", "size", size, at_least=1)


def get_prefetch_size() -> int:
    """Return the value passed to `set_prefetch_size`; 16 by default."""
    return _settings.prefetch_size
