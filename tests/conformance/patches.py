"""What a reader patches before the blocks of a seed document run, and the blocks that are no MindSpore code: data."""

from __future__ import annotations

import dataclasses
import textwrap
from typing import Final

from tests.conformance.documents import Block, parses


@dataclasses.dataclass(frozen=True)
class Patch:
    """What was lost when a page became text, for one block, and how a reader puts it back.

    Attributes:
        reason: What was lost.
        before: Code that the page takes for granted.
        joined_with_next: Whether the block and the next are one, whose parts were cut apart.
        indent_next: Columns that the second of them lost.
        until: The first line that is no code any more but output.
    """

    reason: str
    before: str = ""
    joined_with_next: bool = False
    indent_next: int = 0
    until: str | None = None


# By document (the beginning of its file name) and number of the block, counted from 0.
PATCHES: Final[dict[str, dict[int, Patch]]] = {
    "000": {
        4: Patch("mstype is used before any block imports it", before="from mindspore import dtype as mstype"),
    },
    "002": {
        6: Patch(
            "with block 7: a docstring runs over two fences, and the second part lost four columns",
            joined_with_next=True, indent_next=4,
        ),
    },
    "003": {
        2: Patch("the compiler's timing report was pasted behind the last line", until="TotalTime = "),
        4: Patch("loss_scale is used where only its value, 1024.0, was written", before="loss_scale = 1024.0"),
    },
}

# Documents of other frameworks: their blocks have no import of mindspore to swap.
OTHER_FRAMEWORKS: Final[dict[str, str]] = {
    "001": "OneFlow code: import oneflow",
    "004": "PyTorch fragments without imports, in prose",
}


def patched(document: str, blocks: list[Block]) -> list[tuple[int, Block, str]]:
    """Return the blocks ready to run, each with its number and the reason of its patch ("" for none).

    Raises:
        ValueError: A block is no Python even then.
    """
    patches = PATCHES.get(document, {})
    result: list[tuple[int, Block, str]] = []
    numbers = iter(range(len(blocks)))
    for number in numbers:
        block, patch = blocks[number], patches.get(number)
        source = block.source
        if patch is not None:
            if patch.until is not None:
                source = source[: source.index(patch.until)]
            if patch.joined_with_next:  # One block in the table, the second part under the first's number.
                following = blocks[next(numbers)].source
                source = f"{source}\n{textwrap.indent(following, ' ' * patch.indent_next)}"
            if patch.before:
                source = f"{patch.before}\n{source}"
        if not parses(source):
            raise ValueError(f"{document}: expected Python in block {number} (line {block.line}); got\n{source}")
        result.append((number, Block(block.line, source), patch.reason if patch else ""))
    return result
