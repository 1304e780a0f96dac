"""Reasons why a function cannot be compiled, noted while `jit` traces it, which then runs it uncompiled."""

from __future__ import annotations

import contextvars
from typing import Final

CREATES_PARAMETERS: Final = ("creates Parameters", "Create the Cell before the function, and call it there.")
READS_VALUES: Final = ("reads a Tensor's values", "Call asnumpy and the like outside of the function.")
DECIDES: Final = (
    "lets a tensor decide in code that is not compiled, as `in`, all() and sorted() do",
    "Write ops.select(condition, one, other), or x.all().",
)
FAILS: Final = (
    "fails where a tensor decides, as a check that raises does",
    "Check outside of the function, or let PyNative mode do it.",
)

Reason = tuple[str, str]

# While `jit` traces a function: what it does that a compiled function cannot, and what to write instead.
reasons: contextvars.ContextVar[list[Reason] | None] = contextvars.ContextVar("reasons", default=None)


def note(reason: Reason) -> bool:
    """Note a reason if `jit` is tracing; return whether it is."""
    current = reasons.get()
    if current is not None:
        current.append(reason)
    return current is not None
