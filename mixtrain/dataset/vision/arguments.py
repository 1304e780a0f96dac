"""Checks of arguments that image transforms share: sizes, ranges, paddings, colors and enumerations."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, TypeVar

from mixtrain import checks
from mixtrain.dataset.vision.enums import Border, Inter

EnumT = TypeVar("EnumT", bound=enum.Enum)


def enum_member(where: str, name: str, value: Any, enumeration: type[EnumT]) -> EnumT:
    """Return `value` if it is a member of an enumeration."""
    if not isinstance(value, enumeration):
        members = ", ".join(f"{enumeration.__name__}.{member}" for member in enumeration.__members__)
        raise checks.fail_type(
            where, f"{name} must be one of {members}", value, f"{name}=vision.{members.split(', ')[0]}"
        )
    return value


def interpolation(where: str, value: Any, name: str = "interpolation") -> Inter:
    """Return `value` if it is an interpolation."""
    return enum_member(where, name, value, Inter)


def border(where: str, value: Any) -> Border:
    """Return `value` if it is a border."""
    return enum_member(where, "padding_mode", value, Border)


def pair(where: str, name: str, value: Any, *, at_least: int = 1) -> tuple[int, int]:
    """Return an int twice, or a pair of ints."""
    values = value if isinstance(value, (list, tuple)) else (value, value)
    if len(values) != 2:
        raise checks.fail_value(where, f"{name} must be an int or two ints", value, f"{name}=(224, 224)")
    first, second = (checks.integer(where, name, item, at_least=at_least, example=224) for item in values)
    return first, second


def probability(where: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    return checks.number(where, "prob", value, at_least=0.0, at_most=1.0, example=0.5)


def limits(
    where: str, name: str, value: Any, *, at_least: float | None = None, at_most: float | None = None, example: str
) -> tuple[float, float]:
    """Return a pair of numbers, the smaller first."""
    write = f"{name}={example}"
    checks.instance(where, name, value, (list, tuple), write)
    if len(value) != 2:
        raise checks.fail_value(where, f"{name} must be two numbers, (min, max)", value, write)
    low, high = (checks.number(where, name, item, at_least=at_least, at_most=at_most) for item in value)
    if low > high:
        raise checks.fail_value(where, f"{name} must be (min, max), the smaller first", value, write)
    return low, high


def degrees_range(where: str, value: Any) -> tuple[float, float]:
    """Return a range of angles: (min, max), or a number d for (-d, d)."""
    if isinstance(value, (list, tuple)):
        return limits(where, "degrees", value, example="(-30, 30)")
    maximum = checks.number(where, "degrees", value, at_least=0.0, example=30)
    return -maximum, maximum


def color(where: str, value: Any) -> tuple[int, ...]:
    """Return a fill value: one number from 0 to 255, or three."""
    values: Sequence[Any] = value if isinstance(value, (list, tuple)) else (value,)
    if len(values) not in (1, 3):
        raise checks.fail_value(where, "fill_value must be one int or three", value, "fill_value=(0, 0, 0)")
    for item in values:
        if checks.integer(where, "fill_value", item, at_least=0) > 255:
            raise checks.fail_value(where, "fill_value must be at most 255", value, "fill_value=0")
    return tuple(values)


def margins(where: str, value: Any) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom of one int, two (left and right, top and bottom) or these four."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    if len(values) not in (1, 2, 4):
        raise checks.fail_value(where, "padding must be one, two or four ints", value, "padding=4")
    widths = [checks.integer(where, "padding", item, at_least=0) for item in values]
    left, top, right, bottom = widths * (4 // len(widths))
    return left, top, right, bottom
