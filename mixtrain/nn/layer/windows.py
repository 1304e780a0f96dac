"""Sizes, strides and padding of a window that slides over an image, sequence or volume."""

from __future__ import annotations

import numbers
from typing import Any

from mixtrain import checks
from mixtrain.ops.windows import Pair, Sides, Window


def pair(where: str, name: str, value: Any) -> Pair:
    """Return an int, or a tuple of one or two, as (height, width), both at least 1."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(values) not in (1, 2):
        raise checks.fail_value(where, f"{name} must be an int or two of them", value, f"{name}=(3, 3)")
    first, last = (checks.integer(where, name, one, at_least=1, example=3) for one in (values[0], values[-1]))
    return first, last


def window(where: str, name: str, value: Any, rank: int, *, at_least: int = 1) -> Window:
    """Return an int, or a tuple of `rank` of them, as a tuple of `rank` ints."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank
    if len(values) != rank:
        count = {2: "two", 3: "three"}[rank]
        example = tuple(range(at_least, at_least + rank))
        raise checks.fail_value(where, f"{name} must be an int or {count} of them", value, f"{name}={example}")
    return tuple(checks.integer(where, name, one, at_least=at_least, example=3) for one in values)


_SIDE_NAMES = {2: "(top, bottom, left, right)", 3: "(head, tail, top, bottom, left, right)"}


def sides(where: str, pad_mode: str, padding: Any, rank: int = 2) -> Sides:
    """Return a convolution's `padding` as ((top, bottom), (left, right)), with (head, tail) first for volumes.

    Raises:
        ValueError: It is not 0 although `pad_mode` is not "pad", or it is neither one int nor two for each axis.
    """
    values = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * rank)
    if len(values) != 2 * rank:
        example = (1, 1, 2, 2, 1, 1)[: 2 * rank]
        raise checks.fail_value(
            where, f"padding must be an int or {_SIDE_NAMES[rank]}", padding, f"padding={example}"
        )
    around = [checks.integer(where, "padding", one, at_least=0) for one in values]
    check_unpadded(where, pad_mode, padding, any(around))
    return tuple(zip(around[::2], around[1::2], strict=True))


def check_unpadded(where: str, pad_mode: str, padding: Any, padded: bool) -> None:
    """Raise a ValueError where padding is asked for and `pad_mode` has no use for it."""
    if padded and pad_mode != "pad":
        raise checks.fail_value(
            where, f'padding must be 0 with pad_mode="{pad_mode}"', padding,
            f'pad_mode="pad", padding={checks.shown(padding)}',
        )


def pool_sides(where: str, pad_mode: str, padding: Any, kernel: Pair) -> Sides:
    """Return a pooling's `padding`, one int or (height, width), as ((top, bottom), (left, right)).

    Raises:
        ValueError: It is not 0 although `pad_mode` is not "pad", or it is more than half the window.
    """
    values = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,)
    if len(values) not in (1, 2):
        raise checks.fail_value(where, "padding must be an int or (height, width)", padding, "padding=(1, 1)")
    high, wide = (checks.integer(where, "padding", one, at_least=0) for one in (values[0], values[-1]))
    check_unpadded(where, pad_mode, padding, bool(high or wide))
    if high > kernel[0] // 2 or wide > kernel[1] // 2:
        raise checks.fail_value(where, f"padding must be at most half of kernel_size {kernel}", padding, "padding=0")
    return (high, high), (wide, wide)


def is_integral(value: Any) -> bool:
    """Whether `value` is an int and no bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
