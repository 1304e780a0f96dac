"""The primitives that MindSpore's derivatives are made of, as scripts take them from `_grad_ops` for their own `bprop`.

Each computes the gradients of an operator here; what it is given besides the operator's inputs is not needed.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from mixtrain import backend, ops
from mixtrain.dtype import float32, int64
from mixtrain.lazy_names import serve_names
from mixtrain.ops.inputs import known_int
from mixtrain.ops.primitive import REQUIRED, as_primitive, configured, primitive
from mixtrain.typing import Tensor, Tree

GRADIENTS: Final = ops.GradOperation(get_all=True, sens_param=True)


def gradients_of(name: str, arguments: str, forward: Callable[..., Tensor], **settings: Any) -> Any:
    """Return the class of primitives that compute the gradients of `forward`.

    `arguments`: What the primitive takes, in order: ``dy`` the gradient of the output; ``x`` an input whose gradient is
    returned; ``s`` the shape of such an input; ``k`` another input; ``-`` what is not needed. After ``size`` the
    spatial shape of the gradient is the last input of `forward`. `settings`: As of `configured`, for `forward`.
    """
    kinds = arguments.split()

    def gradients(*args: Any, **current: Any) -> Tree:
        gradient = args[kinds.index("dy")]
        values = [
            ops.zeros(tuple(map(int, arg)), gradient.dtype) if kind == "s" else arg
            for kind, arg in zip(kinds, args, strict=False) if kind in "xsk"
        ]
        places = [index for index, kind in enumerate(kind for kind in kinds if kind in "xsk") if kind in "xs"]

        def output(*tensors: Any) -> Tensor:
            inputs = dict(enumerate(values)) | dict(zip(places, tensors, strict=True))
            sizes = [tuple(gradient.shape[2:])] if "size" in kinds else []
            return forward(*inputs.values(), *sizes, **current)

        result = GRADIENTS(output)(*[values[index] for index in places], gradient)
        return result if len(places) > 1 else result[0]

    row = configured(name, gradients, **settings)
    row.__module__ = sys._getframe(1).f_globals["__name__"]  # Where pickle looks for it.
    return row


def made(primitive_class: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that makes a primitive with its settings and calls it."""
    return lambda *inputs, **settings: primitive_class(**settings)(*inputs)


# ---- elementwise --------------------------------------------------------------------------------------------------
AbsGrad = gradients_of("AbsGrad", "x dy", ops.abs)
ACosGrad = gradients_of("ACosGrad", "x dy", ops.acos)
AsinGrad = gradients_of("AsinGrad", "x dy", ops.asin)
AtanGrad = gradients_of("AtanGrad", "x dy", ops.atan)
FastGeLUGrad = gradients_of("FastGeLUGrad", "dy x", ops.fast_gelu)
GeLUGrad = gradients_of("GeLUGrad", "dy x -", lambda x: ops.gelu(x, "tanh"))
GluGrad = gradients_of("GluGrad", "dy x", ops.glu, axis=REQUIRED)
HShrinkGrad = gradients_of("HShrinkGrad", "dy x", ops.hardshrink, lambd=0.5)
HSigmoidGrad = gradients_of("HSigmoidGrad", "dy x", ops.hardsigmoid)
HSwishGrad = gradients_of("HSwishGrad", "dy x", ops.hardswish)
LogitGrad = gradients_of("LogitGrad", "dy x", lambda x, eps: ops.logit(x, None if eps < 0 else eps), eps=-1.0)
LogSigmoidGrad = gradients_of("LogSigmoidGrad", "dy x -", ops.logsigmoid)
MaximumGrad = gradients_of("MaximumGrad", "x x dy", lambda x, y, **_: ops.maximum(x, y), grad_x=True, grad_y=True)
MinimumGrad = gradients_of("MinimumGrad", "x x dy", lambda x, y, **_: ops.minimum(x, y), grad_x=True, grad_y=True)


def _grad_grad(of_first: Callable[[Tensor, Tensor], Tensor]) -> Callable[..., tuple[Tensor, ...]]:
    """Return the second derivatives of a maximum or minimum: 0, 0, and by `dy` the one of two that is taken."""
    return lambda x, y, dx, dy, **_: (ops.zeros_like(x), ops.zeros_like(y), ops.where(of_first(x, y), dx, dy))


