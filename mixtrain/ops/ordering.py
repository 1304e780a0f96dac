"""Sorting, top-k, one-hot encoding and triangles, with their primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras

from mixtrain import backend, checks
from mixtrain.dtype import bool_, int32, int64, is_float
from mixtrain.ops.inputs import axis_of, known_int, rank_of, sizes_of, tensor, tensor_dtype
from mixtrain.ops.primitive import as_primitive, configured, primitives
from mixtrain.typing import Tensor, TensorLike


def _order(x: Tensor, axis: int, descending: bool) -> Tensor:
    """Return the indices of a stable sort of `x`."""
    if not descending:
        return keras.ops.argsort(x, axis=axis)
    # Sorting the flipped tensor keeps equal elements in order once the result is flipped back.
    order = keras.ops.flip(keras.ops.argsort(keras.ops.flip(x, axis=axis), axis=axis), axis=axis)
    return keras.ops.subtract(keras.ops.shape(x)[axis] - 1, order)


def argsort(input: TensorLike, axis: int = -1, descending: bool = False) -> Tensor:
    """The int32 indices that sort `input` along `axis`, `descending` or not. Example: ``ops.argsort(x)``."""
    x = tensor("ops.argsort", input)
    checks.boolean("ops.argsort", "descending", descending)
    return keras.ops.cast(_order(x, axis_of("ops.argsort", axis, rank_of(x)), descending), int32)


def sort(input_x: TensorLike, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """`input_x` sorted along `axis`, `descending` or not, and its int32 indices. Example: ``ops.sort(x)``."""
    x = tensor("ops.sort", input_x)
    checks.boolean("ops.sort", "descending", descending)
    axis = axis_of("ops.sort", axis, rank_of(x))
    order = _order(x, axis, descending)
    return keras.ops.take_along_axis(x, order, axis=axis), keras.ops.cast(order, int32)


def topk(
    input: TensorLike, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest, without `largest`) elements of `input` along `dim`, and their int32 indices.

    `dim` None is the last axis; `sorted` is accepted: the elements are always sorted. Example:
    ``ops.topk(Tensor([3.0, 1.0, 2.0]), 2)`` is ``([3.0, 2.0], [0, 2])``.
    """
    x = tensor("ops.topk", input)
    axis = axis_of("ops.topk", -1 if dim is None else dim, rank_of(x), name="dim")
    k = checks.integer("ops.topk", "k", known_int("ops.topk", k), at_least=0, example=1)
    if x.shape[axis] is not None and k > x.shape[axis]:
        raise checks.fail_value("ops.topk", f"k must be at most {x.shape[axis]}, the size of the axis", k, "k=1")
    # Keras finds the largest elements of the last axis.
    x = keras.ops.swapaxes(x, axis, -1)
    values, indices = keras.ops.top_k(x if largest else -x, k, sorted=True)
    values = values if largest else -values
    return keras.ops.swapaxes(values, axis, -1), keras.ops.cast(keras.ops.swapaxes(indices, axis, -1), int32)


def one_hot(
    indices: TensorLike, depth: int, on_value: TensorLike = 1, off_value: TensorLike = 0, axis: int = -1
) -> Tensor:
    """Encode class indices as one-hot vectors of `depth` classes along a new `axis`.

    `on_value`, whose dtype is that of the result, is the value at the class, `off_value` elsewhere; `indices` out of
    range give vectors of `off_value`. Example: ``ops.one_hot(Tensor([1, 0]), 2)`` is ``[[0, 1], [1, 0]]``.
    """
    where = "ops.one_hot"
    x = tensor(where, indices)
    if is_float(x.dtype) or x.dtype == bool_:
        raise TypeError(
            f"{where}: expected indices of integers; got {tensor_dtype(x).name}. Write x.astype(mixtrain.int32)."
        )
    axis = -1 if axis == -1 else axis_of(where, axis, rank_of(x) + 1)
    on, off = tensor(where, on_value), tensor(where, off_value)
    classes = checks.integer(where, "depth", depth, at_least=0, example=10)
    marks = keras.ops.one_hot(x, classes, axis=axis, dtype=bool_)
    return keras.ops.where(marks, on, keras.ops.cast(off, on.dtype))


def _triangle(where: str, compute: Callable[..., Tensor], x: TensorLike, diagonal: int) -> Tensor:
    x = tensor(where, x)
    if rank_of(x) < 2:
        raise ValueError(f"{where}: expected at least 2 axes; got shape {tuple(x.shape)}. Write a matrix.")
    return compute(x, k=checks.integer(where, "diagonal", diagonal, at_least=-(2**31), example=0))


def tril(input: TensorLike, diagonal: int = 0) -> Tensor:
    """`input` with zeros above the diagonal `diagonal` above the main one. Example: ``ops.tril(x)``."""
    return _triangle("ops.tril", keras.ops.tril, input, diagonal)


def triu(input: TensorLike, diagonal: int = 0) -> Tensor:
    """`input` with zeros below the diagonal `diagonal` above the main one. Example: ``ops.triu(x)``."""
    return _triangle("ops.triu", keras.ops.triu, input, diagonal)


def diag(input: TensorLike) -> Tensor:
    """Zeros of twice the axes of `input`, which is on their diagonal: of a vector, a matrix."""
    x = tensor("ops.diag", input)
    if not rank_of(x):
        raise checks.fail_value("ops.diag", "input must have an axis", x, "ops.diag(x.reshape(1))")
    return keras.ops.reshape(keras.ops.diag(keras.ops.reshape(x, (-1,))), (*x.shape, *x.shape))


def unique(input: TensorLike) -> tuple[Tensor, Tensor]:
    """The unique elements of `input` in order of appearance, and the index of each element among them."""
    x = tensor("ops.unique", input)
    values, indices = backend.unique_with_indices(x)
    return values, keras.ops.cast(indices, index_dtype(x))


def index_dtype(x: Tensor) -> str:
    """Return the dtype of indices among the unique elements of a tensor, as in MindSpore: int64 for int64."""
    return str(keras.backend.standardize_dtype(x.dtype)) if x.dtype == int64 else "int32"


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: int | Sequence[int] | Tensor) -> Tensor:
    """Zeros of `shape` to which `updates` are added at `indices`: ``ops.scatter_nd(indices, updates, (4,))``."""
    where = "ops.scatter_nd"
    return keras.ops.scatter(tensor(where, indices), tensor(where, updates), sizes_of(where, shape))


@as_primitive
def OneHot(indices: TensorLike, depth: int, on_value: TensorLike, off_value: TensorLike, *, axis: int = -1) -> Tensor:
    """`one_hot` along a fixed `axis`. Example: ``ops.OneHot()(labels, 10, Tensor(1.0), Tensor(0.0))``."""
    return one_hot(indices, depth, on_value, off_value, axis)


@as_primitive
def TopK(input_x: TensorLike, k: int, *, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """`topk` of the last axis; `sorted` is accepted. Example: ``ops.TopK()(x, 5)``."""
    return topk(input_x, k)


@as_primitive
def Sort(x: TensorLike, *, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """`sort` with fixed `axis` and `descending`. Example: ``ops.Sort()(x)``."""
    return sort(x, axis, descending)


Tril, Triu = configured("Tril", tril, diagonal=0), configured("Triu", triu, diagonal=0)


Diag, Unique, ScatterNd = primitives(Diag=diag, Unique=unique, ScatterNd=scatter_nd)
