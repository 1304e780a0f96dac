"""Values remembered for tracers: these take no attributes but their class's, and have no hash."""

from __future__ import annotations

import weakref
from typing import Any


class Attached:
    """One value for each of some objects, by their identity; an object that goes takes its value with it."""

    def __init__(self) -> None:
        self._values: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def get(self, owner: Any) -> Any:
        """Return what was attached to `owner`, or None."""
        view, value = self._values.get(id(owner), (None, None))
        return value if view is not None and view() is owner else None

    def put(self, owner: Any, value: Any) -> None:
        """Attach `value`, in place of what was attached before."""
        key = id(owner)
        self._values[key] = weakref.ref(owner, lambda gone: self._values.pop(key, None)), value

    def remove(self, owner: Any) -> None:
        """Detach what was attached, if anything was."""
        self._values.pop(id(owner), None)
