"""LU and QR factorizations in the packed form of LAPACK, and solvers that use them."""

from __future__ import annotations

import keras
import numpy as np

from mixtrain.ops.inputs import as_floats, tensor
from mixtrain.ops.linear_algebra import adjoint as conjugate_transposed, cholesky_solve, lstsq
from mixtrain.ops.primitive import configured, primitive, primitives
from mixtrain.typing import DTypeLike, Tensor, TensorLike


def _transposed(x: Tensor) -> Tensor:
    return keras.ops.swapaxes(x, -1, -2)


def unit_lower(x: Tensor, columns: int) -> Tensor:
    """Return the unit lower triangular matrix of the elements below the diagonal."""
    below = keras.ops.tril(x, -1)[..., :columns]
    return below + keras.ops.eye(x.shape[-2], columns, dtype=x.dtype)


def permuted_rows(pivots: Tensor, size: int) -> Tensor:
    """Return the order of `size` rows after the exchanges `pivots`, which count from 0."""
    pivots = keras.ops.cast(pivots, "int32")
    indices = keras.ops.arange(size, dtype="int32")
    rows = keras.ops.broadcast_to(indices, (*pivots.shape[:-1], size))
    for index in range(pivots.shape[-1]):
        pivot = pivots[..., index : index + 1]
        row, pivot_row = rows[..., index : index + 1], keras.ops.take_along_axis(rows, pivot, axis=-1)
        rows = keras.ops.where(indices == pivot, row, keras.ops.where(indices == index, pivot_row, rows))
    return rows


def permutation_of(rows: Tensor, size: int, dtype: DTypeLike) -> Tensor:
    """Return the matrix that undoes an order of `size` rows."""
    return _transposed(keras.ops.one_hot(rows, size, dtype=dtype))


def lu_unpack(
    LU_data: TensorLike, LU_pivots: TensorLike, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, Tensor, Tensor]:
    """Unpack `LU_data` and `LU_pivots` to the permutation, the lower and the upper factor.

    All three are returned, whatever `unpack_data` and `unpack_pivots` are. Example: ``ops.lu_unpack(packed, pivots)``.
    """
    x, pivots = as_floats("ops.lu_unpack", LU_data), tensor("ops.lu_unpack", LU_pivots)
    size = min(x.shape[-2:])
    upper = keras.ops.triu(x)[..., :size, :]
    rows = permuted_rows(pivots - 1, x.shape[-2])
    return permutation_of(rows, x.shape[-2], x.dtype), unit_lower(x, size), upper


def lu_solve(b: TensorLike, LU_data: TensorLike, LU_pivots: TensorLike) -> Tensor:
    """Solve A @ x = `b` for the packed LU factorization of A: ``ops.lu_solve(b, LU_data, LU_pivots)``."""
    rhs = as_floats("ops.lu_solve", b)
    permutation, lower, upper = lu_unpack(LU_data, LU_pivots)
    rhs = keras.ops.solve_triangular(lower, keras.ops.matmul(_transposed(permutation), rhs), lower=True)
    return keras.ops.solve_triangular(upper, rhs)


