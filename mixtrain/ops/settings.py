"""Primitives as rows: functions of this package with the settings that an object keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import float16, float32, int32
from mixtrain.ops.arithmetic import addcdiv, addcmul, hypot
from mixtrain.ops.array import reverse as flip
from mixtrain.ops.boxes import BoundingBoxDecode, BoundingBoxEncode, CheckValid
from mixtrain.ops.comparison import isclose
from mixtrain.ops.extremes import cumprod
from mixtrain.ops.inputs import as_floats, rank_of, tensor, tensor_dtype, values_of
from mixtrain.ops.layouts import (
    bartlett_window,
    blackman_window,
    channel_shuffle,
    hamming_window,
    logspace,
    tril_indices,
    triu_indices,
)
from mixtrain.ops.normalize import batch_norm
from mixtrain.ops.primitive import REQUIRED, configured, primitive, primitives
from mixtrain.ops.reduction import std_mean
from mixtrain.ops.repetition import pad
from mixtrain.ops.resize import ResizeBilinear, ResizeNearestNeighbor
from mixtrain.ops.selection import nonzero
from mixtrain.ops.slicing import (
    index_add,
    index_fill,
    inplace_add,
    inplace_sub,
    inplace_update,
    reverse_sequence,
    tensor_scatter_elements,
    unique_consecutive,
)
from mixtrain.ops.softmax import glu
from mixtrain.ops.statistics import bincount, bucketize, histc, logcumsumexp, renorm, searchsorted
from mixtrain.ops.value_and_grad import stop_gradient
from mixtrain.ops.volumes import adaptive_max_pool2d, adaptive_max_pool3d, sizes_of
from mixtrain.typing import Tensor, TensorLike


def mul_no_nan(x: TensorLike, y: TensorLike) -> Tensor:
    """`x` * `y`, and 0 where `y` is 0."""
    left, right = tensor("ops.MulNoNan", x), tensor("ops.MulNoNan", y)
    return keras.ops.where(keras.ops.equal(right, 0), keras.ops.zeros_like(right), keras.ops.multiply(left, right))


def square_sum_all(input_x: TensorLike, input_y: TensorLike) -> tuple[Tensor, Tensor]:
    """The sums of squares of `input_x` and of `input_y`."""
    x, y = (tensor("ops.SquareSumAll", value) for value in (input_x, input_y))
    if x.dtype != y.dtype or tensor_dtype(x) not in (float16, float32):
        raise checks.fail_type("ops.SquareSumAll", "both must be float16 or float32", y, "y.astype(x.dtype)")
    if x.shape != y.shape:
        raise checks.fail_value("ops.SquareSumAll", f"input_y must have shape {tuple(x.shape)}", tuple(y.shape), "it")
    return keras.ops.sum(keras.ops.square(x)), keras.ops.sum(keras.ops.square(y))


def invert_permutation(input_x: TensorLike) -> Tensor:
    """The inverse of the permutation `input_x`; a tuple gives a tuple."""
    if isinstance(input_x, (tuple, list)):
        return tuple(input_x.index(number) for number in range(len(input_x)))
    return keras.ops.cast(keras.ops.argsort(tensor("ops.InvertPermutation", input_x)), input_x.dtype)


def _map_uniform(input: TensorLike, per_group_size: Tensor, group_num: Tensor) -> Tensor:
    """Assign numbers to `group_num` groups in turn, and return their indices in the concatenated groups."""
    x = tensor("ops.MapUniform", input)
    size, groups = (int(values_of("ops.MapUniform", value)) for value in (per_group_size, group_num))
    return x % groups * size + x // groups


def population_count(input_x: TensorLike) -> Tensor:
    """How many bits of each integer of `input_x` are set; uint8."""
    x = tensor("ops.population_count", input_x)
    width = np.dtype(tensor_dtype(x)).itemsize * 8
    x = keras.ops.cast(x, "int64" if width == 64 else "int32")
    bits = sum(keras.ops.bitwise_and(keras.ops.right_shift(x, bit), 1) for bit in range(width))
    return keras.ops.cast(bits, "uint8")


def embedding_lookup(input_params: TensorLike, input_indices: TensorLike, offset: int) -> Tensor:
    """The rows `input_indices` - `offset` of `input_params`; zeros for indices out of range."""
    table = tensor("ops.EmbeddingLookup", input_params)
    rows = keras.ops.cast(tensor("ops.EmbeddingLookup", input_indices), "int32") - int(offset)
    inside = keras.ops.logical_and(rows >= 0, rows < table.shape[0])
    vectors = keras.ops.take(table, keras.ops.clip(rows, 0, table.shape[0] - 1), axis=0)
    inside = keras.ops.reshape(inside, (*rows.shape, *(1,) * (rank_of(table) - 1)))
    return keras.ops.where(inside, vectors, keras.ops.zeros_like(vectors))


def bounding_box_encode(
    anchor_box: TensorLike, groundtruth_box: TensorLike, means: Sequence[float], stds: Sequence[float]
) -> Tensor:
    """`BoundingBoxEncode` of `anchor_box` and `groundtruth_box` with `means` and `stds`."""
    return BoundingBoxEncode(tuple(means), tuple(stds))(anchor_box, groundtruth_box)


def bounding_box_decode(
    anchor_box: TensorLike, deltas: TensorLike, max_shape: Sequence[int], means: Sequence[float], stds: Sequence[float],
    wh_ratio_clip: float = 0.016,
) -> Tensor:
    """`BoundingBoxDecode` of `anchor_box` and `deltas`, inside `max_shape`, with `means`, `stds`, `wh_ratio_clip`."""
    return BoundingBoxDecode(
        max_shape=tuple(max_shape), means=tuple(means), stds=tuple(stds), wh_ratio_clip=wh_ratio_clip
    )(anchor_box, deltas)


def check_valid(bboxes: TensorLike, img_metas: TensorLike) -> Tensor:
    """Whether each of `bboxes` lies in the image of `img_metas`."""
    return CheckValid()(bboxes, img_metas)


def _cumprod(x: TensorLike, axis: int, *, exclusive: bool, reverse: bool) -> Tensor:
    """Cumulative products, without the element itself if `exclusive`, from the end if `reverse`."""
    value = tensor("ops.CumProd", x)
    axis = int(axis) % rank_of(value)
    result = cumprod(flip(value, [axis]) if reverse else value, axis)
    if exclusive:
        widths = [(1, 0) if other == axis else (0, 0) for other in range(rank_of(value))]
        all_but_last = (*(slice(None),) * axis, slice(0, -1))
        result = keras.ops.pad(result[all_but_last], widths, constant_values=1)
    return flip(result, [axis]) if reverse else result


def _index_put(x1: TensorLike, x2: TensorLike, indices: Sequence[TensorLike], *, accumulate: int) -> Tensor:
    value = tensor("ops.IndexPut", x1)
    index = keras.ops.stack([keras.ops.cast(axis_indices, "int32") for axis_indices in indices], axis=-1)
    updates = keras.ops.broadcast_to(
        keras.ops.cast(tensor("ops.IndexPut", x2), value.dtype), (*index.shape[:-1], *value.shape[index.shape[-1] :])
    )
    if not accumulate:
        return keras.ops.scatter_update(value, index, updates)
    return value + keras.ops.cast(keras.ops.scatter(index, updates, tuple(value.shape)), value.dtype)


def inplace_index_add(var: TensorLike, indices: TensorLike, updates: TensorLike, axis: int) -> Tensor:
    """`index_add` of `updates` at `indices` along `axis` of `var`."""
    return index_add(var, indices, updates, axis)


def _batch_norm(
    x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, *, is_training: bool, epsilon: float,
    momentum: float, data_format: str,
) -> tuple[Tensor, ...]:
    output = batch_norm(x, mean, variance, scale, bias, is_training, momentum, epsilon)
    return (output, *(tensor("BatchNorm", value) for value in (scale, bias, mean, variance)))


def _bound(side: str) -> Callable[..., Tensor]:
    return lambda sorted_x, values, *, out_type: searchsorted(sorted_x, values, side=side, out_int32=out_type == int32)


def _resize_to(resize: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a resize whose size comes with the call."""
    return lambda x, size, **settings: resize(sizes_of("Resize", "size", size, 2), **settings)(x)


