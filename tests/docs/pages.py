"""The documentation's pages, read: code blocks with what precedes them, links, and tables."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import re
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^(`{3,})(\w*)\s*$")
_COMMENT = re.compile(r"^<!--\s*(.*?)\s*-->$")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclasses.dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        language: What follows the opening fence.
        text: The lines between the fences.
        line: Number of the first of them, from 1.
        comment: The HTML comment on the line before the fence; "" where there is none.
        follows: Whether only blank lines stand between it and the block before.
    """

    language: str
    text: str
    line: int
    comment: str
    follows: bool


def blocks_of(text: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    result: list[Block] = []
    fence, language, start, comment = "", "", 0, ""
    body: list[str] = []
    between: list[str] = ["the start of the page"]
    for number, line in enumerate(text.splitlines(), start=1):
        opening = _FENCE.match(line)
        if not fence and opening:
            fence, language, start, body = opening[1], opening[2], number + 1, []
        elif fence and line.rstrip() == fence:
            result.append(Block(language, "\n".join(body) + "\n", start, comment, not any(between)))
            fence, comment, between = "", "", []
        elif fence:
            body.append(line)
        else:
            between.append(line.strip())
            match = _COMMENT.match(line)
            comment = match[1] if match else ""
    if fence:
        raise ValueError(f"a block that starts at line {start} does not end")
    return result


def prose_of(text: str) -> str:
    """Return a page without its fenced blocks."""
    lines, inside = [], False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def links_of(text: str) -> list[str]:
    """Return the targets of a page's links, without those to other sites."""
    return [target for target in _LINK.findall(prose_of(text)) if "://" not in target and ":" not in target]


def anchors_of(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+\s+(.*?)\s*$", prose_of(text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rows_of(text: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a page's tables, without heads."""
    lines = [line.strip() for line in prose_of(text).splitlines()]
    for is_table, group in itertools.groupby(lines, key=lambda line: line.startswith("|")):
        if is_table:
            for line in list(group)[2:]:
                yield [cell.strip() for cell in line.strip("|").split("|")]
