"""Argument checks; their errors say where, what was expected, what was passed, and what to write instead."""

from __future__ import annotations

import difflib
import inspect
import math
import numbers
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import numpy as np

# Limits of the text of one value in an error.
_MAX_CHARACTERS: Final = 100
_MAX_NAMES: Final = 8
_CONTAINERS: Final = (list, tuple, set, frozenset, Mapping)
# How the notes of `note_call` begin.
_RAISED_IN: Final = "Raised in"


def fail_value(where: str, expected: str, got: Any, write: str) -> ValueError:
    """Build the ValueError ``where: expected ...; got ... . Write ...``."""
    return ValueError(f"{where}: {expected}; got {short_repr(got)}. Write {write}.")


def fail_type(where: str, expected: str, got: Any, write: str) -> TypeError:
    """Build the TypeError ``where: expected ...; got ... . Write ...``."""
    text, kind = short_repr(got), type(got).__name__
    return TypeError(f"{where}: {expected}; got {text if text.startswith(kind) else f'{kind} {text}'}. Write {write}.")


def short_repr(value: Any) -> str:
    """Return the text of a value for an error: short plain values in full, others by type, shape, dtype or length.

    Example:
        >>> short_repr(("valid", 3)), short_repr(np.zeros((2, 3))), short_repr([0.5] * 1000)
        ("('valid', 3)", 'ndarray of shape (2, 3) and dtype float64', 'list of 1000, the first 0.5')
    """
    kind = type(value).__name__
    if isinstance(value, (str, bytes)):
        short = len(value) <= _MAX_CHARACTERS
        return repr(value) if short else f"{value[:_MAX_CHARACTERS]!r} ... of {len(value)} characters"
    if isinstance(value, _CONTAINERS):
        return _shown_container(value)
    if hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic):
        return f"{kind} of shape {value.shape} and dtype {getattr(value.dtype, 'name', value.dtype)}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, types.MethodType)):
        return f"the function {value.__qualname__}"
    return _shown_object(value)


