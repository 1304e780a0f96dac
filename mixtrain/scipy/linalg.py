"""Solvers and factorizations of matrices: `scipy.linalg`; matrices of ints are computed in float64.

`overwrite_a`, `overwrite_b` and `check_finite` are accepted and not used.
"""

from __future__ import annotations

from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import complex64, complex128, float16, float32, float64, int8, int16, int32, int64
from mixtrain.lazy_names import serve_names
from mixtrain.ops import linear_algebra
from mixtrain.ops.complex_numbers import conj, eigh as eigenpairs
from mixtrain.ops.factorizations import permutation_of, permuted_rows, triangular_solve, unit_lower
from mixtrain.ops.inputs import an_int, rank_of, tensor, tensor_dtype, widened
from mixtrain.ops.linear_algebra import adjoint
from mixtrain.ops.operator import operator
from mixtrain.scipy.arguments import NUMBERS, a_tensor, in_float64, right_side, square
from mixtrain.typing import Tensor, TensorLike

_FLOATS: Final = (float16, float32, float64, complex64, complex128)
_TRANS: Final = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def _matrix(name: str, a: TensorLike, **flags: Any) -> Tensor:
    where = f"scipy.linalg.{name}"
    return in_float64(square(where, "a", a_tensor(where, "a", a, **flags)))


def _solved(a: Tensor, b: Tensor, trans: int, lower: bool, unit_diagonal: bool = False) -> Tensor:
    rhs = b[..., None] if rank_of(b) < rank_of(a) else b
    x = triangular_solve(conj(a) if trans == 1 else a, rhs, lower, trans > 0, unit_diagonal)
    return x if rhs is b else x[..., 0]


def solve_triangular(
    a: TensorLike, b: TensorLike, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False,
    overwrite_b: bool = False, debug: Any = None, check_finite: bool = True,
) -> Tensor:
    """Solve `a` @ x = `b` for the upper or `lower` triangle of `a`; `b` is (..., N) or (..., N, M).

    `trans` is 1 or "T" for the transpose of `a`, 2 or "C" for its conjugate transpose; with `unit_diagonal` ones are on
    the diagonal. `overwrite_b`, `debug` and `check_finite` are not used.

    Raises: TypeError if `b` has another dtype; ValueError if a shape does not fit, or for another `trans`.

    Example:
        >>> import mixtrain
        >>> a = mixtrain.Tensor([[2.0, 0.0], [1.0, 4.0]])
        >>> print(mixtrain.scipy.linalg.solve_triangular(a, mixtrain.Tensor([2.0, 9.0]), lower=True))
        [1. 2.]
    """
    where = "scipy.linalg.solve_triangular"
    matrix = a_tensor(where, "a", a, (int8, int16, int32, int64, *_FLOATS), lower=lower, unit_diagonal=unit_diagonal)
    checks.one_of(where, "trans", trans, tuple(_TRANS))
    rhs = right_side(where, "a", square(where, "a", matrix, batches=True), b)
    x, rhs = (widened(in_float64(each, (int64,))) for each in (matrix, rhs))
    solution = _solved(x, rhs, _TRANS[trans], lower, unit_diagonal)
    return keras.ops.cast(solution, float16) if tensor_dtype(matrix) == float16 else solution


def block_diag(*arrs: TensorLike) -> Tensor:
    """The block-diagonal matrix of `arrs`, of at most two axes each: ``block_diag(a, b)``."""
    blocks = [tensor("scipy.linalg.block_diag", value) for value in arrs]
    if any(rank_of(block) > 2 for block in blocks):
        raise checks.fail_value("scipy.linalg.block_diag", "arrays must have at most 2 axes", arrs, "matrices")
    return linear_algebra.block_diag(*blocks) if blocks else keras.ops.zeros((1, 0), float32)


