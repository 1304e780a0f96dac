"""Why a function cannot be compiled: noted while `jit` traces it, which then runs it uncompiled."""

from __future__ import annotations

import contextvars
from typing import Final

MAKES_PARAMETERS: Final = ("makes Parameters", "Make the Cell before the function, and call it there.")
READS_VALUES: Final = ("reads a Tensor's values", "Write asnumpy and the like outside of the function.")

Reason = tuple[str, str]

# While `jit` traces a function: a list of what it does that has no place in a compiled one, and what to write instead.
reasons: contextvars.ContextVar[list[Reason] | None] = contextvars.ContextVar("reasons", default=None)


def note(reason: Reason) -> bool:
    """Note a reason where `jit` traces; return whether it does."""
    noted = reasons.get()
    if noted is not None:
        noted.append(reason)
    return noted is not None
