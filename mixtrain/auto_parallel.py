"""Settings of parallel training."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any, Final

from mixtrain import checks, process_group


class ParallelMode:
    """Names of the parallel modes, which make no difference to a single process.

    Example:
        >>> ParallelMode.DATA_PARALLEL
        'data_parallel'
    """

    STAND_ALONE: Final = "stand_alone"
    DATA_PARALLEL: Final = "data_parallel"
    HYBRID_PARALLEL: Final = "hybrid_parallel"
    SEMI_AUTO_PARALLEL: Final = "semi_auto_parallel"
    AUTO_PARALLEL: Final = "auto_parallel"
    MODE_LIST: Final = ("stand_alone", "data_parallel", "hybrid_parallel", "semi_auto_parallel", "auto_parallel")


_DEFAULTS: Final[Mapping[str, Any]] = types.MappingProxyType({
    "device_num": 1, "global_rank": 0, "pipeline_stages": 1,
    "gradients_mean": False, "mirror_mean": False, "gradient_fp32_sync": True, "loss_repeated_mean": True,
    "parallel_mode": ParallelMode.STAND_ALONE,
    "auto_parallel_search_mode": "recursive_programming", "search_mode": "recursive_programming",
    "parameter_broadcast": False, "strategy_ckpt_load_file": "", "strategy_ckpt_save_file": "",
    "strategy_ckpt_config": None, "full_batch": False, "enable_parallel_optimizer": False,
    "all_reduce_fusion_config": [], "pipeline_result_broadcast": False, "pipeline_config": None,
    "grad_accumulation_step": 1, "parallel_optimizer_config": None, "comm_fusion": None,
    "dataset_strategy": "data_parallel", "enable_alltoall": False, "group_ckpt_save_file": "",
    "sharding_propagation": False, "communi_parallel_mode": "all_group_parallel",
    "optimizer_weight_shard_size": -1, "auto_pipeline": False,
})

_PS_DEFAULTS: Final[Mapping[str, Any]] = types.MappingProxyType({
    "enable_ps": False, "config_file_path": "", "enable_ssl": False,
})


def _fixed_settings() -> dict[str, int]:
    """Return the settings with a single valid value, which the group of processes determines."""
    group = process_group.current()
    return {"device_num": group.size, "global_rank": group.rank, "pipeline_stages": 1}


def set_auto_parallel_context(**settings: Any) -> None:
    """Set how training is distributed over the processes that `communication.init` has joined.

    With ``parallel_mode=ParallelMode.DATA_PARALLEL``, train cells and Models created afterwards train on the batches of
    all processes: they start from the weights of rank 0, and each step reduces the gradients over all processes. With
    one process the settings are kept without effect.

    Args:
        **settings: MindSpore's settings, such as ``parallel_mode``, ``gradients_mean`` (whether gradients are
            averaged over processes; False, the default, sums them), ``device_num`` (the number of processes).
            Settings of other modes are accepted without effect.

    Raises:
        ValueError: An unknown setting or mode, or a number of devices or a rank other than the group's.

    Example:
        >>> set_auto_parallel_context(parallel_mode=ParallelMode.DATA_PARALLEL, gradients_mean=True, device_num=1)
        >>> get_auto_parallel_context("parallel_mode")
        'data_parallel'
        >>> reset_auto_parallel_context()
    """
    where = "set_auto_parallel_context"
    for name, value in settings.items():  # All are checked before any is stored.
        checks.one_of(where, "setting", name, tuple(_DEFAULTS))
        if name == "parallel_mode":
            checks.one_of(where, name, value, ParallelMode.MODE_LIST)
        expected = _fixed_settings().get(name, value)
        if value != expected:
            reason = "training runs in one process" if process_group.current().size == 1 else "the group sets it"
            write = f"{name}={expected}"
            if not process_group.has_joined():
                write = f"communication.init() before, or {write}"
            raise checks.fail_value(where, f"{name} must be {expected}: {reason}", value, write)
    process_group.settings.update(settings)


def get_auto_parallel_context(attr_key: str) -> Any:
    """Return one setting of `set_auto_parallel_context`.

    Args:
        attr_key: Name of the setting.

    Returns:
        The value that was set, or the default.

    Raises:
        ValueError: There is no such setting.

    Example:
        >>> get_auto_parallel_context("device_num")
        1
    """
    checks.one_of("get_auto_parallel_context", "attr_key", attr_key, tuple(_DEFAULTS))
    return process_group.settings.get(attr_key, _fixed_settings().get(attr_key, _DEFAULTS[attr_key]))


def is_set(attr_key: str) -> bool:
    """Whether `set_auto_parallel_context` was called with a setting. `attr_key`: Name of the setting."""
    return attr_key in process_group.settings


def reset_auto_parallel_context() -> None:
    """Reset every setting to its default."""
    process_group.settings.clear()


def set_ps_context(**settings: Any) -> None:
    """Set up parameter-server training, which is not available; ``enable_ps=False`` is accepted.

    Args:
        **settings: MindSpore's settings.

    Raises:
        ValueError: An unknown setting, or ``enable_ps=True``.

    Example:
        >>> set_ps_context(enable_ps=False)
    """
    for name, value in settings.items():
        checks.one_of("set_ps_context", "setting", name, tuple(_PS_DEFAULTS))
        if name == "enable_ps" and value:
            raise checks.fail_value(
                "set_ps_context", "enable_ps must be False: there is no parameter server here", value, "enable_ps=False"
            )


def get_ps_context(attr_key: str) -> Any:
    """Return one setting of `set_ps_context`: always its default.

    Args:
        attr_key: Name of the setting.

    Raises:
        ValueError: There is no such setting.

    Example:
        >>> get_ps_context("enable_ps")
        False
    """
    return _PS_DEFAULTS[checks.one_of("get_ps_context", "attr_key", attr_key, tuple(_PS_DEFAULTS))]


def reset_ps_context() -> None:
    """Do nothing: every setting of `set_ps_context` has its default. Source: `mindspore.reset_ps_context`."""
