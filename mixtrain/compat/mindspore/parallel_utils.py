"""What train cells of scripts import of MindSpore's `parallel` to divide gradients by the number of processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mixtrain import process_group
from mixtrain.auto_parallel import get_auto_parallel_context, is_set, set_auto_parallel_context
from mixtrain.lazy_names import serve_names

__all__ = ["auto_parallel_context"]


class _ParallelContext:
    """The settings of `set_auto_parallel_context`, with a method to get and one to set each."""

    def get_device_num_is_set(self) -> bool:
        """Whether ``device_num`` was set."""
        return is_set("device_num")

    def set_all_reduce_fusion_split_indices(self, indices: list[int], group: str = "") -> None:
        """Do nothing: the backend decides which gradients are sent together."""

    set_all_reduce_fusion_split_sizes = set_all_reduce_fusion_split_indices

    def __getattr__(self, name: str) -> Callable[..., Any]:
        action, _, setting = name.partition("_")
        if action == "get":
            return lambda: get_auto_parallel_context(setting)
        if action == "set":
            return lambda value: set_auto_parallel_context(**{setting: value})
        raise AttributeError(f"auto_parallel_context().{name}: there is no such method. Write get_... or set_...")


_CONTEXT = _ParallelContext()


def auto_parallel_context() -> _ParallelContext:
    """Return the settings of parallel training, as an object with a getter and a setter for each.

    Example:
        >>> auto_parallel_context().get_device_num_is_set(), auto_parallel_context().get_parallel_mode()
        (False, 'stand_alone')
    """
    return _CONTEXT


def _getter(setting: str) -> Callable[[], Any]:
    """Return a function that returns a setting."""
    return lambda: get_auto_parallel_context(setting)


# Names that scripts import.
_get_gradients_mean = _getter("gradients_mean")
_get_parallel_mode = _getter("parallel_mode")
_get_enable_parallel_optimizer = _getter("enable_parallel_optimizer")
_get_full_batch = _getter("full_batch")
_get_parameter_broadcast = _getter("parameter_broadcast")
_get_pipeline_stages = _getter("pipeline_stages")


def _get_device_num() -> int:
    """Return the number of processes."""
    return process_group.current().size


_get_stage_device_num = _get_device_num


def _get_global_rank() -> int:
    """Return the rank of the process."""
    return process_group.current().rank


def _is_in_auto_parallel_mode() -> bool:
    """Whether the parallel mode splits the network."""
    return get_auto_parallel_context("parallel_mode") in ("semi_auto_parallel", "auto_parallel")


_is_sharding_propagation = _is_in_auto_parallel_mode


serve_names(__name__)
