"""Primitives of sparse arrays given as indices, values and shape, and of matrices by the ends of their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks, ops
from mixtrain.dtype import int64
from mixtrain.lazy_names import serve_names
from mixtrain.ops.inputs import sizes_of, tensor, tensor_dtype
from mixtrain.ops.primitive import primitive
from mixtrain.typing import Tensor, TensorLike


def _with_dense(combine: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., Tensor]:
    """Return the function that combines the values with those of a dense tensor, broadcast, at their places."""

    def values(x1_indices: TensorLike, x1_values: TensorLike, x1_shape: TensorLike, x2: TensorLike) -> Tensor:
        dense = keras.ops.broadcast_to(tensor("ops.SparseDenseCwise", x2), sizes_of("ops.SparseDenseCwise", x1_shape))
        return combine(tensor("ops.SparseDenseCwise", x1_values), ops.gather_nd(dense, x1_indices))

    return values


def _reshaped(indices: TensorLike, shape: TensorLike, new_shape: TensorLike) -> tuple[Tensor, Tensor]:
    where = "ops.SparseReshape"
    old, new = sizes_of(where, shape), list(sizes_of(where, new_shape))
    if -1 in new:
        new[new.index(-1)] = int(np.prod(old)) // -int(np.prod(new))
    given = tensor(where, indices)
    places = keras.ops.moveaxis(given, -1, 0)
    strides = np.cumprod([1, *old[:0:-1]])[::-1]
    flat = sum(place * int(stride) for place, stride in zip(keras.ops.unstack(places), strides, strict=True))
    moved = keras.ops.stack(keras.ops.unravel_index(flat, tuple(new)), axis=-1)
    dtype = tensor_dtype(given)
    return keras.ops.cast(moved, dtype.name), backend.to_tensor(np.array(new), dtype)


def _reordered(indices: TensorLike, values: TensorLike, shape: TensorLike) -> tuple[Tensor, Tensor]:
    flat = keras.ops.reshape(_reshaped(indices, shape, (-1,))[0], (-1,))
    order = keras.ops.argsort(flat)
    return tuple(keras.ops.take(tensor("ops.SparseReorder", each), order, axis=0) for each in (indices, values))


def _product_plus(
    x1_indices: TensorLike, x1_values: TensorLike, x1_shape: TensorLike, x2: TensorLike, x3: TensorLike,
    alpha: TensorLike, beta: TensorLike,
) -> Tensor:
    dense = ops.scatter_nd(x1_indices, x1_values, tuple(sizes_of("ops.SparseAddmm", x1_shape)))
    return ops.add(ops.mul(ops.matmul(dense, x2), alpha), ops.mul(x3, beta))


def _union(
    where: str, x1_indices: TensorLike, x1_shape: TensorLike, x2_indices: TensorLike, x2_shape: TensorLike
) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices that either of two sparse arrays has, in order, and where those of both are among them."""
    shape, other = sizes_of(where, x1_shape), sizes_of(where, x2_shape)
    if shape != other:
        raise checks.fail_value(where, f"x2_shape must be {shape}, that of the first array", other, f"{shape}")
    rows = np.concatenate([backend.to_numpy(each).reshape(-1, len(shape)) for each in (x1_indices, x2_indices)])
    places, of_rows = np.unique(np.ravel_multi_index(tuple(rows.T), shape), return_inverse=True)
    return np.stack(np.unravel_index(places, shape), axis=-1), of_rows.astype(np.int32)


def _sparse_sum(
    x1_indices: TensorLike, x1_values: TensorLike, x1_shape: TensorLike, x2_indices: TensorLike,
    x2_values: TensorLike, x2_shape: TensorLike, thresh: TensorLike,
) -> tuple[Tensor, Tensor, Tensor]:
    where = "ops.SparseAdd"
    indices, of_rows = _union(where, x1_indices, x1_shape, x2_indices, x2_shape)
    both = ops.concat([tensor(where, values) for values in (x1_values, x2_values)])
    sums = ops.unsorted_segment_sum(both, backend.to_tensor(of_rows), len(indices))
    kept = np.flatnonzero(np.abs(backend.to_numpy(sums)) >= backend.to_numpy(thresh)).astype(np.int32)
    return backend.to_tensor(indices[kept], int64), ops.gather(sums, kept, 0), tensor(where, x1_shape)


