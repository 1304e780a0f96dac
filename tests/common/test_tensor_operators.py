"""Operators of tensors, numbers and arrays give MindSpore's dtype, shape and values, and refuse what it refuses."""

from __future__ import annotations

from typing import Final

import pytest

from tests.backends import quick_every
from tests.common import tensor_cases, tensor_reference

FAMILIES: Final = [family for family in tensor_reference.KNOWN if family.startswith("operator ")]


def test_the_reference_holds_the_expressions_of_the_cases() -> None:
    assert {family: list(expected) for family, expected in tensor_reference.KNOWN.items()} == tensor_cases.families()


def test_every_pair_of_dtypes_is_recorded() -> None:
    answered = [
        expression for family in FAMILIES for expression, expected in tensor_reference.KNOWN[family].items()
        if not tensor_reference.is_refused(expected)
    ]
    assert len(answered) > 2000
    for symbol in tensor_cases.ALL_PAIRS:
        recorded = tensor_reference.KNOWN[f"operator {symbol}"]
        assert all(
            f"a_{left} {symbol} b_{right}" in recorded
            for left in tensor_cases.DTYPES for right in tensor_cases.DTYPES
        )


@quick_every(16)
@pytest.mark.parametrize("family", FAMILIES)
def test_an_operator_gives_what_mindspore_gives(family: str) -> None:
    tensor_reference.check(family, every=tensor_reference.QUICK)


@pytest.mark.slow
@pytest.mark.skipif(tensor_reference.QUICK == 1, reason="the quick tests try every expression")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_expression_of_an_operator_gives_what_mindspore_gives(family: str) -> None:
    tensor_reference.check(family)


@pytest.mark.parametrize("family", tensor_reference.with_refusals(FAMILIES))
def test_an_operator_refuses_what_mindspore_refuses(family: str) -> None:
    tensor_reference.check(family, refused=True)
