"""Shuffle: the modes in which rows and files are shuffled."""

from __future__ import annotations

import enum
from typing import Any

from mixtrain import checks


class Shuffle(str, enum.Enum):
    """What is shuffled: nothing, the order of files, or all rows.

    `ADAPTIVE`, `PARTIAL` and `INFILE` are for MindRecord files and not supported.

    Example:
        >>> Shuffle("files") is Shuffle.FILES
        True
    """

    FALSE = "false"
    ADAPTIVE = "adaptive"
    GLOBAL = "global"
    PARTIAL = "partial"
    FILES = "files"
    INFILE = "infile"


def read_shuffle(where: str, value: Any, *, files: bool = False) -> Shuffle:
    """Return the mode for an argument; None and True mean GLOBAL, and FILES is allowed with `files`."""
    if value is None or isinstance(value, bool):
        return Shuffle.FALSE if value is False else Shuffle.GLOBAL
    if not isinstance(value, Shuffle):
        raise checks.fail_type(where, "shuffle must be True or False, or a Shuffle", value, "shuffle=True")
    allowed = (Shuffle.FALSE, Shuffle.GLOBAL, *((Shuffle.FILES,) if files else ()))
    if value not in allowed:
        names = ", ".join(str(mode) for mode in allowed)
        raise checks.fail_value(where, f"shuffle must be one of {names}", str(value), "shuffle=Shuffle.GLOBAL")
    return value
