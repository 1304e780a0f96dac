"""Shuffle: how far the rows of files are mixed."""

from __future__ import annotations

import enum
from typing import Any

from mixtrain import checks


class Shuffle(str, enum.Enum):
    """How far rows are mixed: not at all, by files, or all of them.

    `ADAPTIVE`, `PARTIAL` and `INFILE`, which only MindRecord files know, are here so that they can be named.

    Example:
        >>> Shuffle("files") is Shuffle.FILES
        True

    Source: MindSpore, `mindspore.dataset.Shuffle`.
    """

    FALSE = "false"
    ADAPTIVE = "adaptive"
    GLOBAL = "global"
    PARTIAL = "partial"
    FILES = "files"
    INFILE = "infile"


def read_shuffle(where: str, value: Any, *, files: bool = False) -> Shuffle:
    """Return the mode that an argument means; None and True mean GLOBAL.

    Args:
        where: Who asks.
        value: None, a bool or a `Shuffle`.
        files: Whether FILES is possible.
    """
    if value is None or isinstance(value, bool):
        return Shuffle.FALSE if value is False else Shuffle.GLOBAL
    if not isinstance(value, Shuffle):
        raise checks.fail_type(where, "shuffle must be True or False, or a Shuffle", value, "shuffle=True")
    possible = (Shuffle.FALSE, Shuffle.GLOBAL, *((Shuffle.FILES,) if files else ()))
    if value not in possible:
        names = ", ".join(str(mode) for mode in possible)
        raise checks.fail_value(where, f"shuffle must be one of {names}", str(value), "shuffle=Shuffle.GLOBAL")
    return value
