"""Indexing reads and writes what MindSpore's does, and refuses what it refuses."""

from __future__ import annotations

import pytest

from tests.common import tensor_reference


def test_enough_is_recorded() -> None:
    reads, writes = (tensor_reference.KNOWN[f"index {kind}"] for kind in ("read", "write"))
    assert len(reads) > 300 and len(writes) > 250


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["read", "write", "view"])
def test_an_index_means_what_it_means_in_mindspore(kind: str) -> None:
    tensor_reference.check(f"index {kind}", every=tensor_reference.QUICK)


@pytest.mark.slow
@pytest.mark.skipif(tensor_reference.QUICK == 1, reason="the quick tests try every expression")
@pytest.mark.parametrize("kind", ["read", "write", "view"])
def test_every_index_means_what_it_means_in_mindspore(kind: str) -> None:
    tensor_reference.check(f"index {kind}")


@pytest.mark.parametrize("kind", ["read", "write"])
def test_an_index_that_mindspore_refuses_is_refused(kind: str) -> None:
    tensor_reference.check(f"index {kind}", refused=True)
