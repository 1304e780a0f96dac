"""Run-time settings of the process: execution mode, device target and compilation of steps."""

from __future__ import annotations

from typing import Any, Final

from mixtrain import checks, execution
from mixtrain.auto_parallel import (  # noqa: F401  MindSpore has these names in `context`, too.
    ParallelMode,
    get_auto_parallel_context,
    get_ps_context,
    reset_auto_parallel_context,
    reset_ps_context,
    set_auto_parallel_context,
    set_ps_context,
)
from mixtrain.lazy_names import serve_names

GRAPH_MODE: Final = 0
PYNATIVE_MODE: Final = 1

# MindSpore settings without a meaning here, accepted so that scripts run.
_WITHOUT_EFFECT: Final = frozenset({
    "device_id", "save_graphs", "save_graphs_path", "enable_graph_kernel", "graph_kernel_flags",
    "enable_auto_mixed_precision", "mempool_block_size", "max_call_depth", "max_device_memory",
    "reserve_class_name_in_scope", "jit_config", "auto_tune_mode", "ascend_config", "jit_syntax_level",
    "enable_reduce_precision", "runtime_num_threads", "deterministic", "enable_compile_cache",
    "compile_cache_path", "pynative_synchronize", "variable_memory_max_size", "env_config_path", "precompile_only",
    "enable_ge", "print_file_path",
})
_SETTINGS: Final = ("mode", "device_target", "jit_level", *sorted(_WITHOUT_EFFECT))
# The values of those without effect.
_ignored: dict[str, Any] = {}


def set_context(**settings: Any) -> None:
    """Set how this process runs networks.

    Args:
        **settings: ``mode``: `GRAPH_MODE` (0, the default: steps are compiled) or `PYNATIVE_MODE` (1: steps run
            eagerly, to debug them). ``device_target``: "CPU", "GPU" or "Ascend" (or "Davinci", its first name);
            if the machine has no such device, a warning names the one in use. ``jit_level``: "auto" (the backend
            decides by device and dtype), "O0" (plain graph) or "O1"/"O2" (XLA). Other settings of MindSpore's
            `set_context` are accepted without effect.

    Raises:
        TypeError: A setting has the wrong type.
        ValueError: A setting has an unknown name or value.

    Example:
        >>> import mixtrain
        >>> mixtrain.set_context(mode=mixtrain.GRAPH_MODE)
    """
    for name, value in settings.items():
        if name == "mode":
            if isinstance(value, bool) or value not in (GRAPH_MODE, PYNATIVE_MODE):
                raise checks.fail_value(
                    "set_context", "mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1)", value, "mode=mixtrain.GRAPH_MODE"
                )
            execution.current.graph_mode = execution.current.graph_mode_is_set = value == GRAPH_MODE
        elif name == "device_target":
            value = "Ascend" if value == "Davinci" else value  # Its name in the first versions of MindSpore.
            execution.current.device_target = checks.one_of("set_context", name, value, ("CPU", "GPU", "Ascend"))
        elif name == "jit_level":
            execution.current.jit_level = checks.one_of("set_context", name, value, ("auto", "O0", "O1", "O2"))
        elif name in _WITHOUT_EFFECT:
            _ignored[name] = value
        else:
            checks.one_of("set_context", "setting", name, _SETTINGS)


def get_context(attr_key: str) -> Any:
    """Return one setting of `set_context`.

    Args:
        attr_key: The setting: "mode", "device_target", "jit_level", or one that is accepted without effect.

    Returns:
        The value.

    Raises:
        ValueError: There is no such setting.

    Example:
        >>> import mixtrain
        >>> mixtrain.get_context("mode") in (mixtrain.GRAPH_MODE, mixtrain.PYNATIVE_MODE)
        True
    """
    if attr_key == "mode":
        return GRAPH_MODE if execution.current.graph_mode else PYNATIVE_MODE
    if attr_key == "jit_level":
        return execution.current.jit_level
    if attr_key == "device_target":
        return execution.current.device_target or "CPU"
    checks.one_of("get_context", "setting", attr_key, _SETTINGS)
    return _ignored.get(attr_key, 0 if attr_key == "device_id" else None)


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Choose the device, as ``set_context(device_target=..., device_id=...)`` does.

    Args:
        device_target: "CPU", "GPU" or "Ascend".
        device_id: Number of the device; without effect.

    Raises:
        TypeError: `device_id` is not an int.
        ValueError: Another target, or a negative number.

    Example:
        >>> import mixtrain
        >>> mixtrain.set_device("CPU")
    """
    if device_id is not None:
        checks.integer("set_device", "device_id", device_id, at_least=0)
    set_context(device_target=device_target)


serve_names(__name__)
