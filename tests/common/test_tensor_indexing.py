"""Indexing reads and writes what MindSpore's does, and refuses what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain import Tensor
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


def test_a_list_of_anything_but_numbers_is_a_tuple_of_indexes() -> None:
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    for index, expected in (
        ([Tensor(0), 1], 1.0), ([Tensor([0, 1]), Tensor([1, 2])], [1.0, 5.0]), ([Tensor([True, False]), 0], [0.0]),
        ([..., 0], [0.0, 3.0]), ([None, 0], [[0.0, 1.0, 2.0]]), ([1, 0], [[3.0, 4.0, 5.0], [0.0, 1.0, 2.0]]),
        ([np.int64(1)], [[3.0, 4.0, 5.0]]),
    ):
        assert x[index].asnumpy().tolist() == expected, index
