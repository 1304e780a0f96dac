"""Methods and properties, Python's protocols and the creation of tensors match MindSpore's."""

from __future__ import annotations

import re
from typing import Final

import pytest

import mixtrain
from tests.backends import quick_every
from tests.common import tensor_method_cases, tensor_reference
from tests.ops import cases

FAMILIES: Final = [
    family for family in tensor_reference.KNOWN if family.startswith("method") or family in ("python", "making")
]


def test_every_public_name_of_mindspore_s_tensor_is_there() -> None:
    names = set(tensor_method_cases.PUBLIC_NAMES) - set(tensor_method_cases.MACHINERY)
    assert {name for name in names if not hasattr(mixtrain.Tensor, name)} == set(tensor_method_cases.NOT_HAD)


def test_every_public_name_has_a_case() -> None:
    tried = {name for call in cases.METHODS for name in re.findall(r"\.(\w+)", call)} | set(tensor_method_cases.CALLS)
    assert set(tensor_method_cases.PUBLIC_NAMES) - tried == set(tensor_method_cases.MACHINERY)


@quick_every(12)
@pytest.mark.parametrize("family", FAMILIES)
def test_methods_give_what_mindspore_gives(family: str) -> None:
    tensor_reference.check(family)


@pytest.mark.parametrize("family", tensor_reference.with_refusals(FAMILIES))
def test_methods_refuse_what_mindspore_refuses(family: str) -> None:
    tensor_reference.check(family, refused=True)
