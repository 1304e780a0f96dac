"""Primitives, and functions of MindSpore's own code, where its scripts import them: `scipy.ops`, `scipy.utils`."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import checks, ops
from mixtrain.dtype import complex64, complex128, float32, float64
from mixtrain.lazy_names import serve_names
from mixtrain.ops.complex_numbers import eig
from mixtrain.ops.factorizations import permutation_of
from mixtrain.ops.operator import operator
from mixtrain.ops.primitive import configured, primitive
from mixtrain.scipy.arguments import a_tensor, square
from mixtrain.scipy.linalg import packed_lu, solve_triangular
from mixtrain.scipy.optimize import linear_sum_assignment
from mixtrain.typing import Tensor, TensorLike


def _eig(a: TensorLike, compute_v: bool) -> tuple[Tensor, Tensor]:
    x = a_tensor("scipy.ops.Eig", "a", a, (float32, float64, complex64, complex128))
    values, vectors = eig(square("scipy.ops.Eig", "a", x, batches=True))
    return values, vectors if compute_v else keras.ops.zeros((), vectors.dtype)


def _lu(x: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
    packed, pivots, rows = packed_lu(a_tensor("scipy.ops.LU", "x", x, (float32, float64)))
    return packed, pivots, permutation_of(rows, rows.shape[-1], "int32")


def _nd_transpose(a: Tensor) -> Tensor:
    """Return the matrices `a` transposed."""
    if a.ndim < 2:
        raise checks.fail_value("scipy.utils._nd_transpose", "a must have at least 2 axes", tuple(a.shape), "a matrix")
    return ops.swapaxes(a, -1, -2)  # type: ignore[no-any-return]


def matrix_set_diag(
    input_x: TensorLike, diagonal: TensorLike, k: int | Sequence[int] = 0, alignment: str = "RIGHT_LEFT"
) -> Tensor:
    """Return `ops.matrix_set_diag` of matrices `input_x` and the diagonals `k`, `diagonal`, in an `alignment`."""
    return ops.matrix_set_diag(input_x, diagonal, k, alignment)  # type: ignore[no-any-return]


SolveTriangular = configured(
    "SolveTriangular", lambda a, b, lower, unit_diagonal, trans: solve_triangular(a, b, trans, lower, unit_diagonal),
    lower=False, unit_diagonal=False, trans="N",
)
Eig = configured("Eig", operator("Eig", _eig, owner="scipy.ops"), compute_v=True)
LU = primitive("LU", operator("LU", _lu, owner="scipy.ops"))
LinearSumAssignment = primitive(
    "LinearSumAssignment", lambda cost, limit, maximize: linear_sum_assignment(cost, maximize, limit)
)

serve_names(__name__)