MaximumGradGrad = configured("MaximumGradGrad", _grad_grad(ops.greater_equal), grad_x=True, grad_y=True)
MinimumGradGrad = primitive("MinimumGradGrad", _grad_grad(ops.less_equal))
IgammaGradA = primitive(
    "IgammaGradA", lambda a, x: GRADIENTS(ops.igamma)(a, x, ops.ones_like(ops.add(a, x)))[0]
)
MishGradExt = gradients_of("MishGradExt", "dy x", ops.mish)
MvlgammaGrad = gradients_of("MvlgammaGrad", "dy x", ops.mvlgamma, p=REQUIRED)
PReLUGrad = gradients_of("PReLUGrad", "dy x x", ops.prelu)
ReLU6Grad = gradients_of("ReLU6Grad", "dy x", ops.relu6)
SiLUGrad = gradients_of("SiLUGrad", "dy x", ops.silu)
SoftplusGrad = gradients_of("SoftplusGrad", "dy x", ops.softplus)
SoftShrinkGrad = gradients_of("SoftShrinkGrad", "dy x", ops.softshrink, lambd=0.5)
# From the output `y` of the operator.
AcoshGrad = primitive("AcoshGrad", lambda y, dy: dy / ops.sinh(y))
AsinhGrad = primitive("AsinhGrad", lambda y, dy: dy / ops.cosh(y))
EluGrad = primitive("EluGrad", lambda dy, y: ops.where(y > 0, dy, dy * (y + 1)))
InvGrad = primitive("InvGrad", lambda y, dy: -dy * y * y)
ReciprocalGrad = primitive("ReciprocalGrad", lambda y, dy: -dy * y * y)
ReluGrad = primitive("ReluGrad", lambda dy, y: ops.where(y > 0, dy, ops.zeros_like(dy)))
RsqrtGrad = primitive("RsqrtGrad", lambda y, dy: -0.5 * dy * y * y * y)
SigmoidGrad = primitive("SigmoidGrad", lambda y, dy: dy * y * (1 - y))
SqrtGrad = primitive("SqrtGrad", lambda y, dy: 0.5 * dy / y)
TanhGrad = primitive("TanhGrad", lambda y, dy: dy * (1 - y * y))
LogSoftmaxGrad = configured(
    "LogSoftmaxGrad", lambda y, dy, axis: dy - ops.exp(y) * ops.sum(dy, axis, True), axis=-1
)
SoftmaxGrad = primitive("SoftmaxGrad", lambda y, dy: y * (dy - ops.sum(y * dy, -1, True)))

