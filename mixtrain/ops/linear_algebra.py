"""Linear algebra: products with an addend, determinants, factorizations and solvers, with their primitives."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import checks
from mixtrain.dtype import as_dtype
from mixtrain.ops.arithmetic import add, mul
from mixtrain.ops.array import swapaxes
from mixtrain.ops.complex_numbers import conj
from mixtrain.ops.elementwise import renamed
from mixtrain.ops.inputs import as_floats, axis_of, pair, rank_of, tensor
from mixtrain.ops.primitive import REQUIRED, configured, primitive, primitives
from mixtrain.ops.products import bmm, matmul, mv, outer
from mixtrain.typing import DTypeLike, Tensor, TensorLike


def adjoint(x: TensorLike) -> Tensor:
    """The conjugate transpose of the matrices `x`."""
    return conj(swapaxes(x, -1, -2))


_adjoint = adjoint  # Where an argument has its name.


def addbmm(
    input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
) -> Tensor:
    """`beta` * `input` + `alpha` * the sum of the products of `batch1` and `batch2`."""
    return add(mul(input, beta), mul(keras.ops.sum(bmm(batch1, batch2), axis=0), alpha))


def addmv(
    input: TensorLike, mat: TensorLike, vec: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
) -> Tensor:
    """`beta` * `input` + `alpha` * (`mat` @ `vec`)."""
    return add(mul(input, beta), mul(mv(mat, vec), alpha))


def addr(x: TensorLike, vec1: TensorLike, vec2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1) -> Tensor:
    """`beta` * `x` + `alpha` * the outer product of `vec1` and `vec2`."""
    return add(mul(x, beta), mul(outer(vec1, vec2), alpha))


def inner(input: TensorLike, other: TensorLike) -> Tensor:
    """The dot products over the last axes of `input` and `other`."""
    return keras.ops.inner(*pair("ops.inner", input, other, broadcast=False))


def kron(input: TensorLike, other: TensorLike) -> Tensor:
    """The Kronecker product of `input` and `other`."""
    # `keras.ops.kron` is newer than Keras 3.10, and fails in compiled functions on TensorFlow.
    x, y = pair("ops.kron", input, other, broadcast=False)
    shapes = keras.ops.shape(x), keras.ops.shape(y)
    rank = max(map(len, shapes))
    sizes = list(zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes), strict=True))
    # The axes of `x` and `y` alternate, each broadcast along the other's.
    product = keras.ops.multiply(
        keras.ops.reshape(x, [size for x_size, _ in sizes for size in (x_size, 1)]),
        keras.ops.reshape(y, [size for _, y_size in sizes for size in (1, y_size)]),
    )
    return keras.ops.reshape(product, [x_size * y_size for x_size, y_size in sizes])


def cross(input: TensorLike, other: TensorLike, dim: int | None = None) -> Tensor:
    """Cross products of `input` and `other` along `dim`; without it, along the first axis of length 3."""
    x, y = pair("ops.cross", input, other)
    shape = tuple(x.shape)
    if dim is None and 3 not in shape:
        raise checks.fail_value("ops.cross", "input must have an axis of length 3", shape, "vectors (N, 3)")
    axis = shape.index(3) if dim is None else axis_of("ops.cross", dim, len(shape), name="dim")
    if shape[axis] not in (3, None):
        raise checks.fail_value("ops.cross", "the axis dim must have length 3", shape, "dim of vectors (N, 3)")
    return keras.ops.cross(x, y, axis=axis)


def dense(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`input` times the transpose of `weight` (out, in), plus `bias`. Example: ``ops.dense(x, weight)``."""
    w = tensor("ops.dense", weight)
    product = matmul(input, keras.ops.swapaxes(w, -1, -2) if rank_of(w) > 1 else w)
    return product if bias is None else add(product, bias)