(
    Addcdiv, Addcmul, Hypot, MulNoNan, NonZero, SquareSumAll, StopGradient, InvertPermutation, PopulationCount,
    EmbeddingLookup, IndexFill,
) = primitives(
    Addcdiv=addcdiv, Addcmul=addcmul, Hypot=hypot, MulNoNan=mul_no_nan, NonZero=nonzero, SquareSumAll=square_sum_all,
    StopGradient=stop_gradient, InvertPermutation=invert_permutation, PopulationCount=population_count,
    EmbeddingLookup=embedding_lookup, IndexFill=index_fill,
)
InplaceUpdateV2 = primitive("InplaceUpdateV2", lambda x, indices, v: inplace_update(x, v, indices))
Bincount = primitive("Bincount", lambda array, size, weights: bincount(array, weights, int(size)))
ParallelConcat = primitive(
    "ParallelConcat",
    lambda values: keras.ops.concatenate([tensor("ParallelConcat", value) for value in values], axis=0),
)
BatchNorm = configured("BatchNorm", _batch_norm, is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW")
BartlettWindow = configured("BartlettWindow", bartlett_window, periodic=True, dtype=float32)
BlackmanWindow = configured("BlackmanWindow", blackman_window, periodic=True, dtype=float32)
HammingWindow = configured(
    "HammingWindow", lambda length, *, periodic, alpha, beta, dtype: hamming_window(
        int(values_of("ops.HammingWindow", length).item()), periodic, alpha, beta, dtype=dtype
    ), periodic=True, alpha=0.54, beta=0.46, dtype=float32,
)
ChannelShuffle = configured("ChannelShuffle", lambda x, *, group: channel_shuffle(x, group), group=REQUIRED)
CumProd = configured("CumProd", _cumprod, exclusive=False, reverse=False)
GLU = configured("GLU", glu, axis=-1)
IndexAdd = configured("IndexAdd", index_add, axis=REQUIRED, use_lock=True, check_index_bound=True)
IndexPut = configured("IndexPut", _index_put, accumulate=0)
InplaceAdd = configured("InplaceAdd", inplace_add, indices=REQUIRED)
InplaceSub = configured("InplaceSub", inplace_sub, indices=REQUIRED)
InplaceIndexAdd = configured("InplaceIndexAdd", inplace_index_add, axis=REQUIRED)
IsClose = configured("IsClose", isclose, rtol=1e-05, atol=1e-08, equal_nan=False)
LogSpace = configured("LogSpace", logspace, steps=10, base=10, dtype=float32)
LowerBound = configured("LowerBound", _bound("left"), out_type=int32)
UpperBound = configured("UpperBound", _bound("right"), out_type=int32)
ReduceStd = configured(
    "ReduceStd", lambda x, *, axis, unbiased, keep_dims: std_mean(x, axis, unbiased, keep_dims), axis=(),
    unbiased=True, keep_dims=False,
)
Renorm = configured(
    "Renorm", lambda x, *, p, dim, maxnorm: renorm(as_floats("ops.Renorm", x), p, dim, maxnorm), p=REQUIRED,
    dim=REQUIRED, maxnorm=REQUIRED,
)
ResizeBilinearV2 = configured(
    "ResizeBilinearV2", _resize_to(ResizeBilinear), align_corners=False, half_pixel_centers=False
)
ResizeNearestNeighborV2 = configured(
    "ResizeNearestNeighborV2", _resize_to(ResizeNearestNeighbor), align_corners=False, half_pixel_centers=False
)
ReverseSequence = configured("ReverseSequence", reverse_sequence, seq_dim=REQUIRED, batch_dim=0)
TrilIndices = configured("TrilIndices", tril_indices, row=REQUIRED, col=REQUIRED, offset=0, dtype=int32)
TriuIndices = configured("TriuIndices", triu_indices, row=REQUIRED, col=REQUIRED, offset=0, dtype=int32)
UniqueConsecutive = configured(
    "UniqueConsecutive", lambda x, *, return_idx, return_counts, axis: unique_consecutive(
        x, return_idx, return_counts, axis
    ), return_idx=False, return_counts=False, axis=None,
)
# Each element of x is the number of an axis; the result is its number in the other format.
DataFormatDimMap = configured(
    "DataFormatDimMap", lambda x, *, src_format, dst_format: keras.ops.take(
        keras.ops.convert_to_tensor([src_format.index(axis) for axis in dst_format], dtype="int32"), x, axis=0
    ), src_format="NHWC", dst_format="NCHW",
)
DataFormatVecPermute = configured(
    "DataFormatVecPermute", lambda x, *, src_format, dst_format: keras.ops.take(
        tensor("ops.DataFormatVecPermute", x), [src_format.index(axis) for axis in dst_format], axis=0
    ), src_format="NHWC", dst_format="NCHW",
)


def _check_numerics(x: TensorLike) -> Tensor:
    value = tensor("ops.CheckNumerics", x)
    if not backend.is_symbolic(value) and not np.isfinite(backend.to_numpy(value)).all():
        raise RuntimeError("ops.CheckNumerics: expected finite numbers; got NaN or infinite ones. Write x that is.")
    return value


def _packed_bits(x: TensorLike, threshold: Tensor) -> Tensor:
    """Compare with a threshold, and pack eight results each into the bits of a uint8, the first one highest."""
    above = keras.ops.cast(tensor("ops.CompareAndBitpack", x) > threshold, "int32")
    bits = keras.ops.reshape(above, (*above.shape[:-1], -1, 8))
    return keras.ops.cast(keras.ops.sum(bits * np.array([128, 64, 32, 16, 8, 4, 2, 1], np.int32), axis=-1), "uint8")


def _cumulative_logsumexp(x: TensorLike, axis: TensorLike, exclusive: bool, reverse: bool) -> Tensor:
    value, axis = as_floats("ops.CumulativeLogsumexp", x), int(values_of("ops.CumulativeLogsumexp", axis).item())
    value = keras.ops.flip(value, axis=axis) if reverse else value
    result = logcumsumexp(value, axis)
    if exclusive:
        first = keras.ops.full_like(keras.ops.take(result, [0], axis=axis), float(np.finfo(np.float32).min))
        rest = keras.ops.take(result, np.arange(result.shape[axis] - 1), axis=axis)
        result = keras.ops.concatenate([first, rest], axis=axis)
    return keras.ops.flip(result, axis=axis) if reverse else result


def _diagonal_part(x: TensorLike) -> Tensor:
    """The elements whose first half of indices equals the second half."""
    value = tensor("ops.DiagPart", x)
    half = value.shape[: rank_of(value) // 2]
    size = int(np.prod(half))
    return keras.ops.reshape(keras.ops.diagonal(keras.ops.reshape(value, (size, size))), half)


def _adaptive_max_pool3d(x: Tensor, output_size: int | Sequence[int]) -> Tensor:
    sizes = tuple(values_of("ops.AdaptiveMaxPool3D", output_size).tolist())
    output, indices = adaptive_max_pool3d(x, sizes, return_indices=True)
    return output, keras.ops.cast(indices, "int32")


def _padded(
    x: Tensor, paddings: TensorLike, constant_value: TensorLike | None = None, *, mode: Tensor,
    paddings_contiguous: bool,
) -> Tensor:
    widths = values_of("ops.PadV3", paddings).reshape(-1)
    if not paddings_contiguous:
        widths = widths.reshape(2, -1).T.reshape(-1)
    value = None if constant_value is None or mode != "constant" else values_of("ops.PadV3", constant_value).item()
    return pad(x, tuple(widths.tolist()), "replicate" if mode == "edge" else mode, value)


def _scatter_add_along(input_x: Tensor, indices: Tensor, updates: Tensor, axis: int) -> Tensor:
    return tensor_scatter_elements(input_x, indices, updates, axis, "add")


AdaptiveMaxPool2D = configured(
    "AdaptiveMaxPool2D", lambda x, output_size: adaptive_max_pool2d(x, output_size, return_indices=True),
    output_size=REQUIRED,
)
AdaptiveMaxPool3D = primitive("AdaptiveMaxPool3D", _adaptive_max_pool3d)
Bucketize = configured("Bucketize", lambda x, boundaries: bucketize(x, boundaries, right=True), boundaries=())
CheckNumerics, CompareAndBitpack = primitives(CheckNumerics=_check_numerics, CompareAndBitpack=_packed_bits)
CumulativeLogsumexp = configured("CumulativeLogsumexp", _cumulative_logsumexp, exclusive=False, reverse=False)
DiagPart = primitive("DiagPart", _diagonal_part)
Histogram = configured(
    "Histogram", lambda x, bins, min, max: keras.ops.cast(histc(x, bins, min, max), float32), bins=100, min=0.0,
    max=0.0,
)
MapUniform = primitive("MapUniform", _map_uniform)
PadV3 = configured("PadV3", _padded, mode="constant", paddings_contiguous=True)
ScatterAddWithAxis = configured("ScatterAddWithAxis", _scatter_add_along, axis=0)
TensorScatterElements = configured("TensorScatterElements", tensor_scatter_elements, axis=0, reduction="none")
UnravelIndex = primitive("UnravelIndex", lambda indices, dims: keras.ops.cast(keras.ops.stack(
    keras.ops.unravel_index(tensor("ops.UnravelIndex", indices), tuple(values_of("", dims).tolist())), axis=0
), tensor("ops.UnravelIndex", indices).dtype))
