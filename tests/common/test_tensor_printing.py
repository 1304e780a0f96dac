"""Tensors, Parameters and dtypes print as MindSpore's do."""

from __future__ import annotations

import pytest

import mixtrain
from tests.common import tensor_reference


@pytest.mark.parametrize("family", [family for family in tensor_reference.KNOWN if family.startswith("printing")])
def test_texts_are_mindspore_s(family: str) -> None:
    tensor_reference.check(family)


def test_print_writes_the_values(capsys: pytest.CaptureFixture[str]) -> None:
    print(mixtrain.Tensor([[1.0, 2.5], [3.0, -4.0]]), mixtrain.Tensor([True, False]), mixtrain.Tensor(3))
    assert capsys.readouterr().out == "[[ 1.   2.5]\n [ 3.  -4. ]] [ True False] 3\n"