def bidense(input1: TensorLike, input2: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """`input1` @ `weight` @ `input2` for each output of `weight` (out, in1, in2), plus `bias`."""
    x, y = as_floats("ops.bidense", input1), as_floats("ops.bidense", input2)
    product = keras.ops.einsum("...i,oij,...j->...o", x, as_floats("ops.bidense", weight), y)
    return product if bias is None else add(product, bias)


def vecdot(x: TensorLike, y: TensorLike, *, axis: int = -1) -> Tensor:
    """The dot products of `x`, of complex numbers its conjugate, and `y` along `axis`."""
    return keras.ops.sum(mul(conj(x), y), axis=axis)


def batch_dot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[int] | None = None) -> Tensor:
    """The dot products of `x1` and `x2` over one axis each, `axes`, for every sample of the batch."""
    x, y = as_floats("ops.batch_dot", x1), as_floats("ops.batch_dot", x2)
    if axes is None:
        axes = (rank_of(x) - 1, 1 if rank_of(y) == 2 else rank_of(y) - 2)
    x_axis, y_axis = (axes, axes) if isinstance(axes, int) else axes
    # Einsum labels: "b" is the batch, "z" the axes that are summed over.
    x_labels, y_labels = [*"bcdefgh"[: rank_of(x)]], [*"bijklmn"[: rank_of(y)]]
    x_labels[x_axis], y_labels[y_axis] = "z", "z"
    labels = [label for label in [*x_labels, *y_labels[1:]] if label != "z"]
    product = keras.ops.einsum(f"{''.join(x_labels)},{''.join(y_labels)}->{''.join(labels)}", x, y)
    return keras.ops.expand_dims(product, -1) if len(labels) == 1 else product


def det(input: TensorLike) -> Tensor:
    """The determinants of the matrices `input`."""
    return keras.ops.det(as_floats("ops.det", input))


def logdet(input: TensorLike) -> Tensor:
    """The logarithms of the determinants of `input`."""
    # Not `keras.ops.logdet`, which on TensorFlow is for positive definite matrices only.
    sign, logarithm = keras.ops.slogdet(as_floats("ops.logdet", input))
    return keras.ops.log(sign) + logarithm


def slogdet(input: TensorLike) -> tuple[Tensor, Tensor]:
    """The signs of the determinants of `input`, and the logarithms of their absolute values."""
    return tuple(keras.ops.slogdet(as_floats("ops.slogdet", input)))  # type: ignore[return-value]


def inverse(input: TensorLike) -> Tensor:
    """The inverses of the matrices `input`."""
    return keras.ops.inv(as_floats("ops.inverse", input))


def _inverse(x: Tensor, adjoint: bool) -> Tensor:
    result = inverse(x)
    return _adjoint(result) if adjoint else result


def pinv(
    x: TensorLike, *, atol: TensorLike | None = None, rtol: TensorLike | None = None, hermitian: bool = False
) -> Tensor:
    """The pseudo-inverses of the matrices `x`; singular values below `atol` or `rtol` times the largest count as 0.

    `hermitian` is accepted; the result is the same.
    """
    value = as_floats("ops.pinv", x)
    u, s, v = keras.ops.svd(value, full_matrices=False)
    # 1.2e-7 is the machine epsilon of float32.
    relative = float(rtol if rtol is not None else 0.0 if atol else max(value.shape[-2:]) * 1.2e-7)
    limit = keras.ops.maximum(keras.ops.max(s, axis=-1, keepdims=True) * relative, float(atol or 0.0))
    # The inner `where` keeps the gradient of 1 / 0 out of the result.
    reciprocal = keras.ops.where(s > limit, 1 / keras.ops.where(s > limit, s, 1.0), 0.0)
    return keras.ops.matmul(keras.ops.swapaxes(v, -1, -2) * reciprocal[..., None, :], keras.ops.swapaxes(u, -1, -2))


def cholesky(input_x: TensorLike, upper: bool = False) -> Tensor:
    """The Cholesky factor of `input_x`, lower or `upper`."""
    lower = keras.ops.cholesky(as_floats("ops.cholesky", input_x))  # Keras 3.10 has no `upper`.
    return swapaxes(lower, -1, -2) if upper else lower


def cholesky_inverse(input_x: TensorLike, upper: bool = False) -> Tensor:
    """The inverse of the matrix whose factor, lower or `upper`, is `input_x`."""
    x = as_floats("ops.cholesky_inverse", input_x)
    transposed = keras.ops.swapaxes(x, -1, -2)
    return keras.ops.inv(keras.ops.matmul(transposed, x) if upper else keras.ops.matmul(x, transposed))


def cholesky_solve(input: TensorLike, input2: TensorLike, upper: bool = False) -> Tensor:
    """Solve A @ x = `input` for the A whose Cholesky factor, lower or `upper`, is `input2`."""
    factor = as_floats("ops.cholesky_solve", input2)
    inverse = cholesky_inverse(keras.ops.triu(factor) if upper else keras.ops.tril(factor), upper)
    return keras.ops.matmul(inverse, as_floats("ops.cholesky_solve", input))


