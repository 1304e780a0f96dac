"""Parts of a `RowFunction`, and the subject of the errors that they raise."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class RowPart:
    """A part of a `RowFunction`.

    Attributes:
        function: Takes a seed and one tensor per column, and returns a tuple of tensors. A function of blocks takes no
            seed, and tensors with the rows along the first axis.
        by_block: Whether it is a function of blocks, which costs less than row by row.
        columns: The indices of the columns that it takes and returns; None for all columns, of which it returns any
            number.
    """

    function: Callable[..., tuple[Any, ...]]
    by_block: bool
    columns: tuple[int, ...] | None = None

    def applied(self, run: Callable[[tuple[Any, ...]], Sequence[Any]], block: Sequence[Any]) -> tuple[Any, ...]:
        """Return the columns of a block, with those of this part replaced by ``run(their tuple)``."""
        if self.columns is None:
            return tuple(run(tuple(block)))
        columns = list(block)
        for index, result in zip(self.columns, run(tuple(block[index] for index in self.columns)), strict=True):
            columns[index] = result
        return tuple(columns)


class _Subject(threading.local):
    prefix = ""


_subject = _Subject()


@contextlib.contextmanager
def error_subject(subject: str) -> Iterator[None]:
    """Prefix the messages of `require` with a subject, in code that runs or is traced inside."""
    previous = _subject.prefix
    _subject.prefix = f"{subject}: "
    try:
        yield
    finally:
        _subject.prefix = previous


def with_subject(message: str) -> str:
    """Return a format string of `require` with the current subject."""
    return _subject.prefix.replace("{", "(").replace("}", ")") + message
