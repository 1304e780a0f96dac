"""Primitives that MindSpore has in its modules of operations alone: of sequences, of segments and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend, ops
from mixtrain.dtype import as_dtype, float32
from mixtrain.lazy_names import serve_names
from mixtrain.ops.complex_numbers import eigh
from mixtrain.ops.deformable import deformable_offsets
from mixtrain.ops.derivative_primitives import (  # noqa: F401
    Conv3DBackpropInput,
    CropAndResizeGradBoxes,
    CropAndResizeGradImage,
)
from mixtrain.ops.fractional_pool import FractionalMaxPoolWithFixedKsize  # noqa: F401
from mixtrain.ops.inputs import known_int, tensor
from mixtrain.ops.primitive import REQUIRED, as_primitive, configured, primitive
from mixtrain.ops.sparse_updates import (  # noqa: F401
    SparseApplyAdagrad,
    SparseApplyAdagradDA,
    SparseApplyCenteredRMSProp,
    SparseApplyMomentum,
    SparseApplyProximalGradientDescent,
    SparseApplyRMSProp,
)
from mixtrain.ops.updates import ApplyAdamWithAmsgrad, FusedAdaFactor, FusedAdaFactorWithGlobalNorm  # noqa: F401
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
DeformableOffsets = configured(
    "DeformableOffsets",
    lambda x, offsets, *, ksize, **settings: deformable_offsets(x, offsets, kernel_size=ksize, **settings),
    strides=REQUIRED, pads=REQUIRED, ksize=REQUIRED, dilations=(1, 1, 1, 1), data_format="NCHW", deformable_groups=1,
    modulated=True,
)


@as_primitive()
def InstanceNormV2(
    x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, *, is_training: bool = True,
    momentum: float = 0.1, epsilon: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize each channel of an instance; also its mean and the reciprocal of its deviation, in training."""
    del momentum
    if is_training:
        mean, variance = ops.mean(x, (2, 3), True), ops.var(x, (2, 3), 0, True)
    scale = ops.rsqrt(variance + epsilon)
    saved = (mean, scale) if is_training else (ops.zeros_like(mean), ops.zeros_like(mean))
    return (x - mean) * scale * gamma + beta, *saved


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