def short_arguments(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """Return the text of the arguments of a call for an error.

    Example:
        >>> short_arguments((np.zeros(2), 0), {"mode": "max"})
        "ndarray of shape (2,) and dtype float64, 0, mode='max'"
    """
    texts = [*map(short_repr, args), *(f"{name}={short_repr(value)}" for name, value in kwargs.items())]
    return ", ".join(texts) or "no arguments"


def note_call(error: BaseException, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> None:
    """Add to an error what raised it and what that was called with; of nested calls only the innermost is noted.

    Example:
        >>> error = ValueError("sizes differ")
        >>> note_call(error, "Dense fc1", (np.zeros((2, 3)),))
        >>> error.__notes__
        ['Raised in Dense fc1, called with ndarray of shape (2, 3) and dtype float64.']
    """
    if not any(note.startswith(_RAISED_IN) for note in getattr(error, "__notes__", ())):
        error.add_note(f"{_RAISED_IN} {name}, called with {short_arguments(args, kwargs or {})}.")


def join_names(names: Iterable[Any]) -> str:
    """Return the text of names for an error; of many, the first few.

    Example:
        >>> join_names(["image", "label"]), join_names(range(1000))
        ('image, label', '0, 1, 2, 3, 4, 5, 6, 7, ... (1000 in all)')
    """
    texts = [str(name) for name in names]
    text = ", ".join(texts)
    if len(text) <= 3 * _MAX_CHARACTERS:
        return text
    return f"{', '.join(texts[:_MAX_NAMES])[: 2 * _MAX_CHARACTERS]}, ... ({len(texts)} in all)"


def _shown_container(value: Any) -> str:
    """Return a short container of plain values in full, another one by its length and first entries."""
    entries = list(value.values()) if isinstance(value, Mapping) else value
    if len(entries) <= _MAX_NAMES and all(map(_is_plain, entries)):
        text = repr(value)
        if len(text) <= _MAX_CHARACTERS:
            return text
    kind = f"{type(value).__name__} of {len(value)}"
    if isinstance(value, Mapping):
        return f"{kind} with keys {', '.join(map(short_repr, list(value)[:3]))}{', ...' if len(value) > 3 else ''}"
    # Of a nested container only the length is shown, as nesting may be arbitrarily deep.
    first = next(iter(value), None)
    nested = f"a {type(first).__name__} of {len(first)}" if isinstance(first, _CONTAINERS) else short_repr(first)
    return f"{kind}, the first {nested}" if len(value) else kind


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return len(value) <= _MAX_NAMES and all(map(_is_plain, value))
    return value is None or isinstance(value, (str, bytes, numbers.Number, np.generic))


def _shown_object(value: Any) -> str:
    """Return the `repr` of a number or object if it is short; else its type, with its length or name."""
    kind = type(value).__name__
    try:
        text = repr(value)
    except Exception:  # A user's class may raise here, which must not hide the error being built.
        text = ""
    if 0 < len(text) <= _MAX_CHARACTERS and "\n" not in text and " at 0x" not in text:
        return text
    if isinstance(value, numbers.Number):
        return f"{kind} of {len(text)} characters" if text else kind
    if isinstance(getattr(value, "name", None), str):
        return f"{kind} named {value.name[:_MAX_CHARACTERS]!r}"
    try:
        return f"{kind} of length {len(value)}"
    except Exception:  # Most objects have no length.
        return f"{kind} object"


def one_of(where: str, name: str, value: Any, allowed: Collection[Any]) -> Any:
    """Return `value` if it is one of `allowed`.

    Raises: ValueError if it is not; the message offers the nearest allowed value.
    """
    try:
        hash(value)
    except TypeError:  # An array or list, for which `in` would compare elementwise.
        pass
    else:
        if value in allowed:
            return value
    choices = [str(choice) for choice in allowed]
    text = value[:_MAX_CHARACTERS] if isinstance(value, str) else short_repr(value)
    suggestion = (nearest(text, choices) or choices)[0]
    raise fail_value(where, f"{name} must be one of {join_names(choices)}", value, f'{name}="{suggestion}"')


def nearest(name: str, known: Iterable[str], *, count: int = 1, cutoff: float = 0.0) -> list[str]:
    """Return the names most similar to `name`, the best match first.

    `name`: The name to look up. `known`: The existing names. `count`: Maximum number of names to return. `cutoff`:
    Minimum similarity, from 0 (nothing in common) to 1 (equal except for case).

    Example:
        >>> nearest("adam", ["SGD", "Adam", "AdamW"])
        ['Adam']
    """
    folded: dict[str, list[str]] = {}
    for candidate in known:
        folded.setdefault(candidate.lower(), []).append(candidate)
    matches = difflib.get_close_matches(name.lower(), folded, n=count, cutoff=cutoff)

    def equal_letters(candidate: str) -> int:  # Case decides only between names that differ in nothing else.
        return sum(a == b for a, b in zip(candidate, name, strict=False))

    return [max(folded[match], key=equal_letters) for match in matches]


def integer(where: str, name: str, value: Any, *, at_least: int, example: int | None = None) -> int:
    """Return `value` as an int that is at least `at_least`; a bool or a float is not an int."""
    write = f"{name}={_near_integer(value, at_least) or (at_least if example is None else example)}"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise fail_type(where, f"{name} must be an int", value, write)
    if value < at_least:
        raise fail_value(where, f"{name} must be at least {at_least}", value, write)
    return int(value)


def _near_integer(value: Any, at_least: int) -> int | None:
    """Return the int that a float or a text of digits was meant for, if it is at least `at_least`."""
    is_float = isinstance(value, numbers.Real) and not isinstance(value, (numbers.Integral, np.bool_))
    if not (is_float and math.isfinite(value) or isinstance(value, str) and value.isascii() and value.isdigit()):
        return None
    return int(value) if int(value) >= at_least else None


def keywords(where: str, unknown: Mapping[str, Any], function: Callable[..., Any], *others: Callable[..., Any]) -> None:
    """Refuse keyword arguments that a function does not have; name the nearest, or another function that has them.

    `where`: The function, for the error. `unknown`: The arguments that its signature does not name; those that an
    overload names are not refused. `function`: The function. `*others`: Methods that may be meant.

    Raises: TypeError if there is an argument.
    """
    known = _argument_names(function) if unknown else []
    for name in [name for name in unknown if name not in known]:
        for other in others:
            if name in _argument_names(other):
                raise TypeError(
                    f"{where}: there is no argument {name!r}, which {other.__name__} has. "
                    f"Write model.{other.__name__}(x, y, ...)."
                )
        near = nearest(name, known, cutoff=0.5)
        value = unknown[name]
        as_near = f"{near[0]}={value!r}" if near and _is_plain(value) else f"it as {near[0]}" if near else None
        write, got = as_near or f"one of {join_names(known)}", f"{name}={short_repr(value)}"
        raise TypeError(f"{where}: there is no argument {name!r}; got {got}. Write {write}.")


def _argument_names(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's arguments, in all its overloads."""
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    names: dict[str, None] = {}
    for form in typing.get_overloads(function) or [function]:
        names |= {name: None for name, item in inspect.signature(form).parameters.items() if item.kind not in kinds}
    return [name for name in names if name != "self"]


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
    """Return `value` as a finite float within the bounds; a bool is not a number."""
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
