"""Primitives that MindSpore has in its modules of operations alone: of sequences, of segments and of sparse arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks, ops
from mixtrain.dtype import as_dtype, float32, int64
from mixtrain.lazy_names import serve_names
from mixtrain.ops.complex_numbers import eigh
from mixtrain.ops.custom import PyFunc  # noqa: F401
from mixtrain.ops.fractional_pool import FractionalMaxPoolWithFixedKsize  # noqa: F401
from mixtrain.ops.inputs import known_int, sizes_of, tensor, tensor_dtype
from mixtrain.ops.primitive import REQUIRED, configured, primitive
from mixtrain.ops.sparse_updates import SparseApplyAdagrad, SparseApplyRMSProp  # noqa: F401
from mixtrain.typing import DTypeLike, Tensor, TensorLike


# ---- sequences ------------------------------------------------------------------------------------------------------
def _to_tensor(values: Sequence[Any], dtype: DTypeLike = float32) -> Tensor:
    return backend.to_tensor(ops.stack([tensor("ops.TupleToTensor", value) for value in values]), as_dtype(dtype))


def _offsets(first: Sequence[TensorLike], second: Sequence[TensorLike]) -> tuple[int, int]:
    del second
    return 0, len(first)


ListToTensor = primitive("ListToTensor", _to_tensor)
Load = primitive("Load", lambda variable, monad=None: ops.identity(variable))  # The monad is an order of reads.
SequenceAdd = primitive("SequenceAdd", lambda first, second: first + second)
SequenceAddN = primitive("SequenceAddN", ops.addn)
SequenceAddOffset = primitive("SequenceAddOffset", _offsets)
SequenceCount = primitive("SequenceCount", lambda sequence, target: list(sequence).count(target))
SequenceIndex = primitive("SequenceIndex", lambda sequence, target, *limits: list(sequence).index(target, *limits))
SequenceMax = primitive("SequenceMax", lambda sequence: max(sequence))
SequenceMin = primitive("SequenceMin", lambda sequence: min(sequence))
SequenceMul = primitive("SequenceMul", lambda sequence, scalar: sequence * scalar)
SequenceSlice = primitive("SequenceSlice", lambda seq, start, stop, step: seq[start:stop:step])
SequenceStack = configured("SequenceStack", ops.stack, axis=0)
SequenceUnstack = configured("SequenceUnstack", lambda x, axis, num: ops.unstack(x, axis), axis=0, num=None)
TensorToList = primitive("TensorToList", lambda x: backend.to_numpy(x).tolist())
TensorToScalar = primitive("TensorToScalar", lambda x: backend.to_numpy(x).item())
TensorToTuple = primitive("TensorToTuple", lambda x: tuple(backend.to_numpy(x).tolist()))
TupleToTensor = primitive("TupleToTensor", _to_tensor)


# ---- convolution ----------------------------------------------------------------------------------------------------
def _depthwise(x: Tensor, weight: Tensor, *, channel_multiplier: int, mode: int, group: int, **settings: Any) -> Tensor:
    """Convolve each channel by itself; `weight`: (channel_multiplier, channels, height, width)."""
    del mode, group
    channels = int(x.shape[1])
    weight = ops.reshape(ops.swapaxes(weight, 0, 1), (channels * channel_multiplier, 1, *weight.shape[2:]))
    return ops.Conv2D(channels * channel_multiplier, group=channels, **settings)(x, weight)  # type: ignore[no-any-return]


DepthwiseConv2dNative = configured(
    "DepthwiseConv2dNative", _depthwise, channel_multiplier=REQUIRED, kernel_size=REQUIRED, mode=3, pad_mode="valid",
    pad=0, stride=1, dilation=1, group=1,
)


# ---- segments: of rows in order, or of rows that indices choose -----------------------------------------------------
def _count(segment_ids: TensorLike) -> int:
    ids = tensor("ops.segment", segment_ids)
    return known_int("ops.segment", ids[-1]) + 1 if ids.shape[0] else 0


def _segment(how: str) -> Callable[..., Tensor]:
    """Return the function that reduces the rows of each segment; one without rows is 0, of a product 1."""

    def reduce(input_x: TensorLike, segment_ids: TensorLike, num_segments: int | None = None) -> Tensor:
        x, ids = tensor("ops.segment", input_x), tensor("ops.segment", segment_ids)
        size = _count(ids) if num_segments is None else num_segments
        reduced = getattr(ops, f"unsorted_segment_{'sum' if how in ('mean', 'sqrt_n') else how}")(x, ids, size)
        if how in ("sum", "prod"):
            return reduced  # type: ignore[no-any-return]
        counts = ops.unsorted_segment_sum(keras.ops.ones_like(ids), ids, size)
        counts = keras.ops.reshape(counts, (-1, *(1,) * (len(x.shape) - 1)))
        if how in ("max", "min"):
            return keras.ops.where(counts > 0, reduced, keras.ops.zeros_like(reduced))
        divisor = keras.ops.cast(keras.ops.maximum(counts, 1), x.dtype)
        return reduced / (divisor if how == "mean" else keras.ops.sqrt(divisor))

    return reduce


def _sparse_segment(how: str) -> Callable[..., Tensor]:
    reduce = _segment(how)

    def reduce_chosen(x: TensorLike, indices: TensorLike, segment_ids: TensorLike, count: Any = None) -> Tensor:
        chosen = ops.gather(x, indices, 0)
        return reduce(chosen, segment_ids, None if count is None else known_int("ops.segment", count))

    return reduce_chosen


SegmentMax, SegmentMean, SegmentMin, SegmentProd, SegmentSum = (
    primitive(f"Segment{how.title()}", _segment(how)) for how in ("max", "mean", "min", "prod", "sum")
)
SparseSegmentMeanWithNumSegments = primitive("SparseSegmentMeanWithNumSegments", _sparse_segment("mean"))
SparseSegmentSqrtN = primitive("SparseSegmentSqrtN", _sparse_segment("sqrt_n"))
SparseSegmentSqrtNWithNumSegments = primitive("SparseSegmentSqrtNWithNumSegments", _sparse_segment("sqrt_n"))
SparseSegmentSum = primitive("SparseSegmentSum", _sparse_segment("sum"))
SparseSegmentSumWithNumSegments = primitive("SparseSegmentSumWithNumSegments", _sparse_segment("sum"))


# ---- sparse arrays, given as indices, values and shape --------------------------------------------------------------
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

# ---- other names of functions ---------------------------------------------------------------------------------------
AddExt = primitive("AddExt", lambda input, other, alpha=1: ops.add(input, ops.mul(other, alpha)))
ArgminV2 = primitive("ArgminV2", ops.argmin)
Eigh = configured("Eigh", eigh, compute_eigenvectors=True, lower=True)
Expand = primitive("Expand", ops.broadcast_to)
MultilabelMarginLoss = configured("MultilabelMarginLoss", ops.multilabel_margin_loss, reduction="mean")
OnesLikeExt = primitive("OnesLikeExt", lambda input, dtype=None: ops.ones_like(input, dtype=dtype))
ReLUV3 = primitive("ReLUV3", ops.relu)
SubExt = primitive("SubExt", lambda input, other, alpha=1: ops.sub(input, ops.mul(other, alpha)))
TripletMarginLoss = configured(
    "TripletMarginLoss",
    lambda x, positive, negative, margin, p, swap, eps, reduction: ops.triplet_margin_loss(
        x, positive, negative, margin, p, eps, swap, reduction
    ), p=2, swap=False, eps=1e-6, reduction="mean",
)
ZerosLikeExt = primitive("ZerosLikeExt", lambda input, dtype=None: ops.zeros_like(input, dtype=dtype))

serve_names(__name__)
