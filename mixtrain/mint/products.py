"""Products of vectors and matrices, norms and decompositions, and the parts of batch normalization."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mixtrain import ops
from mixtrain.dtype import float32
from mixtrain.mint.named import written

_EUCLID: Final = "use_mm_for_euclid_dist_if_necessary"


def _conv_tbc(input: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """Convolve `input` (L, N, C) with `weight` (width, C, channels of the output)."""
    x, kernel = ops.permute(input, (1, 2, 0)), ops.permute(weight, (2, 1, 0))
    return ops.permute(ops.conv1d(x, kernel, bias, 1, "pad", pad), (2, 0, 1))


def _diag(input: Any, diagonal: int = 0) -> Any:
    return ops.diagonal(input, diagonal) if input.ndim == 2 else ops.diagflat(input, diagonal)


def _einsum(*parts: Any) -> Any:
    """Compute ``einsum(equation, *operands)``, or ``einsum(a, [0, 1], b, [1, 2], [0, 2])``."""
    equation, operands = parts[0], parts[1:]
    if not isinstance(equation, str):
        lists = ["".join("..." if n is ... else chr(97 + n) for n in axes) for axes in (*parts[1::2], parts[-1])]
        operands = parts[: len(parts) // 2 * 2 : 2]
        equation = ",".join(lists[: len(operands)]) + (f"->{lists[-1]}" if len(parts) % 2 else "")
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    if arrow and "..." not in output:  # The axes of the dots are summed over, which Keras does not.
        free = [letter for letter in "ZYXWVUTSRQPO" if letter not in inputs]
        terms = zip(inputs.split(","), operands, strict=True)
        inputs = ",".join(
            term.replace("...", "".join(free[: x.ndim - len(term.replace("...", ""))][::-1])) for term, x in terms
        )
    return ops.einsum(inputs + arrow + output, *operands)


def _norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    if p == "nuc":
        return ops.matrix_norm(input, p, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    return ops.vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


def _triangular_solve(
    b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Any, Any]:
    triangle = ops.triu(A, int(unitriangular)) if upper else ops.tril(A, -int(unitriangular))
    matrix = ops.add(triangle, ops.eye(A.shape[-1], dtype=A.dtype)) if unitriangular else triangle
    return ops.MatrixTriangularSolve(not upper, transpose)(matrix, b), A.clone()


def _statistics(input: Any, eps: float) -> tuple[Any, Any]:
    variance, mean = ops.var_mean(ops.cast(input, float32), (0, *range(2, input.ndim)), 0)
    return mean, ops.rsqrt(ops.add(variance, eps))


def _normalized(
    input: Any, weight: Any = None, bias: Any = None, mean: Any = None, invstd: Any = None, eps: float = 1e-5
) -> Any:
    # As a normalization by running statistics, of which these are the parts.
    return ops.batch_norm(input, mean, ops.sub(ops.reciprocal(ops.square(invstd)), eps), weight, bias, eps=eps)


def _gathered(
    input: Any, mean: Any, invstd: Any, running_mean: Any = None, running_var: Any = None, momentum: float = 0.1,
    eps: float = 1e-5, counts: Any = None,
) -> tuple[Any, Any]:
    """Join the statistics of several processes, a row each, with how many elements each has seen."""
    weights = ops.reshape(ops.cast(counts, float32), (-1, 1))
    total = ops.sum(weights)
    joint = ops.div(ops.sum(ops.mul(mean, weights), 0), total)
    squares = ops.add(ops.sub(ops.reciprocal(ops.square(invstd)), eps), ops.square(ops.sub(mean, joint)))
    squares = ops.sum(ops.mul(squares, weights), 0)
    for running, batch in ((running_mean, joint), (running_var, ops.div(squares, ops.sub(total, 1)))):
        if running is not None:
            written(running, ops.lerp(running, ops.cast(batch, running.dtype), momentum))
    return joint, ops.rsqrt(ops.add(ops.div(squares, total), eps))


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "baddbmm": lambda input, batch1, batch2, *, beta=1, alpha=1: ops.baddbmm(input, batch1, batch2, beta, alpha),
    "batch_norm_elemt": _normalized,
    "batch_norm_gather_stats_with_counts": _gathered,
    "batch_norm_stats": _statistics,
    "bmm": lambda input, mat2: ops.bmm(input, mat2),
    "cdist": lambda x1, x2, p=2.0, compute_mode=_EUCLID: ops.cdist(x1, x2, p),
    "conv_tbc": _conv_tbc,
    "diag": _diag,
    "einsum": _einsum,
    "mv": lambda input, vec: ops.mv(input, vec),
    "norm": _norm,
    "triangular_solve": _triangular_solve,
    "vdot": lambda input, other: ops.dot(ops.conj(input) if ops.is_complex(input) else input, other),
}
LINALG: Final[Mapping[str, Callable[..., Any]]] = {
    "inv": lambda input: ops.inverse(input),
    "vector_norm": lambda x, ord=2, dim=None, keepdim=False, *, dtype=None: ops.vector_norm(
        x, ord, dim, keepdim, dtype=dtype
    ),
    "matrix_norm": lambda A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None: ops.matrix_norm(
        A, ord, dim, keepdim, dtype=dtype
    ),
    "norm": lambda A, ord=None, dim=None, keepdim=False, *, dtype=None: ops.norm(A, ord, dim, keepdim, dtype=dtype),
    "qr": lambda A, mode="reduced": ops.qr(A, mode) if mode != "r" else (ops.zeros((0,), A.dtype), ops.qr(A)[1]),
}
