"""Checks of the kernel size, stride, dilation and padding arguments of convolutions and poolings."""

from __future__ import annotations

import numbers
from typing import Any

from mixtrain import checks
from mixtrain.ops.windows import Pads, Pair, Window


def pair(where: str, name: str, value: Any) -> Pair:
    """Convert an int, or a tuple of one or two, to (height, width), both at least 1."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if len(values) not in (1, 2):
        raise checks.fail_value(where, f"{name} must be an int or two of them", value, f"{name}=(3, 3)")
    height, width = (checks.integer(where, name, item, at_least=1, example=3) for item in (values[0], values[-1]))
    return height, width


def window(where: str, name: str, value: Any, rank: int, *, at_least: int = 1) -> Window:
    """Convert an int, or a tuple of `rank` ints, to a tuple of `rank` ints."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank
    if len(values) != rank:
        count = {2: "two", 3: "three"}[rank]
        example = tuple(range(at_least, at_least + rank))
        raise checks.fail_value(where, f"{name} must be an int or {count} of them", value, f"{name}={example}")
    return tuple(checks.integer(where, name, item, at_least=at_least, example=3) for item in values)


_PADDING_AXES = {2: "(top, bottom, left, right)", 3: "(head, tail, top, bottom, left, right)"}


def conv_padding(where: str, pad_mode: str, padding: Any, rank: int = 2) -> Pads:
    """Convert a convolution's `padding` to ((top, bottom), (left, right)), with (head, tail) first for volumes.

    Raises: ValueError: `padding` is not 0 although `pad_mode` is not "pad", or is neither one int nor two per axis.
    """
    values = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * rank)
    if len(values) != 2 * rank:
        example = (1, 1, 2, 2, 1, 1)[: 2 * rank]
        raise checks.fail_value(
            where, f"padding must be an int or {_PADDING_AXES[rank]}", padding, f"padding={example}"
        )
    widths = [checks.integer(where, "padding", item, at_least=0) for item in values]
    check_unpadded(where, pad_mode, padding, any(widths))
    return tuple(zip(widths[::2], widths[1::2], strict=True))


def check_unpadded(where: str, pad_mode: str, padding: Any, padded: bool) -> None:
    """Raise a ValueError if padding is requested and `pad_mode` does not use it."""
    if padded and pad_mode != "pad":
        raise checks.fail_value(
            where, f'padding must be 0 with pad_mode="{pad_mode}"', padding,
            f'pad_mode="pad", padding={checks.short_repr(padding)}',
        )


def pool_padding(where: str, pad_mode: str, padding: Any, kernel_size: Pair) -> Pads:
    """Convert a pooling's `padding`, an int or (height, width), to ((top, bottom), (left, right)).

    Raises: ValueError: `padding` is not 0 although `pad_mode` is not "pad", or is more than half of `kernel_size`.
    """
    values = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,)
    if len(values) not in (1, 2):
        raise checks.fail_value(where, "padding must be an int or (height, width)", padding, "padding=(1, 1)")
    height, width = (checks.integer(where, "padding", item, at_least=0) for item in (values[0], values[-1]))
    check_unpadded(where, pad_mode, padding, bool(height or width))
    if height > kernel_size[0] // 2 or width > kernel_size[1] // 2:
        raise checks.fail_value(
            where, f"padding must be at most half of kernel_size {kernel_size}", padding, "padding=0"
        )
    return (height, height), (width, width)


def is_integral(value: Any) -> bool:
    """Whether `value` is an int but not a bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
