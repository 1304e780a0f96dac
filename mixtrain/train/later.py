"""`Later`: a value that is computed on first access; `now` returns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Later:
    """The result of a function, which is called once, on first access.

    `make`: Returns the value.

    Example:
        >>> Later(lambda: 1 + 1).value
        2
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make: Callable[[], Any] | None = make
        self._value: Any = None

    @property
    def value(self) -> Any:
        """The value."""
        if self._make is not None:
            self._value, self._make = self._make(), None
        return self._value


def now(value: Any) -> Any:
    """Return a value that may be a `Later`."""
    return value.value if isinstance(value, Later) else value
