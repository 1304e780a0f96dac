"""MindSpore's settings of its worker processes: they can be set and read, but have no effect here."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from typing import Any, Final

from mixtrain import checks

# The settings that were set; the others have MindSpore's defaults.
_settings: Final[dict[str, Any]] = {}


class ErrorSamplesMode(enum.IntEnum):
    """How rows that fail are handled; here only `RETURN`, which raises the error, is supported.

    Example:
        >>> ErrorSamplesMode.RETURN.value
        0
    """

    RETURN = 0
    REPLACE = 1
    SKIP = 2


def _setting(
    name: str, argument: str, default: bool | int | str | None, what: str, *, allowed: int | tuple[str, ...] = 1
) -> tuple[Callable[..., None], Callable[[], Any]]:
    """Return the setter and the getter of a setting, whose kind is that of its default.

    Args: what, allowed: What the setter accepts, for its docstring; and the minimum of an int, or the strings.
    """
    kind, said = ("bool", "True or False") if isinstance(default, bool) else ("int", f"at least {allowed}")
    if isinstance(allowed, tuple):
        kind, said = "str", " or ".join(f'"{value}"' for value in allowed)
    where = f"config.set_{name}"

    def set_value(*args: Any, **kwargs: Any) -> None:
        (value,) = inspect.signature(set_value).bind(*args, **kwargs).args
        if kind == "bool":
            _settings[name] = checks.boolean(where, argument, value)
        elif isinstance(allowed, tuple):
            _settings[name] = checks.one_of(where, argument, value, allowed)
        else:
            _settings[name] = checks.integer(where, argument, value, at_least=allowed)

    def get_value() -> Any:
        return _settings.get(name, default)

    shown = f'"{default}"' if isinstance(default, str) else default
    _named(set_value, f"set_{name}", f"Accept {what}. `{argument}`: {said}.", "None", **{argument: kind})
    result = f"{kind} | None" if default is None else kind
    _named(get_value, f"get_{name}", f"Return the value passed to `set_{name}`; {shown} by default.", result)
    return set_value, get_value


def _named(function: Callable[..., Any], name: str, text: str, result: str, **arguments: str) -> None:
    """Give a function its name, docstring and signature."""
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__annotations__ = text, {**arguments, "return": result}
    parameters = [
        inspect.Parameter(argument, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind)
        for argument, kind in arguments.items()
    ]
    function.__signature__ = inspect.Signature(parameters, return_annotation=result)  # type: ignore[attr-defined]


set_numa_enable, get_numa_enable = _setting(
    "numa_enable", "numa_enable", False, "whether MindSpore binds workers to one NUMA node")
set_monitor_sampling_interval, get_monitor_sampling_interval = _setting(
    "monitor_sampling_interval", "interval", 1000, "the sampling interval of MindSpore's monitor, in milliseconds")
set_auto_num_workers, get_auto_num_workers = _setting(
    "auto_num_workers", "enable", False, "whether MindSpore chooses the number of workers")
set_callback_timeout, get_callback_timeout = _setting(
    "callback_timeout", "timeout", 60, "the timeout of a dataset callback, in seconds")
set_autotune_interval, get_autotune_interval = _setting(
    "autotune_interval", "interval", 0,
    "the number of steps between two adjustments of autotune; 0: once in each epoch", allowed=0)
set_enable_shared_mem, get_enable_shared_mem = _setting(
    "enable_shared_mem", "enable", True, "whether MindSpore's processes share memory")
set_auto_offload, get_auto_offload = _setting(
    "auto_offload", "offload", False, "whether transforms run on the device")
set_enable_watchdog, get_enable_watchdog = _setting(
    "enable_watchdog", "enable", True, "whether MindSpore watches for processes that hang")
set_multiprocessing_timeout_interval, get_multiprocessing_timeout_interval = _setting(
    "multiprocessing_timeout_interval", "interval", 300,
    "the interval of warnings about processes that hang, in seconds")
set_dynamic_shape, get_dynamic_shape = _setting(
    "dynamic_shape", "is_dynamic", False, "whether shapes may differ between rows")
set_fast_recovery, get_fast_recovery = _setting(
    "fast_recovery", "fast_recovery", True, "whether a resumed run skips rows without computing them")
set_multiprocessing_start_method, get_multiprocessing_start_method = _setting(
    "multiprocessing_start_method", "start_method", "fork",
    "how MindSpore starts its worker processes; threads are used here", allowed=("fork", "spawn"))
set_video_backend, get_video_backend = _setting(
    "video_backend", "backend", None, "which device MindSpore decodes videos on; videos are not supported here",
    allowed=("CPU", "Ascend"))


def set_enable_autotune(enable: bool, filepath_prefix: str | None = None) -> None:
    """Accept whether MindSpore tunes its workers while training.

    Args:
        enable: True or False.
        filepath_prefix: Where MindSpore would write the configuration it found.
    """
    _settings["enable_autotune"] = checks.boolean("config.set_enable_autotune", "enable", enable)


def get_enable_autotune() -> bool:
    """Return the value passed to `set_enable_autotune`; False by default."""
    return bool(_settings.get("enable_autotune", False))


def set_sending_batches(batch_num: int) -> None:
    """Accept how many batches MindSpore sends to a device in advance. `batch_num`: at least 0."""
    checks.integer("config.set_sending_batches", "batch_num", batch_num, at_least=0)


def set_debug_mode(debug_mode_flag: bool, debug_hook_list: list[Any] | None = None) -> None:
    """Accept whether MindSpore runs transforms in sequence in this process, as they run here.

    Args:
        debug_mode_flag: True or False.
        debug_hook_list: Must be empty or None: hooks between transforms are not supported.
    """
    if debug_hook_list:
        raise NotImplementedError(
            "config.set_debug_mode: hooks between transforms are not called here. Write a function of map that looks."
        )
    _settings["debug_mode"] = checks.boolean("config.set_debug_mode", "debug_mode_flag", debug_mode_flag)


def get_debug_mode() -> bool:
    """Return the value passed to `set_debug_mode`; False by default."""
    return bool(_settings.get("debug_mode", False))


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
