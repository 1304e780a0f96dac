"""Calls of `scipy.linalg`, `scipy.fft` and their primitives, which tests/data/make_scipy_reference.py records.

Each is an expression of `S`, the module `scipy`, and of functions that make Tensors: `f` of float32, `d` of float64,
`i` of int32, `n` of int64, `c` of complex64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

_R: Final = np.random.RandomState(0)
A, B, X = (np.round(_R.rand(*shape), 3) for shape in ((4, 4), (4, 2), (2, 5)))
P: Final = A @ A.T + np.eye(4)  # Positive definite.

# Results, whose signs of vectors do not matter; "error" is recorded with its class.
CALLS: Final = [
    call.replace("M(", f"{kind}(") for kind in "fd" for call in (
        "S.linalg.inv(M(A))", "S.linalg.det(M(A))", "S.linalg.det(M(A[:3, :3]))", "S.linalg.det(M(A[:1, :1]))",
        "S.linalg.cholesky(M(P))", "S.linalg.cho_factor(M(P), True)", "S.linalg.cho_solve((M(P), False), M(B))",
        "S.linalg.cho_solve(S.linalg.cho_factor(M(P)), M(B[:, 0]))", "S.linalg.eigh(M(P), eigvals_only=True)",
        "S.linalg.eigh(M(A))[0]", "S.linalg.eigh(M(A), lower=False)[0]", "S.linalg.lu_factor(M(A))",
        "S.linalg.lu(M(A))", "S.linalg.lu(M(A[:2]))", "S.linalg.lu_solve(S.linalg.lu_factor(M(A)), M(B))",
        "S.linalg.solve_triangular(M(A), M(B))", "S.linalg.solve_triangular(M(A), M(B[:, 0]), 'T', True)",
        "S.linalg.solve_triangular(M(A), M(B), 2, False, True)", "S.linalg.solve_triangular(M([A, P]), M([B, B]))",
        "S.linalg.lstsq(M(A), M(B))", "S.linalg.lstsq(M(A[:, :2]), M(B), driver='gelss')",
        "S.linalg.lstsq(M(A[:2]), M(B[:2, 0]), driver='gels')", "S.linalg.lstsq(M([A, P]), M([B, B]), driver='gelsd')",
        "S.linalg.lstsq(M([[1, 2], [2, 4], [3, 6]]), M([1, 2, 4]), driver='gelsd')[0:3]",
        "S.linalg.block_diag(M([1, 2]), M(2), M(A))", "S.fft.dct(M(X))", "S.fft.dct(M(X), 2, 7, 0)", "S.fft.idct(M(X))",
        "S.fft.idct(M(X), 2, 3, -1, 'ortho')", "S.fft.dctn(M(X))", "S.fft.dctn(M(X), 2, (3, 4), (1, 0))",
        "S.fft.idctn(M(X), s=(3,))", "S.fft.idctn(M(X), axes=(0,))", "S.ops.LU()(M([A, P]))",
        "S.ops.SolveTriangular(True, False, 'T')(M(A), M(B))",
    )
] + [
    "S.linalg.inv(i([[2, 1], [1, 2]]))", "S.linalg.det(n([[2, 1], [1, 2]]))", "S.linalg.cholesky(i([[4, 2], [2, 2]]))",
    "S.linalg.eigh(n([[2, 1], [1, 2]]))[0]", "S.linalg.lu_factor(i([[1, 2], [3, 4]]))", "S.linalg.block_diag()",
    "S.linalg.solve_triangular(i([[2, 1], [1, 2]]), i([2, 4]))", "S.linalg.block_diag(i([1]), f([2.0]))",
    "S.linalg.solve_triangular(c(A + 1j * P), c(B), 'C')", "S.linalg.eigh(c(P + 1j * (A - A.T)))[0]",
    "S.linalg.lu_pivots_to_permutation(i([[2, 1, 2], [0, 2, 2]]), 4)", "S.fft.dct(c(X + 1j * X[::-1]))",
    "S.fft.dct(i([1, 2, 4]))", "S.fft.idct(n([1, 2, 4]))", "S.fft.idct(c(X + 1j * X[::-1]), 2, 4)",
]
ERRORS: Final = [
    "S.linalg.inv(A)", "S.linalg.inv(f(B))", "S.linalg.inv(f([A, A]))", "S.linalg.inv(f(A), 1)", "S.linalg.inv(c(A))",
    "S.linalg.eigh(f(A), f(A))", "S.linalg.eigh(f(A), eigvals=2)", "S.linalg.eigh(f(A), type=1.0)",
    "S.linalg.lu(f(B))", "S.linalg.lu(f([A]))", "S.linalg.lu_factor(f(B))", "S.linalg.cho_solve((f(P), True), i(B))",
    "S.linalg.cho_solve((f(P), True), f(B[:2]))", "S.linalg.cho_solve((f(P), 1), f(B))",
    "S.linalg.lu_solve((f(P), f([0, 1, 2, 3])), f(B))", "S.linalg.lu_solve((f(P), i([0, 1, 2, 3])), f(B), 3)",
    "S.linalg.lu_solve((f(P), i([0, 1])), f(B))", "S.linalg.solve_triangular(f(A), i(B))",
    "S.linalg.solve_triangular(f(A), f(B), 'X')", "S.linalg.solve_triangular(f(B), f(B))",
    "S.linalg.solve_triangular(f(A), f([B, B]))", "S.linalg.solve_triangular(f(A), f(B), lower=1)",
    "S.linalg.lstsq(f(A), c(B))", "S.linalg.lstsq(f(A[0]), f(A[0]))", "S.linalg.lstsq(f(A), f(B), driver='x')",
    "S.linalg.lstsq(i([[1]]), i([[1]]))", "S.linalg.block_diag(f([A]))", "S.fft.dct(f(X), 1)", "S.fft.dct(f(X), '2')",
    "S.fft.dct(f(X), norm='forward')", "S.fft.dct(f(X), n=0)", "S.fft.dct(f(X), n=2.0)", "S.fft.dct(f(X), axis=2)",
    "S.fft.dct(X)", "S.fft.dct(f(1.0))", "S.fft.dctn(f(X), s=(3, 4), axes=(0,))", "S.fft.dctn(f(X), axes=(0, 0))",
    "S.ops.Eig()(f(B))", "S.ops.Eig()(i([[1]]))", "S.ops.LU()(i([[1]]))",
]
# Functions of Tensors, whose sum of products with numbers is differentiated by all arguments, and the arguments.
GRADIENTS: Final = [
    call.replace("M(", f"{kind}(") for kind in "fd" for call in (
        "S.linalg.inv, M(A)", "lambda a: S.linalg.det(a), M(A[:3, :3])", "lambda a: S.linalg.eigh(a)[0], M(A)",
        "lambda a: S.linalg.eigh(a, lower=False)[0], M(A)", "lambda a: S.linalg.eigh(a)[1] ** 2, M(P)",
        "lambda a, b: S.linalg.solve_triangular(a, b, 'T', True), M(A), M(B)",
        "lambda a, b: S.linalg.solve_triangular(a, b, 0, False, True), M(A), M(B)",
        "lambda a, b: S.linalg.cho_solve((a, True), b), M(P), M(B)", "S.linalg.block_diag, M(A), M(B)",
        "lambda a, b: S.linalg.lstsq(a, b)[0], M(A), M(B)", "lambda a, b: S.linalg.lstsq(a, b)[0], M(A[:, :2]), M(B)",
        "lambda a, b: S.linalg.lstsq(a, b)[0], M(A[:2]), M(B[:2])", "lambda x: S.fft.dct(x, 2, 7, -1, 'ortho'), M(X)",
        "lambda x: S.fft.idct(x, 2, 3), M(X)", "lambda x: S.fft.dctn(x, 2, (3, 4), (1, 0), 'ortho'), M(X)",
        "lambda x: S.fft.idctn(x), M(X)",
    )
]


def names(scipy: Any, tensor: Callable[[Any, type], Any]) -> dict[str, Any]:
    """Return what the expressions refer to, for a module `scipy` and a function that makes its Tensors."""
    kinds = {"f": np.float32, "d": np.float64, "i": np.int32, "n": np.int64, "c": np.complex64}
    makers = {name: (lambda x, kind=kind: tensor(np.asarray(x, kind), kind)) for name, kind in kinds.items()}
    return {"S": scipy, "A": A, "B": B, "P": P, "X": X, **makers}


def weighted(result: Any) -> Any:
    """Return the sum of the products of a tensor with numbers that differ."""
    weights = np.cos(np.arange(float(np.prod(result.shape))).reshape(result.shape))
    return (result * type(result)(weights.astype(str(result.dtype).lower().split(".")[-1]))).sum()
