"""The seed documents: finding them, cutting out their Python blocks, and swapping the import."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import re
import textwrap

SEEDS = pathlib.Path(__file__).parents[2].parent / "shared" / "seeds"

_FENCE = re.compile(r"^(?P<indent>[ \t]*)```[ \t]*(?P<language>\w*)[ \t]*$")
_NOT_PYTHON = ("text", "bash", "shell", "json")
# How a block of code in a page without fences begins.
_STARTS = re.compile(r"(import |from \w+ import |class \w+.*:$|def \w+\(.*:$|@|#\s?\w|\w[\w.]* = |for \w+ in .*:$)")
_LONGEST_BLOCK = 120


@dataclasses.dataclass(frozen=True)
class Block:
    """One block of code.

    Attributes:
        line: Number of its first line in the document, from 1.
        source: Its text, dedented, as the document has it.
    """

    line: int
    source: str


def blocks_of(text: str) -> list[Block]:
    """Return the code blocks of a document: between fences, or, in a page that has none, what reads as Python."""
    return _fenced(text.splitlines()) if "```" in text else _unfenced(text.splitlines())


def _fenced(lines: list[str]) -> list[Block]:
    blocks: list[Block] = []
    start: int | None = None
    kept = False
    for number, line in enumerate(lines, start=1):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if start is None:
            start, kept = number, fence["language"].lower() not in _NOT_PYTHON
        else:
            if kept:
                blocks.append(Block(start + 1, textwrap.dedent("\n".join(lines[start : number - 1]))))
            start = None
    return blocks


def _unfenced(lines: list[str]) -> list[Block]:
    blocks: list[Block] = []
    position = 0
    while position < len(lines):
        length = _code_length(lines[position:]) if _STARTS.match(lines[position].strip()) else 0
        if length:
            blocks.append(Block(position + 1, textwrap.dedent("\n".join(lines[position : position + length])).rstrip()))
        position += max(1, length)
    return blocks


def _code_length(lines: list[str]) -> int:
    """Return how many of the first lines are one piece of Python: the longest beginning that parses."""
    result = 0
    for length in range(1, min(_LONGEST_BLOCK, len(lines)) + 1):
        if lines[length - 1].strip() and parses("\n".join(lines[:length])):
            result = length
    return result


def parses(source: str) -> bool:
    """Whether a text is Python, once it is dedented."""
    try:
        return bool(ast.parse(textwrap.dedent(source)).body)
    except SyntaxError:
        return False


def swap_import(source: str) -> str:
    """Return a block whose imports of `mindspore` are imports of `mixtrain`; nothing else changes."""
    swapped = re.sub(r"^([ \t]*)import mindspore[ \t]*$", r"\1import mixtrain as mindspore", source, flags=re.M)
    return re.sub(r"^([ \t]*(?:from|import) )mindspore\b", r"\1mixtrain", swapped, flags=re.M)
