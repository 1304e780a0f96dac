"""Rewrite a network for mixed precision, by level or by list."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from typing import TypeVar

from mixtrain import checks, nn
from mixtrain.autocast.state import Autocast, autocasting
from mixtrain.dtype import DType, as_dtype, float16
from mixtrain.precision.apply import AppliedPlan, put_in_force
from mixtrain.precision.families import KERAS_FAMILIES, Family
from mixtrain.precision.float8_layers import refuse_delayed
from mixtrain.precision.levels import AmpLevel
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.precision.planner import plan_precision
from mixtrain.precision.rules import Entry
from mixtrain.trace_version import layer_changed

_NetworkT = TypeVar("_NetworkT")


def auto_mixed_precision(
    network: _NetworkT, amp_level: AmpLevel = "O0", dtype: DType | str | None = None, *,
    keep_batchnorm_fp32: bool | None = None, cast_model_type: DType | str | None = None,
) -> _NetworkT:
    """Apply the precision plan of a level to a network, in place.

    Args:
        network: A Cell, Keras layer or Keras model (built); with "auto" also a function, which is not changed.
        amp_level: "O0", "O1", "O2", "O3" or "auto".
        dtype: The half dtype, float16 or bfloat16; float16 by default.
        keep_batchnorm_fp32: Whether normalization is kept in float32; None for the level's rule.
        cast_model_type: Alias of `dtype`.

    Returns:
        The network. Its float outputs are float32, its parameters stay float32. Of a function, one whose operators
        compute by the lists of autocast.

    Raises:
        ValueError: An unknown level or dtype, or `dtype` and `cast_model_type` that differ.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> net = auto_mixed_precision(nn.SequentialCell(nn.Dense(4, 2)), "O3")
        >>> net(mixtrain.Tensor([[1.0, 2.0, 3.0, 4.0]])).dtype.name
        'float32'
    """
    if dtype is not None and cast_model_type is not None and dtype != cast_model_type:
        raise checks.fail_value(
            "auto_mixed_precision", "dtype and cast_model_type must agree", (dtype, cast_model_type), f"dtype={dtype!r}"
        )
    half = dtype if dtype is not None else cast_model_type
    if amp_level == "auto" and isinstance(network, (types.FunctionType, types.MethodType)):
        return autocasting(Autocast(as_dtype(half or float16)))(network)
    return _planned_by_user(
        "auto_mixed_precision", network,
        functools.partial(
            plan_precision, network, amp_level, keep_batchnorm_fp32=keep_batchnorm_fp32, cast_model_type=half
        ),
    )


def custom_mixed_precision(
    network: _NetworkT, *, white_list: Sequence[Entry] | None = None, black_list: Sequence[Entry] | None = None,
    dtype: DType | str = float16,
) -> _NetworkT:
    """Apply the precision plan of a white list or black list to a network, in place.

    Args:
        network: A Cell, Keras layer or Keras model (built).
        white_list: Only these compute in half: layer classes, layers of the network, or path patterns.
        black_list: All but these compute in half.
        dtype: The half dtype, float16 or bfloat16; "float8" for bfloat16 with products in float8.

    Returns:
        The network.

    Raises:
        ValueError: Both lists or neither are passed; an entry matches nothing, or contradicts `to_float`
            (`PrecisionRuleError`).
        TypeError: An entry is not a class, layer or pattern.

    Example:
        >>> import mixtrain.nn as nn
        >>> net = nn.SequentialCell(nn.Dense(4, 3), nn.ReLU(), nn.Dense(3, 2))
        >>> _ = custom_mixed_precision(net, white_list=["2"])
    """
    if (white_list is None) == (black_list is None):
        raise checks.fail_value(
            "custom_mixed_precision",
            "exactly one of white_list and black_list must be given",
            (white_list, black_list),
            "white_list=[nn.Dense]",
        )
    return _planned_by_user(
        "custom_mixed_precision", network,
        functools.partial(
            plan_precision, network, cast_model_type=dtype, white_list=white_list, black_list=black_list
        ),
    )


def _planned_by_user(where: str, network: _NetworkT, planning: Callable[[], PrecisionPlan]) -> _NetworkT:
    """Apply a plan; a Model without a level of its own will plan the network in the same way."""
    put_in_force(AppliedPlan(network, refuse_delayed(where, planning()), planning=planning))
    layer_changed(network)
    return network


def get_white_list() -> list[type]:
    """Return a copy of the layer classes that O1 computes in half.

    Example:
        >>> import mixtrain.nn as nn
        >>> nn.Dense in get_white_list()
        True
    """
    return _classes("matmul", "recurrent")


def get_black_list() -> list[type]:
    """Return a copy of the layer classes that O2 keeps in float32.

    Example:
        >>> import mixtrain.nn as nn
        >>> nn.BatchNorm2d in get_black_list()
        True
    """
    return _classes("normalization")


def _classes(*families: Family) -> list[type]:
    """Return the public layer classes of families: Cells, then Keras layers."""
    public = [getattr(nn, name) for name in nn.__all__]
    cells = [item for item in public if getattr(item, "precision_family", "other") in families]
    return [*cells, *(layer for family in families for layer in KERAS_FAMILIES[family])]
