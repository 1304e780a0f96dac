"""`Layout` and settings of the search for strategies: what scripts say about sharding, and one device only stores."""

from __future__ import annotations

import copy
import math
from typing import Any, Final

from mixtrain import checks
from mixtrain.lazy_names import serve_names

__all__ = ["Layout", "get_algo_parameters", "reset_algo_parameters", "set_algo_parameters"]

_DEFAULTS: Final[dict[str, bool | float | int]] = {
    "fully_use_devices": False, "elementwise_op_strategy_follow": False, "enable_algo_approxi": False,
    "algo_approxi_epsilon": 0.1, "tensor_slice_align_enable": False, "tensor_slice_align_size": 16,
}
_settings: Final[dict[str, bool | float | int]] = {}
_INTERLEAVED: Final = "interleaved_parallel"


class Layout:
    """How devices are arranged, for `shard`, which has no effect on one device.

    A call with the name of an axis for each axis of a tensor, a tuple of names, or "None", returns the layout of that
    tensor.

    Args:
        device_matrix: The number of devices along each axis of the arrangement.
        alias_name: The names of these axes.
        rank_list: The ranks of the devices, in order; by default from 0.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The lengths do not fit; a name is empty, "None" or there twice; or, of a call, a name is unknown.

    Example:
        >>> Layout((2, 4), ("dp", "mp"))("dp", "None", ("mp",)).to_dict()["tensor_map"]
        (1, -1, (0,))
    """

    def __init__(
        self, device_matrix: tuple[int, ...], alias_name: tuple[str, ...], rank_list: list[int] | None = None
    ) -> None:
        for name, value, kind in (("device_matrix", device_matrix, int), ("alias_name", alias_name, str)):
            checks.instance("Layout", name, value, tuple, 'Layout((1, 1), ("dp", "mp"))')
            for item in value:
                checks.instance("Layout", f"each of {name}", item, kind, 'Layout((1, 1), ("dp", "mp"))')
        count = math.prod(device_matrix)
        ranks = [*range(count)] if rank_list is None else checks.instance("Layout", "rank_list", rank_list, list, "[0]")
        for expected, right in (
            ("alias_name must name each axis of device_matrix", len(alias_name) == len(device_matrix)),
            ('names must differ, and not be "" or "None"', len({*alias_name} - {"", "None"}) == len(alias_name)),
            (f'"{_INTERLEAVED}" must be the last name', _INTERLEAVED not in alias_name[:-1]),
            (f"rank_list must hold {count} ranks, the product of device_matrix", len(ranks) == count),
        ):
            if not right:
                raise checks.fail_value("Layout", expected, (device_matrix, alias_name, rank_list),
                                        'Layout((1, 1), ("dp", "mp"))')
        self._axes, self._names, self._ranks = device_matrix, alias_name, ranks
        self._tensor_map: tuple[Any, ...] | None = None

    def __call__(self, *tensor_map: str | tuple[str, ...]) -> Layout:
        left = [*self._names]

        def index(name: str) -> int:
            if name == "None":
                return -1
            if name not in left:
                raise checks.fail_value("Layout", f"each axis must be one of {self._names}, once", name, 'or "None"')
            left.remove(name)
            return len(self._names) - 1 - self._names.index(name)

        layout = copy.copy(self)
        layout._tensor_map = tuple(
            tuple(map(index, axis)) if isinstance(axis, tuple) else index(axis) for axis in tensor_map
        )
        return layout

    def to_dict(self) -> dict[str, Any]:
        """Return the arrangement, and for each axis of the tensor the index of its axis from the last; -1 for none.

        Raises: ValueError before a call names the axes of a tensor.
        """
        if self._tensor_map is None:
            raise checks.fail_value("Layout.to_dict", "it must be the layout of a tensor", None, 'layout("dp", "None")')
        return {
            "device_matrix": self._axes, "tensor_map": self._tensor_map,
            "interleaved_parallel": _INTERLEAVED in self._names, "alias_name": self._names, "rank_list": self._ranks,
        }


def set_algo_parameters(**settings: bool | float | int) -> None:
    """Store settings of MindSpore's search for sharding strategies, which one device has no use for.

    `**settings`: ``fully_use_devices``, ``elementwise_op_strategy_follow``, ``enable_algo_approxi``,
    ``algo_approxi_epsilon`` (over 0, up to 1), ``tensor_slice_align_enable``, ``tensor_slice_align_size`` (1 to 1024).

    Raises: TypeError or ValueError for a setting that there is not, or a wrong value.

    Example:
        >>> set_algo_parameters(fully_use_devices=True)
        >>> get_algo_parameters("fully_use_devices"), reset_algo_parameters(), get_algo_parameters("fully_use_devices")
        (True, None, False)
    """
    where = "set_algo_parameters"
    for name, value in settings.items():
        kind = type(_DEFAULTS[checks.one_of(where, "setting", name, tuple(_DEFAULTS))])
        if type(value) is not kind:
            raise checks.fail_type(where, f"{name} must be a {kind.__name__}", value, f"{name}={_DEFAULTS[name]}")
        if name == "algo_approxi_epsilon" and not 0 < value <= 1 or (
            name == "tensor_slice_align_size" and not 1 <= value <= 1024
        ):
            raise checks.fail_value(where, f"{name} is out of range", value, f"{name}={_DEFAULTS[name]}")
    _settings.update(settings)


def get_algo_parameters(attr_key: str) -> bool | float | int:
    """Return a setting of `set_algo_parameters`, or its default. `attr_key`: Its name.

    Raises: ValueError: There is no such setting.
    """
    return (_DEFAULTS | _settings)[checks.one_of("get_algo_parameters", "attr_key", attr_key, tuple(_DEFAULTS))]


def reset_algo_parameters() -> None:
    """Reset the settings of `set_algo_parameters` to their defaults."""
    _settings.clear()


serve_names(__name__)
