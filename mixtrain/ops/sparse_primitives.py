"""Primitives of sparse arrays given as indices, values and shape, and of matrices by the ends of their rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks, ops
from mixtrain.dtype import as_dtype, int32, int64
from mixtrain.lazy_names import serve_names
from mixtrain.ops.inputs import sizes_of, tensor, tensor_dtype
from mixtrain.ops.primitive import REQUIRED, configured, primitive
from mixtrain.typing import DTypeLike, Tensor, TensorLike


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

# ---- matrices by the ends of their rows: shape, ends of batches, ends of rows, columns, values ----------------------
def _rows_to_dense(shape: TensorLike, *parts: TensorLike) -> Tensor:
    indices, values, _ = _from_rows(shape, *parts)
    return ops.scatter_nd(indices, values, sizes_of("ops.CSRSparseMatrixToDense", shape))


def _dense_to_rows(dense_input: TensorLike, indices: TensorLike) -> tuple[Any, ...]:
    shape = backend.to_tensor(np.array(dense_input.shape), tensor_dtype(tensor("ops.DenseToCSRSparseMatrix", indices)))
    return _to_rows(indices, ops.gather_nd(dense_input, indices), shape)


def _transposed(shape: TensorLike, *parts: TensorLike, conjugate: bool) -> tuple[Any, ...]:
    indices, values, _ = _from_rows(shape, *parts)
    swap = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    swapped, shape = ops.gather(indices, swap, 1), ops.gather(shape, swap, 0)
    return _to_rows(*_reordered(swapped, ops.conj(values) if conjugate else values, shape), shape)


def _softmax_of_rows(indices: TensorLike, values: TensorLike, shape: TensorLike) -> Tensor:
    """Return the softmax over the values of each row of an array, or a batch."""
    sizes = sizes_of("ops.SparseSoftmax", shape)
    rows = np.ravel_multi_index(tuple(backend.to_numpy(indices).T[:-1]), sizes[:-1]).astype(np.int32)
    ids, count = backend.to_tensor(rows), int(np.prod(sizes[:-1]))
    powers = ops.exp(values - ops.gather(ops.unsorted_segment_max(values, ids, count), ids, 0))
    return powers / ops.gather(ops.unsorted_segment_sum(powers, ids, count), ids, 0)


def _rows_softmax(shape: TensorLike, *parts: TensorLike, dtype: DTypeLike) -> tuple[Any, ...]:
    indices, values, _ = _from_rows(shape, *parts)
    return shape, *parts[:-1], ops.cast(_softmax_of_rows(indices, values, shape), dtype)


def _rows_sum(*tensors: TensorLike) -> tuple[Any, ...]:
    (x_indices, x_values, shape), (y_indices, y_values, y_shape) = _from_rows(*tensors[:5]), _from_rows(*tensors[5:10])
    indices, of_rows = _union("ops.SparseMatrixAdd", x_indices, shape, y_indices, y_shape)
    both = ops.concat([ops.mul(x_values, tensors[10]), ops.mul(y_values, tensors[11])])
    sums = ops.unsorted_segment_sum(both, backend.to_tensor(of_rows), len(indices))
    return _to_rows(backend.to_tensor(indices, tensor_dtype(x_indices)), sums, shape)


def _rows_product(
    shape: TensorLike, batch_pointers: TensorLike, row_pointers: TensorLike, columns: TensorLike, values: TensorLike,
    x2_dense: TensorLike, transpose_x1: bool, transpose_x2: bool, adjoint_x1: bool, adjoint_x2: bool,
    transpose_output: bool, conjugate_output: bool,
) -> Tensor:
    def turned(x: Tensor, transpose: bool, adjoint: bool) -> Tensor:
        return ops.adjoint(x) if adjoint else ops.swapaxes(x, -1, -2) if transpose else x

    dense = _rows_to_dense(shape, batch_pointers, row_pointers, columns, values)
    product = ops.matmul(turned(dense, transpose_x1, adjoint_x1), turned(x2_dense, transpose_x2, adjoint_x2))
    product = turned(product, transpose_output, False)
    return ops.conj(product) if conjugate_output else product


CSRSparseMatrixToDense = primitive("CSRSparseMatrixToDense", _rows_to_dense)
DenseToCSRSparseMatrix = primitive("DenseToCSRSparseMatrix", _dense_to_rows)
SparseMatrixAdd = primitive("SparseMatrixAdd", _rows_sum)
SparseMatrixMatMul = configured(
    "SparseMatrixMatMul", _rows_product, transpose_x1=False, transpose_x2=False, adjoint_x1=False, adjoint_x2=False,
    transpose_output=False, conjugate_output=False,
)
SparseMatrixNNZ = primitive(
    "SparseMatrixNNZ", lambda shape, batches, *_: ops.cast(batches[1:] - batches[:-1], int32)
)
SparseMatrixSoftmax = configured("SparseMatrixSoftmax", _rows_softmax, dtype=REQUIRED)
SparseMatrixTranspose = configured("SparseMatrixTranspose", _transposed, conjugate=False)
SparseSoftmax = primitive("SparseSoftmax", _softmax_of_rows)


# ---- sparse arrays of other places ----------------------------------------------------------------------------------
def _coalesced(x_indices: TensorLike, x_values: TensorLike, x_shape: TensorLike) -> tuple[Any, ...]:
    places = ops.transpose(x_indices, (1, 0))
    indices, of_rows = _union("ops.Coalesce", places, x_shape, places[:0], x_shape)
    sums = ops.unsorted_segment_sum(x_values, backend.to_tensor(of_rows), len(indices))
    return backend.to_tensor(indices.T, int64), sums, x_shape


def _concatenated(
    sp_input_indices: Sequence[Tensor], sp_input_values: Sequence[Tensor], sp_input_shapes: Sequence[Tensor],
    concat_dim: int,
) -> tuple[Tensor, ...]:
    sizes = np.stack([backend.to_numpy(shape) for shape in sp_input_shapes])
    ends, shape = sizes[:, concat_dim].cumsum(), sizes[0].copy()
    shape[concat_dim] = ends[-1]
    unit = np.eye(len(shape), dtype=np.int64)[concat_dim]
    moved = [
        indices + backend.to_tensor(unit * (end - size), int64)
        for indices, end, size in zip(sp_input_indices, ends, sizes[:, concat_dim], strict=True)
    ]
    new_shape = backend.to_tensor(shape, int64)
    return *_reordered(ops.concat(moved), ops.concat(list(sp_input_values)), new_shape), new_shape


def _with_filled_rows(
    indices: TensorLike, values: TensorLike, dense_shape: TensorLike, default_value: TensorLike
) -> tuple[Tensor, ...]:
    """Return indices and values in order of rows, those without any filled, which these are, and where values went."""
    height, width = sizes_of("ops.SparseFillEmptyRows", dense_shape)
    places = backend.to_numpy(indices)
    empty = np.bincount(places[:, 0], minlength=height) == 0
    filled = np.stack([np.flatnonzero(empty), np.zeros(empty.sum(), np.int64)], axis=-1)
    every = np.concatenate([places, filled])
    order = np.argsort(every[:, 0], kind="stable")
    added = ops.full((len(filled),), default_value, dtype=values.dtype)
    new_values = ops.gather(ops.concat([values, added]), backend.to_tensor(order, int32), 0)
    went = np.argsort(order, kind="stable")[:len(places)]
    return backend.to_tensor(every[order], int64), new_values, backend.to_tensor(empty), backend.to_tensor(went, int64)


def _counted(
    indices: TensorLike, values: TensorLike, dense_shape: TensorLike, weights: TensorLike, binary_output: bool,
    minlength: int, maxlength: int,
) -> tuple[Tensor, ...]:
    """Return the sums of the weights, or 1, of each number that a row has; `maxlength` leaves larger ones out."""
    where = "ops.SparseCountSparseOutput"
    places, numbers = backend.to_numpy(indices), backend.to_numpy(values)
    sizes = sizes_of(where, dense_shape)
    if len(weights) != len(numbers) or (places >= sizes).any():
        raise RuntimeError(str(checks.fail_value(
            where, f"weights must be as many as values, and indices below {sizes}", tuple(weights.shape), "such weights"
        )))
    kept = np.flatnonzero(numbers < maxlength) if maxlength >= 0 else np.arange(len(numbers))
    length = maxlength if maxlength >= 0 else max(int(numbers.max(initial=-1)) + 1, minlength)
    shape = backend.to_tensor(np.array([*sizes[:-1], length]), int64)
    counted = np.concatenate([places[kept, :-1], numbers[kept, None]], axis=-1)
    rows, of_rows = _union(where, counted, shape, counted[:0], shape)
    given = ops.gather(weights, backend.to_tensor(kept, int32), 0)
    sums = ops.unsorted_segment_sum(given, backend.to_tensor(of_rows), len(rows))
    return backend.to_tensor(rows, int64), ops.ones_like(sums) if binary_output else sums, shape


def _sparse_to_dense(
    indices: TensorLike, output_shape: TensorLike, values: TensorLike, default_value: TensorLike, validate_indices: bool
) -> Tensor:
    del validate_indices
    dense = ops.full(sizes_of("ops.SparseToDenseV2", output_shape), default_value, dtype=values.dtype)
    return ops.tensor_scatter_update(dense, indices if indices.ndim > 1 else ops.expand_dims(indices, -1), values)


def _sparse_product_plus(
    x1_indices: TensorLike, x1_values: TensorLike, x1_shape: TensorLike, x2_indices: TensorLike,
    x2_values: TensorLike, x2_shape: TensorLike, x3_dense: Tensor, alpha: TensorLike, beta: TensorLike,
) -> tuple[Any, ...]:
    """Return ``beta * x1 + alpha * x2 @ x3``: first what `x1` has, then all of the rows that `x2` has."""
    rows = np.unique(backend.to_numpy(x2_indices)[0])
    shape = sizes_of("ops.Sspaddmm", x2_shape)
    product = ops.matmul(ops.scatter_nd(ops.transpose(x2_indices, (1, 0)), x2_values, shape), x3_dense)
    added = ops.reshape(ops.gather(product, backend.to_tensor(rows, int32), 0), (-1,))
    columns = np.arange(int(x3_dense.shape[1]))
    places = np.stack([np.repeat(rows, len(columns)), np.tile(columns, len(rows))])
    indices = ops.concat([ops.cast(x1_indices, int64), backend.to_tensor(places, int64)], 1)
    values = ops.concat([ops.mul(x1_values, beta), ops.mul(added, alpha)])
    return indices, values, ops.cast(x1_shape, int64)


def _set_operation(x1: TensorLike, x2: TensorLike, set_operation: str, validate_indices: bool) -> tuple[Tensor, ...]:
    """Return the sets of an operation on the rows of two arrays as a sparse array."""
    del validate_indices
    first, second = backend.to_numpy(x1), backend.to_numpy(x2)
    operations: dict[str, Callable[..., np.ndarray]] = {
        "a-b": np.setdiff1d, "b-a": lambda a, b: np.setdiff1d(b, a), "intersection": np.intersect1d,
        "union": np.union1d,
    }
    combine = operations[set_operation]
    sets = {row: combine(first[row], second[row]) for row in np.ndindex(first.shape[:-1])}
    places = [(*row, place) for row, members in sets.items() for place in range(len(members))]
    shape = (*first.shape[:-1], max(map(len, sets.values()), default=0))
    indices = np.array(places, np.int64).reshape(-1, first.ndim)
    values = np.concatenate([*sets.values()]).astype(first.dtype)
    return backend.to_tensor(indices, int64), backend.to_tensor(values), backend.to_tensor(np.array(shape), int64)


Coalesce = primitive("Coalesce", _coalesced)
DenseToDenseSetOperation = configured(
    "DenseToDenseSetOperation", _set_operation, set_operation="a-b", validate_indices=True
)
SparseConcat = configured("SparseConcat", _concatenated, concat_dim=0)
SparseCountSparseOutput = configured(
    "SparseCountSparseOutput", _counted, binary_output=False, minlength=-1, maxlength=-1
)
SparseFillEmptyRows = primitive("SparseFillEmptyRows", _with_filled_rows)
SparseToDenseV2 = configured("SparseToDenseV2", _sparse_to_dense, validate_indices=True)
Sspaddmm = primitive("Sspaddmm", _sparse_product_plus)


# ---- rows of several lengths ----------------------------------------------------------------------------------------
def _ragged_range(starts: TensorLike, limits: TensorLike, deltas: TensorLike, Tsplits: DTypeLike) -> tuple[Any, ...]:
    bounds = np.broadcast_arrays(*map(backend.to_numpy, (starts, limits, deltas)))
    rows = [np.arange(*row) for row in zip(*map(np.ravel, bounds), strict=True)]
    values = np.concatenate(rows).astype(bounds[0].dtype)
    return backend.to_tensor(np.cumsum([0, *map(len, rows)]), as_dtype(Tsplits)), backend.to_tensor(values)


def _ragged_to_sparse(
    rt_nested_splits: Sequence[TensorLike], rt_dense_values: TensorLike, Tsplits: DTypeLike
) -> tuple[Any, ...]:
    """Return nested lists of several lengths as indices, values and the shape of the longest."""
    values = tensor("ops.RaggedTensorToSparse", rt_dense_values)
    shape = [len(rt_nested_splits[0]) - 1]
    places = np.arange(shape[0])[:, None]
    for splits in map(backend.to_numpy, rt_nested_splits):
        lengths = np.diff(splits)
        inner = np.arange(splits[-1]) - np.repeat(splits[:-1], lengths)
        places = np.concatenate([np.repeat(places, lengths, axis=0), inner[:, None]], axis=-1)
        shape.append(int(lengths.max(initial=0)))
    rest = [int(size) for size in values.shape[1:]]
    inside = np.array([*np.ndindex(*rest)], np.int64).reshape(math.prod(rest), len(rest))
    places = np.concatenate([np.repeat(places, len(inside), axis=0), np.tile(inside, (len(places), 1))], axis=-1)
    indices, whole = backend.to_tensor(places, int64), backend.to_tensor(np.array([*shape, *rest]), int64)
    return indices, ops.reshape(values, (-1,)), whole


RaggedRange = configured("RaggedRange", _ragged_range, Tsplits=REQUIRED)
RaggedTensorToSparse = configured("RaggedTensorToSparse", _ragged_to_sparse, Tsplits=REQUIRED)

serve_names(__name__)
