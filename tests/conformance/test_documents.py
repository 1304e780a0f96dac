"""Blocks are cut out of fenced and unfenced pages, and only imports are swapped."""

from __future__ import annotations

from tests.conformance.documents import Block, blocks_of, parses, swap_import

FENCED = """
# A page

1. In a list:

    ```python
    x = 1
    if x:
        y = 2
    ```

```text
epoch: 1
```

```
z = 3
```
"""

UNFENCED = """A page without fences

Some words about code, then

import math

def area(r):
    return math.pi * r * r

The result is as follows:

    x = area(2)

    # its half
    y = x / 2

figure1
"""


def test_fenced_blocks_are_dedented_and_output_is_left_out() -> None:
    assert blocks_of(FENCED) == [Block(7, "x = 1\nif x:\n    y = 2"), Block(17, "z = 3")]


def test_a_page_without_fences_gives_what_reads_as_python() -> None:
    first, second = blocks_of(UNFENCED)[:2]
    assert first == Block(5, "import math\n\ndef area(r):\n    return math.pi * r * r")
    assert (second.line, second.source.splitlines()[0]) == (12, "x = area(2)")
    assert all(parses(block.source) for block in (first, second))


def test_imports_are_swapped_and_nothing_else() -> None:
    source = 'import mindspore\nimport mindspore as ms\nfrom mindspore.train import Model\nmindspore.x("mindspore")'
    assert swap_import(source).splitlines() == [
        "import mixtrain as mindspore", "import mixtrain as ms", "from mixtrain.train import Model",
        'mindspore.x("mindspore")',
    ]
