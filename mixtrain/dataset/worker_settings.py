"""MindSpore's settings of its worker processes: they can be set and read, but have no effect here."""

from __future__ import annotations

import enum
from typing import Any, Final

from mixtrain import checks

# The settings, with MindSpore's defaults.
_settings: Final[dict[str, Any]] = {
    "enable_autotune": False,
    "numa_enable": False,
    "monitor_sampling_interval": 1000,
    "auto_num_workers": False,
    "callback_timeout": 60,
    "autotune_interval": 0,
    "enable_shared_mem": True,
    "auto_offload": False,
    "enable_watchdog": True,
    "multiprocessing_timeout_interval": 300,
    "dynamic_shape": False,
    "fast_recovery": True,
    "debug_mode": False,
    "multiprocessing_start_method": "fork",
    "video_backend": None,
}


class ErrorSamplesMode(enum.IntEnum):
    """How rows that fail are handled; here only `RETURN`, which raises the error, is supported.

    Example:
        >>> ErrorSamplesMode.RETURN.value
        0
    """

    RETURN = 0
    REPLACE = 1
    SKIP = 2


def _set_switch(name: str, argument: str, value: bool) -> None:
    _settings[name] = checks.boolean(f"config.set_{name}", argument, value)


def _set_number(name: str, argument: str, value: int, at_least: int = 1) -> None:
    _settings[name] = checks.integer(f"config.set_{name}", argument, value, at_least=at_least)


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Accept whether MindSpore tunes its workers while training.

    Args:
        enable: True or False.
        filepath_prefix: Where MindSpore would write the configuration it found.
    """
    _set_switch("enable_autotune", "enable", enable)


def get_enable_autotune() -> bool:
    """Return the value passed to `set_enable_autotune`; False by default."""
    return bool(_settings["enable_autotune"])


def set_sending_batches(batch_num: int) -> None:
    """Accept how many batches MindSpore sends to a device in advance. `batch_num`: at least 0."""
    checks.integer("config.set_sending_batches", "batch_num", batch_num, at_least=0)


def set_numa_enable(numa_enable: bool) -> None:
    """Accept whether MindSpore binds workers to one NUMA node. `numa_enable`: True or False."""
    _set_switch("numa_enable", "numa_enable", numa_enable)


def get_numa_enable() -> bool:
    """Return the value passed to `set_numa_enable`; False by default."""
    return bool(_settings["numa_enable"])


def set_monitor_sampling_interval(interval: int) -> None:
    """Accept the sampling interval of MindSpore's monitor, in milliseconds. `interval`: at least 1."""
    _set_number("monitor_sampling_interval", "interval", interval)


def get_monitor_sampling_interval() -> int:
    """Return the value passed to `set_monitor_sampling_interval`; 1000 by default."""
    return _settings["monitor_sampling_interval"]


def set_auto_num_workers(enable: bool) -> None:
    """Accept whether MindSpore chooses the number of workers. `enable`: True or False."""
    _set_switch("auto_num_workers", "enable", enable)


def get_auto_num_workers() -> bool:
    """Return the value passed to `set_auto_num_workers`; False by default."""
    return bool(_settings["auto_num_workers"])


def set_callback_timeout(timeout: int) -> None:
    """Accept the timeout of a dataset callback, in seconds. `timeout`: at least 1."""
    _set_number("callback_timeout", "timeout", timeout)


def get_callback_timeout() -> int:
    """Return the value passed to `set_callback_timeout`; 60 by default."""
    return _settings["callback_timeout"]


def set_autotune_interval(interval: int) -> None:
    """Accept the number of steps between two adjustments of autotune; 0: once in each epoch. `interval`: at least 0."""
    _set_number("autotune_interval", "interval", interval, at_least=0)


def get_autotune_interval() -> int:
    """Return the value passed to `set_autotune_interval`; 0 by default."""
    return _settings["autotune_interval"]


def set_enable_shared_mem(enable: bool) -> None:
    """Accept whether MindSpore's processes share memory. `enable`: True or False."""
    _set_switch("enable_shared_mem", "enable", enable)


def get_enable_shared_mem() -> bool:
    """Return the value passed to `set_enable_shared_mem`; True by default."""
    return bool(_settings["enable_shared_mem"])


