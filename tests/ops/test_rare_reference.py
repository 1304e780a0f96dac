"""Operators that few networks use have the reference's values and gradients."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

import mixtrain as ms
from mixtrain import ops
from tests.backends import ON_TENSORFLOW
from tests.ops import cases, rare_cases

# JAX compiles each of their operations apart.
pytestmark = [] if ON_TENSORFLOW else [pytest.mark.slow]
KNOWN = dict(np.load(pathlib.Path(__file__).parents[1] / "data" / "rare_ops_reference.npz"))
TENSORS = {name: ms.Tensor(array) for name, array in rare_cases.arrays().items()}
FUNCTIONS = {"mixed": rare_cases.mixed, "product": rare_cases.product}
NAMES = {"ms": ms, "np": np, "ops": ops, "T": ms.Tensor, **FUNCTIONS, **TENSORS}


def differs(found: np.ndarray, known: np.ndarray) -> bool:
    if found.shape != known.shape:
        return True
    # Without float64, series of Bessel functions lose the last digits.
    tolerance = 1e-5 if ms.Tensor(1.0, ms.float64).dtype == ms.float64 else 3e-4
    return not np.allclose(found, known, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.slow
def test_values_are_the_reference_s() -> None:
    compared, wrong = 0, []
    for expression in rare_cases.CASES:
        keys = [key for key in KNOWN if key.rpartition("#")[0] == expression]
        expected = [KNOWN[key] for key in keys if not key.endswith("gradient")]
        if not expected:
            continue
        result = cases.parts(eval(expression, dict(NAMES)))
        compared += 1
        if len(result) != len(expected) or any(differs(*pair) for pair in zip(result, expected, strict=True)):
            wrong.append(expression)
    assert wrong == []
    assert compared > 100


@pytest.mark.slow
def test_gradients_are_the_reference_s() -> None:
    compared, wrong = 0, []
    for name, expressions in rare_cases.GRADIENTS.items():
        for expression in expressions:
            expected = KNOWN.get(f"{expression}#gradient")
            if expected is None:
                continue
            gradient = ms.grad(
                lambda x, e=expression, n=name: eval(e, {**NAMES, n: x}).sum()  # noqa: B023
            )(TENSORS[name])
            compared += 1
            if differs(np.asarray(gradient.asnumpy()), expected):
                wrong.append(expression)
    assert wrong == []
    assert compared >= 15