def inv(a: TensorLike, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The inverse of the square matrix `a`; `overwrite_a` and `check_finite` are not used. Example: ``inv(a)``."""
    return linear_algebra.inverse(_matrix("inv", a, overwrite_a=overwrite_a, check_finite=check_finite))


def det(a: TensorLike, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The determinant of the square matrix `a`; `overwrite_a` and `check_finite` are not used. Example: ``det(a)``."""
    return linear_algebra.det(_matrix("det", a, overwrite_a=overwrite_a, check_finite=check_finite))


def cholesky(a: TensorLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Tensor:
    """The upper or `lower` Cholesky factor of the matrix `a`; `overwrite_a` and `check_finite` are not used."""
    x = _matrix("cholesky", a, lower=lower, overwrite_a=overwrite_a, check_finite=check_finite)
    return linear_algebra.cholesky(x, not lower)


def cho_factor(a: TensorLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """`cholesky` of `a`, `lower`, `overwrite_a` and `check_finite`, and `lower`: what `cho_solve` takes."""
    return cholesky(a, lower, overwrite_a, check_finite), lower


def cho_solve(c_and_lower: Any, b: TensorLike, overwrite_b: bool = False, check_finite: bool = True) -> Tensor:
    """Solve a @ x = `b`, (N,) or (N, M), for the `c_and_lower` that `cho_factor` returns of a.

    `overwrite_b` and `check_finite` are not used. Example: ``cho_solve(cho_factor(a), b)``.
    """
    where, (c, lower) = "scipy.linalg.cho_solve", c_and_lower
    c = square(where, "c", a_tensor(where, "c", c, lower=lower, overwrite_b=overwrite_b, check_finite=check_finite))
    x, rhs = in_float64(c), in_float64(right_side(where, "c", c, b))
    return _solved(x, _solved(x, rhs, not lower, lower), lower, lower)


def eigh(
    a: TensorLike, b: None = None, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, turbo: bool = True, eigvals: None = None, type: int = 1, check_finite: bool = True,
) -> Any:
    """The eigenvalues of the Hermitian matrix `a`, ascending, and unless `eigvals_only` its eigenvectors.

    The `lower` triangle is read, or the upper one; `b` and `eigvals` are None. `overwrite_a`, `overwrite_b`, `turbo`,
    `type` and `check_finite` are not used. Example: ``values, vectors = eigh(a)``.
    """
    where, dtypes = "scipy.linalg.eigh", (*NUMBERS, complex64, complex128)
    an_int(where, "type", type, example=1)
    x = square(where, "a", a_tensor(
        where, "a", a, dtypes, lower=lower, eigvals_only=eigvals_only, overwrite_a=overwrite_a,
        overwrite_b=overwrite_b, turbo=turbo, check_finite=check_finite,
    ))
    if b is not None or eigvals is not None:
        raise checks.fail_value(where, "b and eigvals must be None", b, "eigh(a)")
    return eigenpairs(in_float64(x), not eigvals_only, lower)


def packed_lu(a: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return `special.lu` of the backend of matrices that may have more columns than rows."""
    size = a.shape[-2]
    if size > a.shape[-1]:
        raise checks.fail_value("scipy.linalg.lu", "a must be as wide as it is high, or wider", tuple(a.shape), "a.T")
    packed, pivots, rows = backend.special.lu(a[..., :size])
    if a.shape[-1] > size:
        rest = keras.ops.take_along_axis(a[..., size:], rows[..., None], axis=-2)
        packed = keras.ops.concatenate([packed, triangular_solve(packed, rest, True, False, True)], axis=-1)
    return packed, pivots, rows


def lu_factor(a: TensorLike, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """The packed LU factorization of `a`, and the rows exchanged; `overwrite_a`, `check_finite` are not used."""
    return packed_lu(_matrix("lu_factor", a, overwrite_a=overwrite_a, check_finite=check_finite))[:2]


def lu(a: TensorLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The permutation p, int32, and factors l and u of `a` = p @ l @ u, as wide as high or wider: ``p, l, u = lu(a)``.

    With `permute_l` p @ l and u are returned. `overwrite_a` and `check_finite` are not used.
    """
    where = "scipy.linalg.lu"
    x = in_float64(a_tensor(where, "a", a, permute_l=permute_l, overwrite_a=overwrite_a, check_finite=check_finite))
    if rank_of(x) != 2:
        raise checks.fail_value(where, "a must be a matrix", tuple(x.shape), "a[0]")
    packed, _, rows = packed_lu(x)
    p, lower, upper = permutation_of(rows, x.shape[0], "int32"), unit_lower(packed, x.shape[0]), keras.ops.triu(packed)
    return (keras.ops.cast(p, x.dtype) @ lower, upper) if permute_l else (p, lower, upper)


def lu_pivots_to_permutation(pivots: TensorLike, permutation_size: int) -> Tensor:
    """The order, int32, of `permutation_size` rows after the exchanges `pivots` of `lu_factor`, (..., N)."""
    return permuted_rows(tensor("scipy.linalg.lu_pivots_to_permutation", pivots), permutation_size)


def lu_solve(
    lu_and_piv: Any, b: TensorLike, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Tensor:
    """Solve a @ x = `b`, (N,) or (N, M), for the `lu_and_piv` that `lu_factor` returns of a.

    `trans` is 1 or 2 for the transpose of a; `overwrite_b` and `check_finite` are not used.
    """
    where, (packed, pivots) = "scipy.linalg.lu_solve", lu_and_piv
    packed = square(where, "lu", a_tensor(where, "lu", packed, overwrite_b=overwrite_b, check_finite=check_finite))
    x, rhs = in_float64(packed), in_float64(right_side(where, "lu", packed, b))
    pivots, size = a_tensor(where, "pivots", pivots, (int32,)), x.shape[0]
    if tuple(pivots.shape) != (size,):
        raise checks.fail_value(where, f"pivots must be of {(size,)}", tuple(pivots.shape), "lu_factor(a)")
    rows = permuted_rows(pivots, size)
    if checks.one_of(where, "trans", trans, (0, 1, 2)) == 0:
        return _solved(x, _solved(x, keras.ops.take(rhs, rows, axis=0), 0, True, True), 0, False)
    return keras.ops.take(_solved(x, _solved(x, rhs, 1, False), 1, True, True), keras.ops.argsort(rows), axis=0)


def lstsq(A: TensorLike, B: TensorLike, rcond: float | None = None, driver: str | None = None) -> Any:
    """The solution x of the least norm of the least-squares problem `A` @ x = `B`; `B` is (..., M) or (..., M, K).

    Returns: x, which has a gradient; where M > N the sums of squares of `A` @ x - `B` (not of the `driver` "gelsy", the
    default); the rank (not of "gels"); the singular values (of "gelss" and "gelsd"). What is not computed is empty.

    `rcond` is not used. Example: ``x, squares, rank, values = lstsq(A, B)``.
    """
    where = "scipy.linalg.lstsq"
    checks.one_of(where, "driver", driver, (None, "gels", "gelsy", "gelss", "gelsd"))
    a = a_tensor(where, "A", A, _FLOATS)
    if rank_of(a) < 2:
        raise checks.fail_value(where, "A must have at least 2 axes", tuple(a.shape), "A of (M, N)")
    dtype, b, a = tensor_dtype(a), widened(right_side(where, "A", a, B)), widened(a)
    is_vector, fixed = rank_of(b) < rank_of(a), keras.ops.stop_gradient(a)
    b = b[..., None] if is_vector else b
    u, s, vh = keras.ops.svd(fixed, full_matrices=False)
    kept = s > s[..., :1] * max(a.shape[-2:]) * float(np.finfo(tensor_dtype(s)).eps)
    inverse = keras.ops.where(kept, 1 / keras.ops.where(kept, s, keras.ops.ones_like(s)), keras.ops.zeros_like(s))
    pinv = keras.ops.stop_gradient((adjoint(vh) * keras.ops.cast(inverse, a.dtype)[..., None, :]) @ adjoint(u))
    x = pinv @ b
    residual, change = b - fixed @ x, a - fixed
    # `change` is zero. Its gradient is that of the pseudo-inverse (Golub and Pereyra, 1973), which unlike that of the
    # singular vectors is finite where singular values are equal.
    turned = adjoint(change) @ (adjoint(pinv) @ x)
    x = x - pinv @ (change @ x - adjoint(pinv) @ (adjoint(change) @ residual) + fixed @ turned) + turned
    squares = keras.ops.stop_gradient(keras.ops.sum(keras.ops.square(keras.ops.abs(residual)), axis=-2))
    rank = keras.ops.sum(keras.ops.cast(kept, backend.canonical_dtype(int64)), axis=-1)
    shown = (True, driver not in (None, "gelsy") and a.shape[-2] > a.shape[-1], driver in ("gelss", "gelsd"))
    results = zip((x[..., 0] if is_vector else x, squares, s), shown, strict=True)
    x, squares, s = (result if is_shown else keras.ops.zeros((0,), result.dtype) for result, is_shown in results)
    x, squares, s = (keras.ops.cast(each, float16) if dtype == float16 else each for each in (x, squares, s))
    return x, squares, keras.ops.zeros((0,), rank.dtype) if driver == "gels" else rank, s


__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "det", "eigh", "inv", "lstsq", "lu", "lu_factor",
    "lu_pivots_to_permutation", "lu_solve", "solve_triangular",
]
globals().update({name: operator(name, globals()[name], owner="scipy.linalg") for name in __all__})

serve_names(__name__)
