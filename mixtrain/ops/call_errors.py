"""Errors of operators that no check foresaw: with the operator's name, its arguments and the backend's reason."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from mixtrain import backend
from mixtrain.boundary import mode
from mixtrain.checks import short_arguments

# The classes of such errors; a subclass may carry a meaning that callers rely on, as JAX's tracer errors do, and stays.
_CONVERTED: Final[dict[type[Exception], type[Exception]]] = {
    ValueError: ValueError, KeyError: ValueError, ZeroDivisionError: ValueError, IndexError: IndexError,
    TypeError: TypeError, AttributeError: TypeError, **dict.fromkeys(backend.VALUE_ERRORS, ValueError),
}
CONVERTED_ERRORS: Final = tuple(_CONVERTED)


def raise_explained(where: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> NoReturn:
    """Raise the error of an operator in a sentence with its name and arguments; one that has such a sentence as is."""
    kind, message = _CONVERTED.get(type(error)), str(error)
    written = "; got " in message or ". Write " in message
    # Inside of another operator that one explains it. Of one that calls a function of the user it may be the user's.
    if kind is None or written or mode() == "backend" or any(map(callable, (*args, *kwargs.values()))):
        raise error
    raise kind(
        f"{where}: expected arguments that fit the operation and each other; got {short_arguments(args, kwargs)} "
        f"({backend.error_reason(error)}). Write a call as in help(mixtrain.{where})."
    ) from error
