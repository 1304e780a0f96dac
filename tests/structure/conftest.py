"""What the tests of the structure share is forgotten after them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.structure.trees import trees


@pytest.fixture(scope="package", autouse=True)
def syntax_trees() -> Iterator[None]:
    """Forget the syntax trees after the last test: every garbage collection would go through their million nodes."""
    yield
    trees.cache_clear()
