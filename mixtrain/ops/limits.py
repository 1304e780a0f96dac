"""Clipping of elements to bounds."""

from __future__ import annotations

from collections.abc import Callable

import keras

from mixtrain import checks
from mixtrain.dtype import is_float
from mixtrain.ops.arithmetic import larger, maximum, minimum, smaller
from mixtrain.ops.elementwise import binary, renamed
from mixtrain.ops.inputs import is_number, tensor
from mixtrain.typing import Tensor, TensorLike, Tree


def clip_by_value(
    x: TensorLike, clip_value_min: TensorLike | None = None, clip_value_max: TensorLike | None = None
) -> Tensor:
    """Clip every element of `x`, a tensor or a tuple or list, to `clip_value_min` and `clip_value_max`.

    A bound is a number, a tensor, or None for none; where the lower is above the upper one, the upper one is returned.
    Example: ``ops.clip_by_value(Tensor([-2.0, 0.5, 3.0]), 0.0, 1.0)`` is ``[0.0, 0.5, 1.0]``.
    """
    if clip_value_min is None and clip_value_max is None:
        raise checks.fail_value("ops.clip_by_value", "a bound must be given", None, "clip_value_min=0.0")
    return _clipped(x, (clip_value_min, maximum), (clip_value_max, minimum))


def clipped(x: Tensor, low: float, high: float) -> Tensor:
    """Return `clip_by_value` of a backend tensor and two numbers."""
    return smaller(larger(x, low), high)


def _clipped(x: Tree, *bounds: tuple[TensorLike | None, Callable[[TensorLike, TensorLike], Tensor]]) -> Tree:
    """Return a tensor, or several, after the function of each bound that there is."""
    if isinstance(x, (list, tuple)):
        return type(x)(_clipped(item, *bounds) for item in x)
    result = tensor("ops.clip_by_value", x)
    for bound, limit in bounds:
        if bound is not None:
            # A number takes the dtype of the tensor: integers stay integers.
            keeps_dtype = is_float(result.dtype) or not is_number(bound)
            result = limit(result, bound if keeps_dtype else int(bound))
    return result


def _at_least(x: TensorLike, bound: TensorLike) -> Tensor:
    return binary("ops.clamp", lambda x, low: keras.ops.where(x < low, low, x), x, bound)


def _at_most(x: TensorLike, bound: TensorLike) -> Tensor:
    return binary("ops.clamp", lambda x, high: keras.ops.where(x > high, high, x), x, bound)


def clamp(input: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """`clip_by_value`: clip `input` to `min` and `max`; its derivative at a bound is 1, not shared with the bound."""
    if min is None and max is None:
        raise checks.fail_value("ops.clamp", "at least one of 'min' or 'max' must not be None", None, "min=0.0")
    for bound in (min, max):
        if isinstance(bound, bool):
            raise checks.fail_value("ops.clamp", "a bound must not be bool", bound, "min=0.0")
    return _clipped(input, (min, _at_least), (max, _at_most))


clip = renamed(clamp, "clip")
