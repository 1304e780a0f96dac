"""Text tables with aligned columns."""

from __future__ import annotations

from collections.abc import Sequence


def printable(text: str) -> str:
    r"""Return a text of a file without what a terminal would obey: control characters become escapes.

    Example:
        >>> printable("a\x1b[2Jb")
        'a\\x1b[2Jb'
    """
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a line for each row, each column as wide as its longest cell.

    Example:
        >>> aligned([("level", "half"), ("O2", "float16")])
        ['level  half', 'O2     float16']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