def set_auto_offload(offload: bool) -> None:
    """Accept whether transforms run on the device. `offload`: True or False."""
    _set_switch("auto_offload", "offload", offload)


def get_auto_offload() -> bool:
    """Return the value passed to `set_auto_offload`; False by default."""
    return bool(_settings["auto_offload"])


def set_enable_watchdog(enable: bool) -> None:
    """Accept whether MindSpore watches for processes that hang. `enable`: True or False."""
    _set_switch("enable_watchdog", "enable", enable)


def get_enable_watchdog() -> bool:
    """Return the value passed to `set_enable_watchdog`; True by default."""
    return bool(_settings["enable_watchdog"])


def set_multiprocessing_timeout_interval(interval: int) -> None:
    """Accept the interval of warnings about processes that hang, in seconds. `interval`: at least 1."""
    _set_number("multiprocessing_timeout_interval", "interval", interval)


def get_multiprocessing_timeout_interval() -> int:
    """Return the value passed to `set_multiprocessing_timeout_interval`; 300 by default."""
    return _settings["multiprocessing_timeout_interval"]


def set_dynamic_shape(is_dynamic: bool) -> None:
    """Accept whether shapes may differ between rows. `is_dynamic`: True or False."""
    _set_switch("dynamic_shape", "is_dynamic", is_dynamic)


def get_dynamic_shape() -> bool:
    """Return the value passed to `set_dynamic_shape`; False by default."""
    return bool(_settings["dynamic_shape"])


def set_fast_recovery(fast_recovery: bool) -> None:
    """Accept whether a resumed run skips rows without computing them. `fast_recovery`: True or False."""
    _set_switch("fast_recovery", "fast_recovery", fast_recovery)


def get_fast_recovery() -> bool:
    """Return the value passed to `set_fast_recovery`; True by default."""
    return bool(_settings["fast_recovery"])


def set_debug_mode(debug_mode_flag: bool, debug_hook_list: list[Any] | None = None) -> None:
    """Accept whether MindSpore runs transforms in sequence in this process, as they run here.

    Args:
        debug_mode_flag: True or False.
        debug_hook_list: Must be empty or None: hooks between transforms are not supported.

    Raises: NotImplementedError: There are hooks.
    """
    if debug_hook_list:
        raise NotImplementedError(
            "config.set_debug_mode: hooks between transforms are not called here. Write a function of map that looks."
        )
    _set_switch("debug_mode", "debug_mode_flag", debug_mode_flag)


def get_debug_mode() -> bool:
    """Return the value passed to `set_debug_mode`; False by default."""
    return bool(_settings["debug_mode"])


def set_error_samples_mode(error_samples_mode: ErrorSamplesMode) -> None:
    """Accept that an error in a row is raised, as it always is here. `error_samples_mode`: `ErrorSamplesMode.RETURN`.

    Raises: NotImplementedError: The mode replaces or skips rows.
    """
    if error_samples_mode is not ErrorSamplesMode.RETURN:
        raise NotImplementedError(
            "config.set_error_samples_mode: a row that cannot be made ends the run here. Write a filter before it."
        )


def get_error_samples_mode() -> ErrorSamplesMode:
    """Return `ErrorSamplesMode.RETURN`, the only mode."""
    return ErrorSamplesMode.RETURN


def set_multiprocessing_start_method(start_method: str) -> None:
    """Accept how MindSpore starts its worker processes; threads are used here. `start_method`: "fork" or "spawn"."""
    where = "config.set_multiprocessing_start_method"
    _settings["multiprocessing_start_method"] = checks.one_of(where, "start_method", start_method, ("fork", "spawn"))


def get_multiprocessing_start_method() -> str:
    """Return the value passed to `set_multiprocessing_start_method`; "fork" by default."""
    return str(_settings["multiprocessing_start_method"])


def set_video_backend(backend: str) -> None:
    """Accept which device MindSpore decodes videos on; videos are not supported here. `backend`: "CPU" or "Ascend"."""
    _settings["video_backend"] = checks.one_of("config.set_video_backend", "backend", backend, ("CPU", "Ascend"))


def get_video_backend() -> str | None:
    """Return the value passed to `set_video_backend`; None by default."""
    value: str | None = _settings["video_backend"]
    return value
