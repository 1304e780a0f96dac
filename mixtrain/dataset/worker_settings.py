"""MindSpore's settings of its worker processes: they can be set and asked, and here they have no effect."""

from __future__ import annotations

from typing import Final

from mixtrain import checks

# What each setting is until it is set.
_settings: Final[dict[str, int | bool]] = {
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
}


def _set_switch(name: str, argument: str, value: bool) -> None:
    _settings[name] = checks.boolean(f"config.set_{name}", argument, value)


def _set_number(name: str, argument: str, value: int, at_least: int = 1) -> None:
    _settings[name] = checks.integer(f"config.set_{name}", argument, value, at_least=at_least)


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Accept whether MindSpore tunes its workers while training.

    Args:
        enable: True or False.
        filepath_prefix: Where it would write what it found.
    """
    _set_switch("enable_autotune", "enable", enable)


def get_enable_autotune() -> bool:
    """Return what `set_enable_autotune` was given; False without it."""
    return bool(_settings["enable_autotune"])


def set_sending_batches(batch_num: int) -> None:
    """Accept how many batches MindSpore sends ahead to a device.

    Args:
        batch_num: At least 0.
    """
    checks.integer("config.set_sending_batches", "batch_num", batch_num, at_least=0)


def set_numa_enable(numa_enable: bool) -> None:
    """Accept whether workers keep to one memory node.

    Args:
        numa_enable: True or False.
    """
    _set_switch("numa_enable", "numa_enable", numa_enable)


def get_numa_enable() -> bool:
    """Return what `set_numa_enable` was given; False without it."""
    return bool(_settings["numa_enable"])


def set_monitor_sampling_interval(interval: int) -> None:
    """Accept milliseconds between two looks of its monitor.

    Args:
        interval: At least 1.
    """
    _set_number("monitor_sampling_interval", "interval", interval)


def get_monitor_sampling_interval() -> int:
    """Return what `set_monitor_sampling_interval` was given; 1000 without it."""
    return _settings["monitor_sampling_interval"]


def set_auto_num_workers(enable: bool) -> None:
    """Accept whether it chooses the number of workers.

    Args:
        enable: True or False.
    """
    _set_switch("auto_num_workers", "enable", enable)


def get_auto_num_workers() -> bool:
    """Return what `set_auto_num_workers` was given; False without it."""
    return bool(_settings["auto_num_workers"])


def set_callback_timeout(timeout: int) -> None:
    """Accept seconds that a dataset callback may take.

    Args:
        timeout: At least 1.
    """
    _set_number("callback_timeout", "timeout", timeout)


def get_callback_timeout() -> int:
    """Return what `set_callback_timeout` was given; 60 without it."""
    return _settings["callback_timeout"]


def set_autotune_interval(interval: int) -> None:
    """Accept steps between two adjustments, 0 for one in each epoch.

    Args:
        interval: At least 0.
    """
    _set_number("autotune_interval", "interval", interval, at_least=0)


def get_autotune_interval() -> int:
    """Return what `set_autotune_interval` was given; 0 without it."""
    return _settings["autotune_interval"]


def set_enable_shared_mem(enable: bool) -> None:
    """Accept whether processes share memory.

    Args:
        enable: True or False.
    """
    _set_switch("enable_shared_mem", "enable", enable)


def get_enable_shared_mem() -> bool:
    """Return what `set_enable_shared_mem` was given; True without it."""
    return bool(_settings["enable_shared_mem"])


def set_auto_offload(offload: bool) -> None:
    """Accept whether transforms run on the device.

    Args:
        offload: True or False.
    """
    _set_switch("auto_offload", "offload", offload)


def get_auto_offload() -> bool:
    """Return what `set_auto_offload` was given; False without it."""
    return bool(_settings["auto_offload"])


def set_enable_watchdog(enable: bool) -> None:
    """Accept whether hung processes are looked for.

    Args:
        enable: True or False.
    """
    _set_switch("enable_watchdog", "enable", enable)


def get_enable_watchdog() -> bool:
    """Return what `set_enable_watchdog` was given; True without it."""
    return bool(_settings["enable_watchdog"])


def set_multiprocessing_timeout_interval(interval: int) -> None:
    """Accept seconds between two warnings about hung processes.

    Args:
        interval: At least 1.
    """
    _set_number("multiprocessing_timeout_interval", "interval", interval)


def get_multiprocessing_timeout_interval() -> int:
    """Return what `set_multiprocessing_timeout_interval` was given; 300 without it."""
    return _settings["multiprocessing_timeout_interval"]


def set_dynamic_shape(is_dynamic: bool) -> None:
    """Accept whether shapes may change from row to row.

    Args:
        is_dynamic: True or False.
    """
    _set_switch("dynamic_shape", "is_dynamic", is_dynamic)


def get_dynamic_shape() -> bool:
    """Return what `set_dynamic_shape` was given; False without it."""
    return bool(_settings["dynamic_shape"])


def set_fast_recovery(fast_recovery: bool) -> None:
    """Accept whether a resumed run skips rows without making them.

    Args:
        fast_recovery: True or False.
    """
    _set_switch("fast_recovery", "fast_recovery", fast_recovery)


def get_fast_recovery() -> bool:
    """Return what `set_fast_recovery` was given; True without it."""
    return bool(_settings["fast_recovery"])
