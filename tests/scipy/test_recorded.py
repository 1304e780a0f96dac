"""`mixtrain.scipy` computes, differentiates and refuses what MindSpore does: tests/data/scipy_reference.json."""

from __future__ import annotations

import importlib
import json
import pathlib
from typing import Any

import numpy as np
import pytest

import mixtrain
import mixtrain.scipy.ops
from mixtrain import Tensor, backend
from mixtrain.ops.operations.linalg_ops import Eigh
from mixtrain.scipy.ops_wrapper import matrix_set_diag
from mixtrain.scipy.utils import _nd_transpose
from tests.backends import ON_TENSORFLOW, quick_every
from tests.scipy import cases

RECORDED = json.loads((pathlib.Path(__file__).parents[1] / "data" / "scipy_reference.json").read_text())
NAMES = cases.names(mixtrain.scipy, lambda array, kind: Tensor(array))


def parts_of(result: Any) -> list[Any]:
    """Return the tensors and bools of a result."""
    if isinstance(result, (tuple, list)):
        return [part for one in result for part in parts_of(one)]
    return [result]


def check(result: Any, recorded: list[Any]) -> None:
    """Compare a result with what is recorded: dtypes as far as the backend has them, shapes and numbers."""
    parts = parts_of(result)
    assert len(parts) == len(recorded)
    for part, expected in zip(parts, recorded, strict=True):
        if isinstance(expected, bool):
            assert part is expected
            continue
        dtype, shape, numbers = expected
        array = part.asnumpy()
        assert (str(array.dtype), array.shape) == (str(backend.canonical_dtype(dtype)), tuple(shape))
        values = np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array
        tolerance = 1e-7 if array.dtype == np.float64 else 2e-4
        np.testing.assert_allclose(values.ravel(), numbers, tolerance, tolerance * max([1.0, *map(abs, numbers)]))


def test_everything_is_recorded() -> None:
    assert [[*part] for part in RECORDED.values()] == [cases.CALLS, cases.ERRORS, cases.GRADIENTS]


@pytest.mark.parametrize("call", cases.CALLS)
def test_results_are_those_of_mindspore(call: str) -> None:
    check(eval(call, dict(NAMES)), RECORDED["calls"][call])


@pytest.mark.parametrize("call", cases.ERRORS)
def test_errors_are_of_the_classes_of_mindspore(call: str) -> None:
    with pytest.raises((TypeError, ValueError), match=r"scipy\..*; got .*\. Write ") as raised:
        eval(call, dict(NAMES))
    assert raised.type.__name__ == RECORDED["errors"][call]


@quick_every(5)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("call", cases.GRADIENTS)
def test_gradients_are_those_of_mindspore(call: str, compiled: bool) -> None:
    function, *inputs = eval(call, dict(NAMES))
    gradient = mixtrain.grad(lambda *inputs: cases.weighted(function(*inputs)), tuple(range(len(inputs))))
    check((mixtrain.jit(gradient) if compiled else gradient)(*inputs), RECORDED["gradients"][call])


def test_least_squares_of_equal_singular_values_have_a_gradient() -> None:
    a, b = Tensor(np.eye(3, dtype=np.float32)), Tensor(np.arange(3, dtype=np.float32))
    by_a, by_b = mixtrain.grad(lambda a, b: mixtrain.scipy.linalg.lstsq(a, b)[0].sum(), (0, 1))(a, b)
    np.testing.assert_allclose(by_a.asnumpy(), np.tile([0.0, -1.0, -2.0], (3, 1)), atol=1e-6)
    np.testing.assert_allclose(by_b.asnumpy(), np.ones(3), atol=1e-6)


@pytest.mark.parametrize("trans", [0, 1])
def test_a_system_or_its_transpose_is_solved_by_lu(trans: int) -> None:
    a, b = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]], np.float32), np.float32([1.0, 2.0, 4.0])
    x = mixtrain.scipy.linalg.lu_solve(mixtrain.scipy.linalg.lu_factor(Tensor(a)), Tensor(b), trans)
    np.testing.assert_allclose((a.T if trans else a) @ x.asnumpy(), b, atol=1e-4)


def test_factors_are_permuted_and_compiled() -> None:
    a = np.array([[1.0, 2.0, 5.0], [4.0, 5.0, 6.0]], np.float32)
    lower, upper = mixtrain.jit(lambda a: mixtrain.scipy.linalg.lu(a, permute_l=True))(Tensor(a))
    np.testing.assert_allclose(lower.asnumpy() @ upper.asnumpy(), a, atol=1e-6)


@pytest.mark.skipif(ON_TENSORFLOW, reason="TensorFlow has no gradient of LU factorizations")
def test_factors_have_gradients() -> None:
    gradient = mixtrain.grad(lambda a: mixtrain.scipy.linalg.lu_factor(a)[0].sum())(Tensor([[2.0, 1.0], [1.0, 3.0]]))
    np.testing.assert_allclose(gradient.asnumpy(), [[1.0, 0.5], [0.0, 1.0]], atol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.complex64])
def test_eigenvectors_are_those_of_the_matrix(kind: Any) -> None:
    a = (cases.A + (1j * cases.P if kind is np.complex64 else 0)).astype(kind)
    values, vectors = (each.asnumpy() for each in mixtrain.scipy.ops.Eig()(Tensor(a)))
    np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-4)
    assert mixtrain.scipy.ops.Eig(False)(Tensor(a))[1].shape == ()
    values, vectors = (each.asnumpy() for each in Eigh(True, False)(Tensor(a)))
    whole = np.triu(a, 1) + np.triu(a, 1).conj().T + np.diag(np.diag(a).real)
    np.testing.assert_allclose(whole @ vectors, vectors * values, atol=1e-4)


def test_functions_of_mindspores_own_code_can_be_imported() -> None:
    x = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert _nd_transpose(x).shape == (3, 2)
    assert matrix_set_diag(x, Tensor([7.0, 8.0])).asnumpy().tolist() == [[7.0, 1.0, 2.0], [3.0, 8.0, 5.0]]
    with pytest.raises(ValueError, match="at least 2 axes"):
        _nd_transpose(Tensor([1.0]))


def test_what_is_not_offered_says_what_to_write() -> None:
    with pytest.raises(NotImplementedError, match="Write scipy itself"):
        importlib.import_module("mixtrain.scipy.sparse.linalg").cg()
    with pytest.raises(AttributeError, match="Write mixtrain.scipy.linalg.lstsq"):
        mixtrain.scipy.linalg.lstq  # noqa: B018