def geqrf(input: TensorLike) -> tuple[Tensor, Tensor]:
    """The packed QR factorization of the matrices `input`: R with Householder vectors below it, and their factors.

    Example: ``ops.geqrf(Tensor([[-2.0, -1.0], [1.0, 2.0]]))``.
    """
    x = as_floats("ops.geqrf", input)
    height, width = x.shape[-2:]
    rows, columns = np.arange(height)[:, None], np.arange(width)
    factors = []
    for index in range(min(height, width)):
        column = x[..., index : index + 1]
        head = column[..., index : index + 1, :]
        tail = keras.ops.where(rows > index, column, keras.ops.zeros_like(column))
        tail_norm2 = keras.ops.sum(keras.ops.square(tail), axis=-2, keepdims=True)
        zero = tail_norm2 == 0
        # The diagonal element of R has the sign opposite to `head`, so that `head - diagonal` does not cancel.
        diagonal = keras.ops.sqrt(tail_norm2 + keras.ops.square(head))
        diagonal = keras.ops.where(zero, head, keras.ops.where(head > 0, -diagonal, diagonal))
        factor = keras.ops.where(
            zero, keras.ops.zeros_like(head), (diagonal - head) / keras.ops.where(zero, 1, diagonal)
        )
        tail = tail / keras.ops.where(zero, keras.ops.ones_like(head), head - diagonal)
        vector = tail + keras.ops.cast(rows == index, x.dtype)
        reflected = x - factor * keras.ops.matmul(vector, keras.ops.matmul(_transposed(vector), x))
        # The columns to the right are reflected; this one holds its element of R, and the vector below it.
        x = keras.ops.where((columns > index) & (rows >= index), reflected, x)
        x = keras.ops.where(columns == index, keras.ops.where(rows > index, tail, x), x)
        x = keras.ops.where((columns == index) & (rows == index), diagonal, x)
        factors.append(factor[..., 0, 0])
    return x, keras.ops.stack(factors, axis=-1)


def orgqr(input: TensorLike, input2: TensorLike) -> Tensor:
    """The orthogonal matrix of the `input` and `input2` that `geqrf` returns. Example: ``ops.orgqr(*ops.geqrf(x))``."""
    x, factors = as_floats("ops.orgqr", input), as_floats("ops.orgqr", input2)
    vectors = unit_lower(x, min(x.shape[-2:]))
    q = keras.ops.eye(x.shape[-2], dtype=x.dtype)
    for index in range(factors.shape[-1]):
        vector = vectors[..., index : index + 1]
        q = q - factors[..., index, None, None] * keras.ops.matmul(keras.ops.matmul(q, vector), _transposed(vector))
    return q[..., : x.shape[-1]]


def triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool, adjoint: bool, unit_diagonal: bool = False
) -> Tensor:
    """Solve `matrix` @ x = `rhs`, of one triangle; with `unit_diagonal` ones stand on the diagonal."""
    factor = as_floats("ops.MatrixTriangularSolve", matrix)
    factor = keras.ops.tril(factor, -unit_diagonal) if lower else keras.ops.triu(factor, int(unit_diagonal))
    factor = factor + keras.ops.eye(factor.shape[-1], dtype=factor.dtype) if unit_diagonal else factor
    factor = conjugate_transposed(factor) if adjoint else factor
    return keras.ops.solve_triangular(factor, as_floats("ops.MatrixTriangularSolve", rhs), lower=lower is not adjoint)


def _tridiagonal_product(superdiag: Tensor, maindiag: Tensor, subdiag: Tensor, rhs: Tensor) -> Tensor:
    upper, main, lower, x = (as_floats("ops.TridiagonalMatMul", value) for value in (superdiag, maindiag, subdiag, rhs))
    previous = keras.ops.pad(x[..., :-1, :], [(0, 0)] * (x.ndim - 2) + [(1, 0), (0, 0)])
    following = keras.ops.pad(x[..., 1:, :], [(0, 0)] * (x.ndim - 2) + [(0, 1), (0, 0)])
    return _transposed(upper) * following + _transposed(main) * x + _transposed(lower) * previous


CholeskySolve = configured("CholeskySolve", cholesky_solve, upper=False)
LuSolve = primitive("LuSolve", lu_solve)
LuUnpack = configured("LuUnpack", lu_unpack, unpack_data=True, unpack_pivots=True)
Lstsq = configured("Lstsq", lambda x, a, *, fast, l2_regularizer: lstsq(x, a), fast=True, l2_regularizer=0.0)
MatrixTriangularSolve = configured("MatrixTriangularSolve", triangular_solve, lower=True, adjoint=False)
Orgqr, TridiagonalMatMul = primitives(Orgqr=orgqr, TridiagonalMatMul=_tridiagonal_product)