def matrix_solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False) -> Tensor:
    """Solve `matrix` @ x = `rhs`; with `adjoint`, for the conjugate transpose of `matrix`."""
    x = as_floats("ops.matrix_solve", matrix)
    return keras.ops.solve(_adjoint(x) if adjoint else x, as_floats("ops.matrix_solve", rhs))


def matrix_power(input: TensorLike, n: int) -> Tensor:
    """The matrices `input` to the power `n`."""
    x = as_floats("ops.matrix_power", input)
    x = x if n >= 0 else keras.ops.inv(x)
    product = keras.ops.broadcast_to(keras.ops.eye(x.shape[-1], dtype=x.dtype), x.shape)
    for _ in range(abs(n)):
        product = keras.ops.matmul(product, x)
    return product


def lstsq(input: TensorLike, A: TensorLike) -> Tensor:
    """The least-squares solution x of `input` @ x = `A`."""
    return keras.ops.lstsq(as_floats("ops.lstsq", input), as_floats("ops.lstsq", A))


def qr(input: TensorLike, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """The orthogonal and the triangular factor of `input`; `mode` "complete" keeps all columns."""
    return tuple(keras.ops.qr(as_floats("ops.qr", input), mode=mode))  # type: ignore[return-value]


def svd(
    input: TensorLike, full_matrices: bool = False, compute_uv: bool = True
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Singular values of `input`, and with `compute_uv` the matrices u and v, square where `full_matrices`."""
    x = as_floats("ops.svd", input)
    if not compute_uv:
        return keras.ops.svd(x, full_matrices, compute_uv=False)
    u, s, v = keras.ops.svd(x, full_matrices)
    return s, u, keras.ops.swapaxes(v, -1, -2)


def trace(
    input: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None
) -> Tensor:
    """The sum of the diagonal `offset` of `input` in the plane of `axis1` and `axis2`, in `dtype`: ``ops.trace(x)``."""
    total = keras.ops.trace(tensor("ops.trace", input), offset, axis1, axis2)
    return total if dtype is None else keras.ops.cast(total, as_dtype(dtype))


def cond(A: TensorLike, p: float | str | None = None) -> Tensor:
    """The condition number of the matrices `A` in the norm `p`; None is the ratio of the extreme singular values."""
    x = as_floats("ops.cond", A)
    if p is None or p in (2, -2):
        values = keras.ops.svd(x, compute_uv=False)
        ratio = values[..., 0] / values[..., -1]
        return 1 / ratio if p == -2 else ratio
    return keras.ops.norm(x, ord=p, axis=(-2, -1)) * keras.ops.norm(keras.ops.inv(x), ord=p, axis=(-2, -1))


def block_diag(*inputs: TensorLike) -> Tensor:
    """The block-diagonal matrix of the matrices `inputs`."""
    blocks = [tensor("ops.block_diag", value) for value in inputs]
    blocks = [keras.ops.reshape(block, (1,) * (2 - rank_of(block)) + tuple(block.shape)) for block in blocks]
    width, rows, start = sum(block.shape[1] for block in blocks), [], 0
    for block in blocks:
        rows.append(keras.ops.pad(block, [(0, 0), (start, width - start - block.shape[1])]))
        start += block.shape[1]
    return keras.ops.concatenate(rows, axis=0)


def matrix_band_part(x: TensorLike, lower: int, upper: int) -> Tensor:
    """The matrices `x` with zeros outside a band of `lower` diagonals below the main one and `upper` above it."""
    value = tensor("ops.matrix_band_part", x)
    value = value if lower < 0 else keras.ops.triu(value, -int(lower))
    return value if upper < 0 else keras.ops.tril(value, int(upper))


ger = renamed(outer, "ger")
Ger = primitive("Ger", ger)
MatrixPower = configured("MatrixPower", matrix_power, n=REQUIRED)
MatrixDeterminant, LogMatrixDeterminant, MatrixBandPart = primitives(
    MatrixDeterminant=det, LogMatrixDeterminant=slogdet, MatrixBandPart=matrix_band_part,
)
Cholesky = configured("Cholesky", cholesky, upper=False)
MatrixSolve = configured("MatrixSolve", matrix_solve, adjoint=False)
MatrixInverse = configured("MatrixInverse", _inverse, adjoint=False)
# As in MindSpore, -65530 is the first axis of length 3.
Cross = configured("Cross", lambda input, other, dim: cross(input, other, None if dim == -65530 else dim), dim=-65530)
Qr = configured("Qr", lambda x, full_matrices: qr(x, "complete" if full_matrices else "reduced"), full_matrices=False)