def _of_two(name: str, compute: Callable[[Tensor, Tensor], Tensor]) -> Any:
    """Return the class of primitives that compute the elements of two sparse arrays, 0 where one has none."""

    def of_both(
        x1_indices: TensorLike, x1_values: TensorLike, x1_shape: TensorLike, x2_indices: TensorLike,
        x2_values: TensorLike, x2_shape: TensorLike,
    ) -> tuple[Tensor, Tensor]:
        indices, of_rows = _union(f"ops.{name}", x1_indices, x1_shape, x2_indices, x2_shape)
        values = [tensor(f"ops.{name}", each) for each in (x1_values, x2_values)]
        halves = np.split(of_rows, [int(values[0].shape[0])])
        padded = [
            ops.unsorted_segment_sum(each, backend.to_tensor(half), len(indices))
            for each, half in zip(values, halves, strict=True)
        ]
        return backend.to_tensor(indices, int64), compute(*padded)

    return primitive(name, of_both)


def _to_rows(indices: TensorLike, values: TensorLike, dense_shape: TensorLike) -> tuple[Any, ...]:
    """Return a matrix, or a batch, of sorted indices by the ends of its batches and rows, columns and values."""
    *batches, height, _ = sizes_of("ops.SparseTensorToCSRSparseMatrix", dense_shape)
    *batch, row, column = backend.to_numpy(indices).T
    count = batches[0] if batches else 1
    lengths = np.bincount((batch[0] if batches else 0) * height + row, minlength=count * height).reshape(count, height)
    ends = np.pad(lengths.cumsum(axis=1), ((0, 0), (1, 0)))
    parts = np.pad(ends[:, -1].cumsum(), (1, 0)), ends.reshape(-1), column
    dtype = tensor_dtype(tensor("ops.SparseTensorToCSRSparseMatrix", indices))
    return dense_shape, *(backend.to_tensor(part, dtype) for part in parts), values


def _from_rows(
    x_dense_shape: TensorLike, x_batch_pointers: TensorLike, x_row_pointers: TensorLike, x_col_indices: TensorLike,
    x_values: TensorLike,
) -> tuple[Any, ...]:
    *batches, height, _ = sizes_of("ops.CSRSparseMatrixToSparseTensor", x_dense_shape)
    lengths = np.diff(backend.to_numpy(x_row_pointers).reshape(-1, height + 1)).reshape(-1)
    place = np.repeat(np.arange(len(lengths)), lengths)
    columns = [*([place // height] if batches else []), place % height, backend.to_numpy(x_col_indices)]
    dtype = tensor_dtype(tensor("ops.CSRSparseMatrixToSparseTensor", x_col_indices))
    return backend.to_tensor(np.stack(columns, axis=-1), dtype), x_values, x_dense_shape


CSRSparseMatrixToSparseTensor = primitive("CSRSparseMatrixToSparseTensor", _from_rows)
SparseAdd = primitive("SparseAdd", _sparse_sum)
SparseAddmm = primitive("SparseAddmm", _product_plus)
SparseDenseCwiseAdd = primitive("SparseDenseCwiseAdd", _with_dense(ops.add))
SparseDenseCwiseDiv = primitive("SparseDenseCwiseDiv", _with_dense(ops.div))
SparseDenseCwiseMul = primitive("SparseDenseCwiseMul", _with_dense(ops.mul))
SparseReorder = primitive("SparseReorder", _reordered)
SparseReshape = primitive("SparseReshape", _reshaped)
SparseSparseMaximum, SparseSparseMinimum = (
    _of_two("SparseSparseMaximum", ops.maximum), _of_two("SparseSparseMinimum", ops.minimum)
)
SparseTensorToCSRSparseMatrix = primitive("SparseTensorToCSRSparseMatrix", _to_rows)

serve_names(__name__)