# ---- arrays -------------------------------------------------------------------------------------------------------
_MASKS: Final = {f"{kind}_mask": 0 for kind in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
EinsumGrad = configured(
    "EinsumGrad", lambda x, dy, equation: GRADIENTS(lambda *inputs: ops.einsum(equation, *inputs))(*x, dy),
    equation=REQUIRED,
)
FlattenGrad = primitive("FlattenGrad", lambda dy, shape: ops.reshape(dy, shape))
GatherDGradV2 = gradients_of("GatherDGradV2", "x k k dy", ops.gather_d)
PdistGrad = gradients_of("PdistGrad", "dy x -", ops.pdist, p=2.0)
MaskedSelectGrad = gradients_of("MaskedSelectGrad", "x k dy", ops.masked_select)
SliceGrad = gradients_of("SliceGrad", "dy x k k", ops.slice)
TraceGrad = gradients_of("TraceGrad", "dy s", ops.trace)


def _strided_slice_gradient(dy: Tensor, shapex: Sequence[int], *slices: Any, **masks: int) -> Tensor:
    """Return `dy`, of any dtype and of a shape with as many elements as the slice, where it was cut from zeros."""
    shape = tuple(map(int, shapex))
    places = ops.strided_slice(ops.reshape(ops.arange(math.prod(shape)), shape), *slices, **masks)
    zeros = ops.zeros((math.prod(shape),), dy.dtype)
    return ops.reshape(ops.tensor_scatter_elements(zeros, ops.reshape(places, (-1,)), ops.reshape(dy, (-1,))), shape)


StridedSliceGrad = configured("StridedSliceGrad", _strided_slice_gradient, **_MASKS)


@as_primitive
def MedianGrad(
    y_grad: Tensor, x: Tensor, y: Tensor, indices: Tensor, *, global_median: bool = False, axis: int = 0,
    keep_dims: bool = False,
) -> Tensor:
    """Return the gradient where the medians stood; that of the median of all is shared by equal elements."""
    if global_median:
        equal = ops.cast(ops.equal(x, y), y_grad.dtype)
        return y_grad * equal / ops.sum(equal)
    if not keep_dims:
        y_grad, indices = ops.expand_dims(y_grad, axis), ops.expand_dims(indices, axis)
    gradient: Tensor = GRADIENTS(lambda x: ops.gather_d(x, axis, indices))(ops.zeros_like(x), y_grad)[0]
    return gradient


@as_primitive
def SparseSegmentMeanGrad(x: Tensor, indices: Tensor, segment_ids: Tensor, output_dim0: Tensor) -> Tensor:
    """Return the sums of what each of `output_dim0` rows has in the means of segments."""
    counts = ops.unsorted_segment_sum(ops.ones_like(segment_ids), segment_ids, x.shape[0])
    counts = ops.reshape(ops.cast(ops.maximum(counts, 1), x.dtype), (-1, *[1] * (x.ndim - 1)))
    rows = ops.gather(x / counts, segment_ids, 0)
    return ops.unsorted_segment_sum(rows, indices, known_int("SparseSegmentMeanGrad", output_dim0))


@as_primitive
def SparseSliceGrad(backprop_val_grad: Tensor, indices: Tensor, start: Tensor, new_indices: Tensor) -> Tensor:
    """Return the gradient of values at `indices`, of which a slice from `start` has those at `new_indices`."""
    same = ops.expand_dims(indices - start, 1) == ops.expand_dims(new_indices, 0)
    return ops.sum(ops.cast(ops.all(same, -1), backprop_val_grad.dtype) * backprop_val_grad, -1)


@as_primitive
def AffineGridGrad(dy: Tensor, size: Sequence[int], *, align_corners: bool = False) -> Tensor:
    """Return the gradient of the affine transformations of a grid."""
    axes = len(size) - 2
    theta = ops.zeros((dy.shape[0], axes, axes + 1), dy.dtype)
    gradient: Tensor = GRADIENTS(lambda theta: ops.affine_grid(theta, size, align_corners))(theta, dy)[0]
    return gradient


@as_primitive
def BiasAddGrad(dout: Tensor, *, data_format: str = "NCHW") -> Tensor:
    """Return the sum of a gradient over all axes but the channels'."""
    channels = dout.ndim - 1 if data_format == "NHWC" else 1
    return ops.sum(dout, tuple(axis for axis in range(dout.ndim) if axis != channels))


def _concat_offsets(axis: Tensor, x: Sequence[Tensor]) -> tuple[Tensor, ...]:
    shapes = np.stack([backend.to_numpy(shape) for shape in x])
    offsets, place = np.zeros_like(shapes), known_int("ops.ConcatOffsetV1", axis)
    offsets[1:, place] = shapes[:-1, place].cumsum()
    return tuple(backend.to_tensor(row) for row in offsets)


def _concat_offset(x: Sequence[Tensor], N: int, axis: int) -> Tensor:
    del N
    rows = _concat_offsets(axis, [backend.to_tensor(np.array(one.shape), int64) for one in x])
    return ops.stack(list(rows))


ConcatOffset = configured("ConcatOffset", _concat_offset, N=2, axis=0)
ConcatOffsetV1 = primitive("ConcatOffsetV1", _concat_offsets)

# ---- normalization ------------------------------------------------------------------------------------------------
@as_primitive
def DropoutGrad(dy: Tensor, mask: Tensor, *, keep_prob: float = 0.5) -> Tensor:
    """Return the gradient of what a mask kept."""
    return dy * mask / keep_prob


def _layer_norm_gradients(
    x: Tensor, dy: Tensor, variance: Tensor, mean: Tensor, gamma: Tensor, first: tuple[int, int], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of a layer normalization; `first`: the first axes of `x` that it is over, and of gamma."""
    axes, rows = tuple(range(first[0] % x.ndim, x.ndim)), tuple(range(first[1] % x.ndim))
    wide, of_output = ops.cast(x, float32), ops.cast(dy, float32)
    scale = ops.rsqrt(ops.cast(variance, float32) + epsilon)
    normal = (wide - mean) * scale
    scaled = of_output * ops.cast(gamma, float32)
    of_x = scale * (scaled - ops.mean(scaled, axes, True) - normal * ops.mean(scaled * normal, axes, True))
    of_gamma, of_beta = ops.sum(of_output * normal, rows), ops.sum(of_output, rows)
    return ops.cast(of_x, x.dtype), ops.cast(of_gamma, gamma.dtype), ops.cast(of_beta, gamma.dtype)


@as_primitive
def LayerNormGrad(
    x: Tensor, dy: Tensor, variance: Tensor, mean: Tensor, gamma: Tensor, *, begin_norm_axis: int = 1,
    begin_params_axis: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the input, of gamma and of beta of a layer normalization, from its statistics."""
    return _layer_norm_gradients(x, dy, variance, mean, gamma, (begin_norm_axis, begin_params_axis), 1e-7)


@as_primitive
def LayerNormGradGrad(
    x: Tensor, dy: Tensor, variance: Tensor, mean: Tensor, gamma: Tensor, d_dx: Tensor, d_dg: Tensor, d_db: Tensor, *,
    begin_norm_axis: int = 1, begin_params_axis: int = 1,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `LayerNormGrad` by its `x`, `dy` and `gamma`; its epsilon is 1e-12, as in MindSpore."""
    first = (begin_norm_axis, begin_params_axis)
    axes = tuple(range(begin_norm_axis % x.ndim, x.ndim))

    def gradients(x: Tensor, dy: Tensor, gamma: Tensor) -> Tree:
        statistics = ops.var(x, axes, 0, True), ops.mean(x, axes, True)
        return _layer_norm_gradients(x, dy, *statistics, gamma, first, 1e-12)

    result: tuple[Tensor, Tensor, Tensor] = GRADIENTS(gradients)(x, dy, gamma, (d_dx, d_dg, d_db))
    return result


L2NormalizeGrad = gradients_of("L2NormalizeGrad", "x - dy", made(ops.L2Normalize), axis=0, epsilon=1e-4)
LRNGrad = gradients_of("LRNGrad", "dy x -", ops.lrn, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5)

# ---- losses -------------------------------------------------------------------------------------------------------
BinaryCrossEntropyGrad = gradients_of("BinaryCrossEntropyGrad", "x k dy k", ops.binary_cross_entropy, reduction="mean")
KLDivLossGrad = gradients_of("KLDivLossGrad", "dy x k", ops.kl_div, reduction="mean")
MultiMarginLossGrad = gradients_of(
    "MultiMarginLossGrad", "dy x k k",
    lambda x, target, weight=None, **settings: ops.multi_margin_loss(x, target, weight=weight, **settings),
    p=1, margin=1.0, reduction="mean",
)
MultilabelMarginLossGrad = gradients_of(
    "MultilabelMarginLossGrad", "dy x k -", ops.multilabel_margin_loss, reduction="mean"
)
SigmoidCrossEntropyWithLogitsGrad = primitive(
    "SigmoidCrossEntropyWithLogitsGrad", lambda x, y, dy: dy * (ops.sigmoid(x) - y)
)
SmoothL1LossGrad = gradients_of("SmoothL1LossGrad", "x k dy", ops.smooth_l1_loss, beta=1.0, reduction="none")
SoftMarginLossGrad = gradients_of("SoftMarginLossGrad", "x k dy", ops.soft_margin_loss, reduction="mean")


@as_primitive
def NLLLossGrad(
    logits: Tensor, dy: Tensor, labels: Tensor, weight: Tensor, total_weight: Tensor, *, reduction: str = "mean",
    ignore_index: int = -100,
) -> Tensor:
    """Return the gradient of log probabilities; for a mean, by the sum of the weights of the rows."""
    loss = ops.NLLLoss("none" if reduction == "none" else "sum", ignore_index)
    gradient: Tensor = GRADIENTS(lambda x: loss(x, labels, weight)[0])(logits, dy)[0]
    return gradient / total_weight if reduction == "mean" else gradient

serve_names(__name__)
