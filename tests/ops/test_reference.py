"""Every operation and tensor method has the reference's values, shape and format; compiled ones too."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import backend, ops
from tests.backends import ON_TENSORFLOW, compiled_for_users, held_as, quick_every
from tests.ops import cases

KNOWN = dict(np.load(pathlib.Path(__file__).parents[1] / "data" / "ops_reference.npz"))
EXPRESSIONS = [str(expression) for expression in KNOWN["expressions"]]
# What needs values, or makes as many elements as the values say, cannot be part of an XLA program.
EAGER_ONLY = (
    "asnumpy", "tolist", "item()", "nonzero", "masked_select", "unique", "Unique", "MaskedSelect", "Parameter",
    "bincount", "sequence_mask(T([1, 3], ms.int32))", "_window(T(",
    *(() if ON_TENSORFLOW else ("MirrorPad", "argwhere")),
)
# What TensorFlow's XLA has no operation for; the plain graph is taken there.
NOT_IN_XLA = ("ops.det(", "slogdet") if ON_TENSORFLOW else ()


def names() -> dict[str, Any]:
    return {"ms": ms, "ops": ops, "T": ms.Tensor, **cases.tensors(ms.Tensor)}


def expected(number: int) -> list[np.ndarray]:
    prefix = f"{number}/"
    return [KNOWN[key] for key in sorted(key for key in KNOWN if key.startswith(prefix))]


def check(expression: str, found: list[np.ndarray], known: list[np.ndarray]) -> None:
    assert len(found) == len(known), expression
    for one, other in zip(found, known, strict=True):
        assert one.shape == other.shape, expression
        assert one.dtype == other.dtype or one.dtype == held_as(other.dtype.name), expression
        if one.dtype.kind == "f":
            tolerance = 2e-3 if one.dtype == np.float16 else 1e-5
            assert np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True), expression
        else:
            assert (one == other).all(), expression


def test_the_reference_holds_the_expressions_of_the_table() -> None:
    assert EXPRESSIONS == cases.CASES


@quick_every(54)
@pytest.mark.parametrize("number", range(len(EXPRESSIONS)), ids=lambda number: EXPRESSIONS[number])
def test_an_expression_has_the_reference_s_value(number: int) -> None:
    check(EXPRESSIONS[number], cases.parts(eval(EXPRESSIONS[number], names())), expected(number))


@pytest.mark.slow
@pytest.mark.parametrize("xla", [False, True])
def test_compiled_expressions_have_the_same_values(xla: bool) -> None:
    left_out = (*EAGER_ONLY, *(NOT_IN_XLA if xla else ()))
    numbers = [
        number for number, expression in enumerate(EXPRESSIONS) if not any(word in expression for word in left_out)
    ]
    inputs = cases.tensors(ms.Tensor)

    def run(*tensors: Any) -> Any:
        scope = {"ms": ms, "ops": ops, "T": ms.Tensor, **dict(zip(inputs, tensors, strict=True))}
        values = [eval(EXPRESSIONS[number], dict(scope)) for number in numbers]
        return [value for value in values if is_result(value)]

    def is_result(value: Any) -> bool:
        return backend.is_tensor(value) or (isinstance(value, tuple) and backend.is_tensor(value[0]))

    result = compiled_for_users(run, xla=xla)(*inputs.values())
    eager = {number: eval(EXPRESSIONS[number], names()) for number in numbers}
    kept = [number for number in numbers if is_result(eager[number])]
    assert len(kept) == len(result) > 500
    for number, value in zip(kept, result, strict=True):
        check(EXPRESSIONS[number], cases.parts(value), expected(number))
