"""Products of matrices and vectors, with their primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import keras

from mixtrain import backend, checks
from mixtrain.dtype import int8, int64, uint64
from mixtrain.ops.arithmetic import add, mul
from mixtrain.ops.inputs import rank_of, tensor, tensor_dtype
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.promotion import promoted
from mixtrain.typing import Tensor, TensorLike

# Bound at import: an autocast replaces the functions in `keras.ops` by ones that cast, but dtypes are settled here.
_matmul_of, _dot_of, _tensordot_of, _einsum_of = (
    keras.ops.matmul, keras.ops.dot, keras.ops.tensordot, keras.ops.einsum
)


def _two(where: str, x: TensorLike, y: TensorLike, ranks: tuple[int, ...] = ()) -> tuple[Tensor, Tensor]:
    """Return two tensors of their common dtype; with `ranks`, check that each has one of them."""
    x, y = tensor(where, x), tensor(where, y)
    for value in (x, y):
        if ranks and rank_of(value) not in ranks:
            expected = " or ".join(str(rank) for rank in ranks)
            raise ValueError(
                f"{where}: expected tensors with {expected} axes; got shape {tuple(value.shape)}. "
                f"Write a tensor with {expected} axes, or ops.matmul."
            )
    if x.dtype == y.dtype:
        return x, y
    dtype = promoted(tensor_dtype(x), tensor_dtype(y))
    return keras.ops.cast(x, dtype), keras.ops.cast(y, dtype)


def matmul(input: TensorLike, other: TensorLike) -> Tensor:
    """Multiply matrices, vectors, or batches of matrices `input` (..., n, k) and `other` (..., k, m).

    Leading axes broadcast; a vector's axis is left out. Example:
    ``ops.matmul(Tensor([[1.0, 2.0]]), Tensor([[3.0], [4.0]]))`` is ``[[11.0]]``.
    """
    return _matmul("ops.matmul", *_two("ops.matmul", input, other))


def plain_matmul(x: TensorLike, y: TensorLike) -> Tensor:
    """`matmul` of two backend tensors of one dtype."""
    return _matmul("Tensor", x, y)


def _matmul(where: str, x: Tensor, y: Tensor) -> Tensor:
    if not rank_of(x) or not rank_of(y):
        raise ValueError(f"{where}: expected vectors or matrices; got a scalar. Write ops.mul(x, y).")
    inner, outer = x.shape[-1], y.shape[-2] if rank_of(y) > 1 else y.shape[-1]
    if None not in (inner, outer) and inner != outer:
        raise ValueError(
            f"{where}: expected the last axis of the first tensor to be as long as the "
            f"{'last but one' if rank_of(y) > 1 else 'only'} axis of the second; got shapes {tuple(x.shape)} and "
            f"{tuple(y.shape)}. Write the transpose of one of them."
        )
    dtype = tensor_dtype(x)
    if dtype == uint64:  # Keras multiplies in 32 bits; in int64 the last 64 bits are the same.
        x, y = keras.ops.cast(x, int64), keras.ops.cast(y, int64)
    result = backend.product(_matmul_of, x, y)
    return keras.ops.cast(result, dtype) if dtype in (int8, uint64) else result


def bmm(input_x: TensorLike, mat2: TensorLike) -> Tensor:
    """Multiply the matrices of two batches (..., n, k) `input_x` and (..., k, m) `mat2`."""
    return _matmul("ops.bmm", *_two("ops.bmm", input_x, mat2, (3, 4, 5, 6)))


def mm(input: TensorLike, mat2: TensorLike) -> Tensor:
    """Multiply the matrices `input` (n, k) and `mat2` (k, m)."""
    return _matmul("ops.mm", *_two("ops.mm", input, mat2, (2,)))


def mv(mat: TensorLike, vec: TensorLike) -> Tensor:
    """Multiply the matrix `mat` (n, k) by the vector `vec` (k,)."""
    return _matmul("ops.mv", *_two("ops.mv", mat, vec))


def dot(input: TensorLike, other: TensorLike) -> Tensor:
    """Sum products over the last axis of `input` and the last but one of `other`."""
    return backend.product(_dot_of, *_two("ops.dot", input, other))


def outer(input: TensorLike, vec2: TensorLike) -> Tensor:
    """Every element of the vector `input` times every one of `vec2`."""
    return keras.ops.outer(*_two("ops.outer", input, vec2, (1,)))


def tensor_dot(x1: TensorLike, x2: TensorLike, axes: int | Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
    """Sum products of `x1` and `x2` over `axes`: their number, or a pair of tuples of axes."""
    return backend.product(lambda x, y: _tensordot_of(x, y, axes=axes), *_two("ops.tensor_dot", x1, x2))


def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """Sum products of `operands` as `equation` says. Example: ``ops.einsum("ij,jk->ik", a, b)``."""
    tensors = [tensor("ops.einsum", operand) for operand in operands]
    if len(tensors) == 2:
        return backend.product(lambda x, y: _einsum_of(equation, x, y), *tensors)
    return _einsum_of(equation, *tensors)


def addmm(
    input: TensorLike, mat1: TensorLike, mat2: TensorLike, *, beta: TensorLike = 1, alpha: TensorLike = 1
) -> Tensor:
    """`beta` * `input` + `alpha` * (`mat1` @ `mat2`)."""
    return add(mul(input, beta), mul(mm(mat1, mat2), alpha))


def baddbmm(
    input: TensorLike, batch1: TensorLike, batch2: TensorLike, beta: TensorLike = 1, alpha: TensorLike = 1
) -> Tensor:
    """`beta` * `input` + `alpha` * (`batch1` @ `batch2`)."""
    product = matmul if rank_of(tensor("ops.baddbmm", batch1)) == 2 else bmm
    return add(mul(input, beta), mul(product(batch1, batch2), alpha))


class MatMul(Primitive):
    """Multiply two matrices; `transpose_a`, `transpose_b`: transposed first. Example: ``ops.MatMul()(x, y)``."""

    _ranks: ClassVar[tuple[int, ...]] = (2,)

    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        super().__init__()
        self.transpose_a = checks.boolean(self.name, "transpose_a", transpose_a)
        self.transpose_b = checks.boolean(self.name, "transpose_b", transpose_b)

    def __call__(self, input: TensorLike, mat2: TensorLike) -> Tensor:
        where = f"ops.{self.name}"
        x, y = _two(where, input, mat2, self._ranks)
        if self.transpose_a:
            x = keras.ops.swapaxes(x, -1, -2)
        if self.transpose_b:
            y = keras.ops.swapaxes(y, -1, -2)
        return _matmul(where, x, y)


class BatchMatMul(MatMul):
    """`MatMul` of batches of matrices, with its `transpose_a` and `transpose_b`: ``ops.BatchMatMul()(x, y)``."""

    _ranks: ClassVar[tuple[int, ...]] = (2, 3, 4, 5, 6)

    def __call__(self, x: TensorLike, y: TensorLike) -> Tensor:
        return super().__call__(x, y)
