"""Methods and properties, Python's protocols and the creation of tensors match MindSpore's."""

from __future__ import annotations

import re
from typing import Final

import pytest

import mixtrain
from mixtrain import Tensor
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


def test_methods_take_mindspore_s_arguments() -> None:
    x = Tensor([[1.0, -2.0, 3.5], [0.5, 4.0, -1.0]])
    values, indices = x.top_k(2, False)
    assert values.asnumpy().tolist() == [[3.5, 1.0], [4.0, 0.5]] and indices.asnumpy().tolist() == [[2, 0], [1, 0]]
    assert float(x.trace(1)) == float(x.trace(offset=1, axis1=0, axis2=1)) == -3.0
    assert x.trace(0, 0, 1, mixtrain.float16).dtype == mixtrain.float16
    assert x.diagonal(offset=1, axis1=0, axis2=1).asnumpy().tolist() == [-2.0, -1.0]
    assert x.approximate_equal(other=x, tolerance=0.1).all() and float(x.float_power(other=2)[0, 1]) == 4.0
    assert callable(x.register_hook(hook=abs).remove)
    assert mixtrain.get_context(attr_key="mode") == mixtrain.get_context("mode")
    assert mixtrain.tensor([1.0], const_arg=False).shape == (1,)
