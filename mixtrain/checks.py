"""Argument checks whose errors say where, what was expected, what came, and what to write instead."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Collection
from typing import Any


def fail_value(where: str, expected: str, got: Any, write: str) -> ValueError:
    """Build the ValueError ``where: expected ...; got ... . Write ...``."""
    return ValueError(f"{where}: {expected}; got {got!r}. Write {write}.")


def fail_type(where: str, expected: str, got: Any, write: str) -> TypeError:
    """Build the TypeError ``where: expected ...; got ... . Write ...``."""
    return TypeError(f"{where}: {expected}; got {type(got).__name__} {got!r}. Write {write}.")


def one_of(where: str, name: str, value: Any, allowed: Collection[Any]) -> Any:
    """Return `value` if it is one of `allowed`.

    Raises:
        ValueError: It is not; the message offers the nearest allowed value.
    """
    if value in allowed:
        return value
    choices = [str(choice) for choice in allowed]
    folded = {choice.lower(): choice for choice in choices}
    near = difflib.get_close_matches(str(value).lower(), folded, n=1, cutoff=0.0)
    nearest = folded[near[0]] if near else choices[0]
    raise fail_value(where, f"{name} must be one of {', '.join(choices)}", value, f'{name}="{nearest}"')


def integer(where: str, name: str, value: Any, *, at_least: int, example: int | None = None) -> int:
    """Return `value` as an int that is at least `at_least`; a bool or a float is not an int."""
    write = f"{name}={at_least if example is None else example}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise fail_type(where, f"{name} must be an int", value, write)
    if value < at_least:
        raise fail_value(where, f"{name} must be at least {at_least}", value, write)
    return int(value)


def number(
    where: str,
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    example: float | None = None,
) -> float:
    """Return `value` as a finite float inside the given bounds; a bool is not a number."""
    write = f"{name}={example if example is not None else at_least if at_least is not None else 1.0}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise fail_type(where, f"{name} must be a number", value, write)
    result = float(value)
    if not math.isfinite(result):
        raise fail_value(where, f"{name} must be finite", value, write)
    if at_least is not None and result < at_least:
        raise fail_value(where, f"{name} must be at least {at_least:g}", value, write)
    if above is not None and result <= above:
        raise fail_value(where, f"{name} must be greater than {above:g}", value, write)
    if at_most is not None and result > at_most:
        raise fail_value(where, f"{name} must be at most {at_most:g}", value, write)
    if below is not None and result >= below:
        raise fail_value(where, f"{name} must be less than {below:g}", value, write)
    return result


def boolean(where: str, name: str, value: Any) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool):
        raise fail_type(where, f"{name} must be True or False", value, f"{name}=True")
    return value


def instance(where: str, name: str, value: Any, kinds: type | tuple[type, ...], write: str) -> Any:
    """Return `value` if it is an instance of `kinds`."""
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
        raise fail_type(where, f"{name} must be a {names}", value, write)
    return value
