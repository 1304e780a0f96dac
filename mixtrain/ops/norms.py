"""Norms of vectors and matrices, and what is made of them: distances and cosines.

At a zero vector a gradient is 0, as PyTorch has it; MindSpore has 0 or NaN, as the function is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, is_half
from mixtrain.ops.extremes import first_extreme
from mixtrain.ops.inputs import as_floats, axes_of, pair, rank_of, widened
from mixtrain.ops.primitive import as_primitive, configured
from mixtrain.ops.unary import magnitude
from mixtrain.typing import DTypeLike, Tensor, TensorLike


# ---- on backend tensors ---------------------------------------------------------------------------------------------
def norms_of_vectors(
    x: Tensor, order: float, axis: int | Sequence[int], keepdims: bool = False
) -> Tensor:
    """Return the norms of order `order` of vectors along an axis, or of all of several axes as one vector."""
    if rank_of(x) == 0:
        return norms_of_vectors(keras.ops.reshape(x, (1,)), order, 0)
    size, axis = magnitude(x), (axis,) if isinstance(axis, int) else tuple(axis)
    if math.isinf(order):
        for each in sorted((place % rank_of(x) for place in axis), reverse=True):
            size = first_extreme(size, order > 0, each, keepdims)
        return size
    if order == 0:
        return keras.ops.sum(keras.ops.cast(keras.ops.not_equal(size, 0), size.dtype), axis, keepdims=keepdims)
    if order == 1:
        return keras.ops.sum(size, axis, keepdims=keepdims)
    zero = keras.ops.all(keras.ops.equal(size, 0), axis, keepdims=True)
    size = keras.ops.where(zero, keras.ops.ones_like(size), size)
    if order == 2:
        norms = keras.ops.sqrt(keras.ops.sum(keras.ops.square(size), axis, keepdims=True))
    elif order < 2:
        norms = _root(keras.ops.sum(keras.ops.power(size, order), axis, keepdims=True), order)
    else:  # The powers of fractions of the largest number neither overflow nor vanish.
        largest = keras.ops.stop_gradient(keras.ops.max(size, axis, keepdims=True))
        scale = keras.ops.where(keras.ops.isfinite(largest), largest, keras.ops.ones_like(largest))
        norms = scale * _root(keras.ops.sum(keras.ops.power(size / scale, order), axis, keepdims=True), order)
    norms = keras.ops.where(zero, keras.ops.zeros_like(norms), norms)
    return norms if keepdims else keras.ops.squeeze(norms, axis)


def _root(x: Tensor, order: float) -> Tensor:
    return keras.ops.power(x, 1 / order)


def norms_of_matrices(x: Tensor, order: Any, axis: tuple[int, ...], keepdims: bool = False) -> Tensor:
    """Return the norms of order `order` of matrices on two axes; `keepdims` keeps them, which Keras has wrong for some.
    """
    result = keras.ops.norm(x, ord=order, axis=axis)
    return keras.ops.expand_dims(result, sorted(each % rank_of(x) for each in axis)) if keepdims else result


# ---- operators ------------------------------------------------------------------------------------------------------
def norm(
    A: TensorLike, ord: float | str | None = None, dim: int | Sequence[int] | None = None, keepdim: bool = False, *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The norm of vectors or matrices `A` along `dim`, an axis, two for a matrix norm, or None for all.

    `ord`: None (the root of the squares' sum), a number, "fro" or "nuc"; `keepdim` keeps the axes with size 1; `dtype`:
    what to compute in, None for that of `A`. Example: ``ops.norm(Tensor([3.0, 4.0]))`` is 5.0.
    """
    x = _floats("ops.norm", A, dtype)
    axes = axes_of("ops.norm", dim, rank_of(x), name="dim")
    if ord is not None and dim is None and rank_of(x) > 2:
        raise checks.fail_value("ops.norm", "dim must be given with ord and more than 2 axes", dim, "dim=-1")
    wide = widened(x)
    if ord is None:
        norms = norms_of_vectors(wide, 2, axes, keepdim)
    elif len(axes) == 2:
        norms = norms_of_matrices(wide, ord, axes, keepdim)
    else:
        norms = norms_of_vectors(wide, _order("ops.norm", ord), axes[:1], keepdim)
    return keras.ops.cast(norms, x.dtype)


