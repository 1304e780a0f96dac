"""Matrices as products of triangular, orthogonal and diagonal ones, packed as by LAPACK, and solving by them."""

from __future__ import annotations

from typing import Any, Final

import keras
import numpy as np

from mixtrain.ops.inputs import as_floats, tensor
from mixtrain.ops.linear_algebra import cholesky_solve, lstsq
from mixtrain.ops.primitive import configured, primitive


def _transposed(x: Any) -> Any:
    return keras.ops.swapaxes(x, -1, -2)


def _unit_lower(x: Any, columns: int) -> Any:
    """The lower triangle below a diagonal of ones."""
    below = keras.ops.tril(x, -1)[..., :columns]
    return below + keras.ops.eye(x.shape[-2], columns, dtype=x.dtype)


def _permutation(pivots: Any, size: int, dtype: Any) -> Any:
    """The matrix that undoes the exchanges of rows `pivots`, which count from 1."""
    chosen = keras.ops.cast(pivots, "int32") - 1
    numbers = keras.ops.arange(size, dtype="int32")
    rows = keras.ops.broadcast_to(numbers, (*chosen.shape[:-1], size))
    for place in range(chosen.shape[-1]):
        other = chosen[..., place : place + 1]
        here, there = rows[..., place : place + 1], keras.ops.take_along_axis(rows, other, axis=-1)
        rows = keras.ops.where(numbers == other, here, keras.ops.where(numbers == place, there, rows))
    return _transposed(keras.ops.one_hot(rows, size, dtype=dtype))


def lu_unpack(
    LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Any, Any, Any]:
    """Return the permutation, the lower and the upper factor that `LU_data` and `LU_pivots` hold packed.

    `unpack_data` and `unpack_pivots` are accepted; all three are returned.

    Example: ``ops.lu_unpack(packed, pivots)``. Source: MindSpore, `mindspore.ops.lu_unpack`.
    """
    x, pivots = as_floats("ops.lu_unpack", LU_data), tensor("ops.lu_unpack", LU_pivots)
    least = min(x.shape[-2:])
    upper = keras.ops.triu(x)[..., :least, :]
    return _permutation(pivots, x.shape[-2], x.dtype), _unit_lower(x, least), upper


def lu_solve(b: Any, LU_data: Any, LU_pivots: Any) -> Any:
    """Return x with A @ x = `b`, for the A that `LU_data` and `LU_pivots` hold packed.

    Example: ``ops.lu_solve(b, packed, pivots)``. Source: MindSpore, `mindspore.ops.lu_solve`.
    """
    right = as_floats("ops.lu_solve", b)
    permutation, lower, upper = lu_unpack(LU_data, LU_pivots)
    forward = keras.ops.solve_triangular(lower, keras.ops.matmul(_transposed(permutation), right), lower=True)
    return keras.ops.solve_triangular(upper, forward)


def geqrf(input: Any) -> tuple[Any, Any]:
    """Return the QR factorization of matrices `input`, packed: R, below it the Householder vectors, and their factors.

    Example: ``ops.geqrf(Tensor([[-2.0, -1.0], [1.0, 2.0]]))``. Source: MindSpore, `mindspore.ops.geqrf`.
    """
    x = as_floats("ops.geqrf", input)
    height, width = x.shape[-2:]
    rows, columns = np.arange(height)[:, None], np.arange(width)
    factors = []
    for place in range(min(height, width)):
        column = x[..., place : place + 1]
        head = column[..., place : place + 1, :]
        tail = keras.ops.where(rows > place, column, keras.ops.zeros_like(column))
        rest = keras.ops.sum(keras.ops.square(tail), axis=-2, keepdims=True)
        zero = rest == 0
        found = keras.ops.sqrt(rest + keras.ops.square(head))
        found = keras.ops.where(zero, head, keras.ops.where(head > 0, -found, found))
        factor = keras.ops.where(zero, keras.ops.zeros_like(head), (found - head) / keras.ops.where(zero, 1, found))
        vector = tail / keras.ops.where(zero, keras.ops.ones_like(head), head - found)
        full = vector + keras.ops.cast(rows == place, x.dtype)
        turned = x - factor * keras.ops.matmul(full, keras.ops.matmul(_transposed(full), x))
        # To the right, and the row of R, is turned; the column keeps R's end and the vector below it.
        x = keras.ops.where((columns > place) & (rows >= place), turned, x)
        x = keras.ops.where(columns == place, keras.ops.where(rows > place, vector, x), x)
        x = keras.ops.where((columns == place) & (rows == place), found, x)
        factors.append(factor[..., 0, 0])
    return x, keras.ops.stack(factors, axis=-1)


def orgqr(input: Any, input2: Any) -> Any:
    """Return the orthogonal matrix of the Householder vectors `input` and factors `input2` that `geqrf` returns.

    Example: ``ops.orgqr(*ops.geqrf(x))``. Source: MindSpore, `mindspore.ops.orgqr`.
    """
    x, factors = as_floats("ops.orgqr", input), as_floats("ops.orgqr", input2)
    vectors = _unit_lower(x, min(x.shape[-2:]))
    found = keras.ops.eye(x.shape[-2], dtype=x.dtype)
    for place in range(factors.shape[-1]):
        vector = vectors[..., place : place + 1]
        found = found - factors[..., place, None, None] * keras.ops.matmul(
            keras.ops.matmul(found, vector), _transposed(vector)
        )
    return found[..., : x.shape[-1]]


def _triangular_solve(matrix: Any, rhs: Any, lower: bool, adjoint: bool) -> Any:
    factor = as_floats("ops.MatrixTriangularSolve", matrix)
    factor = keras.ops.tril(factor) if lower else keras.ops.triu(factor)
    factor = _transposed(factor) if adjoint else factor
    return keras.ops.solve_triangular(
        factor, as_floats("ops.MatrixTriangularSolve", rhs), lower=lower is not adjoint
    )


def _tridiagonal_product(superdiag: Any, maindiag: Any, subdiag: Any, rhs: Any) -> Any:
    above, on, below, right = (as_floats("ops.TridiagonalMatMul", one) for one in (superdiag, maindiag, subdiag, rhs))
    before = keras.ops.pad(right[..., :-1, :], [(0, 0)] * (right.ndim - 2) + [(1, 0), (0, 0)])
    after = keras.ops.pad(right[..., 1:, :], [(0, 0)] * (right.ndim - 2) + [(0, 1), (0, 0)])
    return _transposed(above) * after + _transposed(on) * right + _transposed(below) * before


CholeskySolve: Final = configured("CholeskySolve", cholesky_solve, upper=False)
LuSolve: Final = primitive("LuSolve", lu_solve)
LuUnpack: Final = configured("LuUnpack", lu_unpack, unpack_data=True, unpack_pivots=True)
Lstsq: Final = configured("Lstsq", lambda x, a, *, fast, l2_regularizer: lstsq(x, a), fast=True, l2_regularizer=0.0)
MatrixTriangularSolve: Final = configured("MatrixTriangularSolve", _triangular_solve, lower=True, adjoint=False)
Orgqr: Final = primitive("Orgqr", orgqr)
TridiagonalMatMul: Final = primitive("TridiagonalMatMul", _tridiagonal_product)
