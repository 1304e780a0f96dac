"""`Later`: a value that is made when somebody looks at it; `now` looks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Later:
    """What a function returns, which is called once, by the first who asks.

    Args:
        make: Makes the value.

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