def _order(where: str, order: Any) -> float:
    if isinstance(order, str):
        raise checks.fail_type(where, "ord of vectors must be a number", order, "ord=2")
    return order


def _floats(where: str, value: TensorLike, dtype: DTypeLike | None) -> Tensor:
    x = as_floats(where, value)
    return x if dtype is None else backend.to_tensor(x, as_dtype(dtype))


def vector_norm(
    x: TensorLike, ord: float = 2, axis: int | Sequence[int] | None = None, keepdims: bool = False, *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The norm of order `ord` of vectors along `axis` of `x`, computed in `dtype`; `keepdims` keeps the axes."""
    value = _floats("ops.vector_norm", x, dtype)
    axes = axes_of("ops.vector_norm", axis, rank_of(value))
    return keras.ops.cast(norms_of_vectors(widened(value), _order("ops.vector_norm", ord), axes, keepdims), value.dtype)


def matrix_norm(
    A: TensorLike, ord: float | str = "fro", axis: Sequence[int] = (-2, -1), keepdims: bool = False, *,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The norm of order `ord` of the matrices on `axis` of `A`, computed in `dtype`; `keepdims` keeps the axes."""
    value = _floats("ops.matrix_norm", A, dtype)
    return keras.ops.cast(norms_of_matrices(widened(value), ord, tuple(axis), keepdims), value.dtype)


def dist(input: TensorLike, other: TensorLike, p: float = 2.0) -> Tensor:
    """The norm of order `p` of `input` - `other`."""
    x, y = pair("ops.dist", input, other)
    return vector_norm(keras.ops.subtract(x, y), p)


def cdist(x1: TensorLike, x2: TensorLike, p: float = 2.0) -> Tensor:
    """Distances of order `p` between the rows of `x1` and those of `x2`."""
    x, y = pair("ops.cdist", x1, x2, broadcast=False)
    return vector_norm(x[..., :, None, :] - y[..., None, :, :], p, -1)


def pdist(input: TensorLike, p: float = 2.0) -> Tensor:
    """Distances of order `p` between all pairs of rows of `input`."""
    x = as_floats("ops.pdist", input)
    pairs = list(itertools.combinations(range(x.shape[-2]), 2))
    first, second = ([pair[index] for pair in pairs] for index in (0, 1))
    return vector_norm(keras.ops.take(x, first, axis=-2) - keras.ops.take(x, second, axis=-2), p, -1)


def cosine_similarity(x1: TensorLike, x2: TensorLike, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The cosine similarity of vectors along `dim` of `x1` and `x2`; `eps` is the least product of their norms."""
    x, y = pair("ops.cosine_similarity", x1, x2)
    dtype, x, y = x.dtype, widened(x), widened(y)
    norms = norms_of_vectors(x, 2, dim) * norms_of_vectors(y, 2, dim)
    similarity = keras.ops.sum(x * y, axis=dim) / keras.ops.maximum(norms, eps)
    return keras.ops.cast(similarity, dtype) if is_half(dtype) else similarity


Pdist = configured("Pdist", pdist, p=2.0)


@as_primitive
def LpNorm(
    input: TensorLike, *, axis: int | Sequence[int], p: int = 2, keep_dims: bool = False, epsilon: float = 1e-12
) -> Tensor:
    """The norm of order `p` along `axis`, at least `epsilon`; `keep_dims` keeps it: ``ops.LpNorm(axis=[0, 1])(x)``."""
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else axis
    x = as_floats("ops.LpNorm", input)
    norms = norms_of_vectors(widened(x), p, axes, keep_dims)
    return keras.ops.cast(keras.ops.maximum(norms, epsilon), x.dtype)
