"""The primitives that MindSpore's derivatives are made of, as scripts take them from `_grad_ops` for their own `bprop`.

Each computes the gradients of an operator here; what it is given besides the operator's inputs is not needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from mixtrain import checks, ops
from mixtrain.dtype import float32, int64
from mixtrain.lazy_names import serve_names
from mixtrain.ops.primitive import REQUIRED, as_primitive, configured, primitive
from mixtrain.typing import Tensor, Tree

_GRADIENTS: Final = ops.GradOperation(get_all=True, sens_param=True)


def _of(name: str, arguments: str, forward: Callable[..., Tensor], **settings: Any) -> Any:
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

        result = _GRADIENTS(output)(*[values[index] for index in places], gradient)
        return result if len(places) > 1 else result[0]

    return configured(name, gradients, **settings)


def _made(primitive_class: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that makes a primitive with its settings and calls it."""
    return lambda *inputs, **settings: primitive_class(**settings)(*inputs)


# ---- elementwise --------------------------------------------------------------------------------------------------
AbsGrad = _of("AbsGrad", "x dy", ops.abs)
ACosGrad = _of("ACosGrad", "x dy", ops.acos)
AsinGrad = _of("AsinGrad", "x dy", ops.asin)
AtanGrad = _of("AtanGrad", "x dy", ops.atan)
FastGeLUGrad = _of("FastGeLUGrad", "dy x", ops.fast_gelu)
GeLUGrad = _of("GeLUGrad", "dy x -", lambda x: ops.gelu(x, "tanh"))
GluGrad = _of("GluGrad", "dy x", ops.glu, axis=REQUIRED)
HShrinkGrad = _of("HShrinkGrad", "dy x", ops.hardshrink, lambd=0.5)
HSigmoidGrad = _of("HSigmoidGrad", "dy x", ops.hardsigmoid)
HSwishGrad = _of("HSwishGrad", "dy x", ops.hardswish)
LogitGrad = _of("LogitGrad", "dy x", lambda x, eps: ops.logit(x, None if eps < 0 else eps), eps=-1.0)
LogSigmoidGrad = _of("LogSigmoidGrad", "dy x -", ops.logsigmoid)
MaximumGrad = _of("MaximumGrad", "x x dy", lambda x, y, **_: ops.maximum(x, y), grad_x=True, grad_y=True)
MinimumGrad = _of("MinimumGrad", "x x dy", lambda x, y, **_: ops.minimum(x, y), grad_x=True, grad_y=True)
MishGradExt = _of("MishGradExt", "dy x", ops.mish)
MvlgammaGrad = _of("MvlgammaGrad", "dy x", ops.mvlgamma, p=REQUIRED)
PReLUGrad = _of("PReLUGrad", "dy x x", ops.prelu)
ReLU6Grad = _of("ReLU6Grad", "dy x", ops.relu6)
SiLUGrad = _of("SiLUGrad", "dy x", ops.silu)
SoftplusGrad = _of("SoftplusGrad", "dy x", ops.softplus)
SoftShrinkGrad = _of("SoftShrinkGrad", "dy x", ops.softshrink, lambd=0.5)
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
    "EinsumGrad", lambda x, dy, equation: _GRADIENTS(lambda *inputs: ops.einsum(equation, *inputs))(*x, dy),
    equation=REQUIRED,
)
FlattenGrad = primitive("FlattenGrad", lambda dy, shape: ops.reshape(dy, shape))
GatherDGradV2 = _of("GatherDGradV2", "x k k dy", ops.gather_d)
MaskedSelectGrad = _of("MaskedSelectGrad", "x k dy", ops.masked_select)
SliceGrad = _of("SliceGrad", "dy x k k", ops.slice)
TraceGrad = _of("TraceGrad", "dy s", ops.trace)


def _strided_slice_gradient(dy: Tensor, shapex: Sequence[int], *slices: Any, **masks: int) -> Tensor:
    """Return `dy`, of any dtype and of a shape with as many elements as the slice, where it was cut from zeros."""
    shape = tuple(map(int, shapex))
    places = ops.strided_slice(ops.reshape(ops.arange(math.prod(shape)), shape), *slices, **masks)
    zeros = ops.zeros((math.prod(shape),), dy.dtype)
    return ops.reshape(ops.tensor_scatter_elements(zeros, ops.reshape(places, (-1,)), ops.reshape(dy, (-1,))), shape)


StridedSliceGrad = configured("StridedSliceGrad", _strided_slice_gradient, **_MASKS)


@as_primitive
def AffineGridGrad(dy: Tensor, size: Sequence[int], *, align_corners: bool = False) -> Tensor:
    """Return the gradient of the affine transformations of a grid."""
    axes = len(size) - 2
    theta = ops.zeros((dy.shape[0], axes, axes + 1), dy.dtype)
    gradient: Tensor = _GRADIENTS(lambda theta: ops.affine_grid(theta, size, align_corners))(theta, dy)[0]
    return gradient


@as_primitive
def BiasAddGrad(dout: Tensor, *, data_format: str = "NCHW") -> Tensor:
    """Return the sum of a gradient over all axes but the channels'."""
    channels = dout.ndim - 1 if data_format == "NHWC" else 1
    return ops.sum(dout, tuple(axis for axis in range(dout.ndim) if axis != channels))


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

    result: tuple[Tensor, Tensor, Tensor] = _GRADIENTS(gradients)(x, dy, gamma, (d_dx, d_dg, d_db))
    return result


L2NormalizeGrad = _of("L2NormalizeGrad", "x - dy", _made(ops.L2Normalize), axis=0, epsilon=1e-4)
LRNGrad = _of("LRNGrad", "dy x -", ops.lrn, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5)

# ---- losses -------------------------------------------------------------------------------------------------------
BinaryCrossEntropyGrad = _of("BinaryCrossEntropyGrad", "x k dy k", ops.binary_cross_entropy, reduction="mean")
KLDivLossGrad = _of("KLDivLossGrad", "dy x k", ops.kl_div, reduction="mean")
MultiMarginLossGrad = _of(
    "MultiMarginLossGrad", "dy x k k",
    lambda x, target, weight=None, **settings: ops.multi_margin_loss(x, target, weight=weight, **settings),
    p=1, margin=1.0, reduction="mean",
)
MultilabelMarginLossGrad = _of("MultilabelMarginLossGrad", "dy x k -", ops.multilabel_margin_loss, reduction="mean")
SigmoidCrossEntropyWithLogitsGrad = primitive(
    "SigmoidCrossEntropyWithLogitsGrad", lambda x, y, dy: dy * (ops.sigmoid(x) - y)
)
SmoothL1LossGrad = _of("SmoothL1LossGrad", "x k dy", ops.smooth_l1_loss, beta=1.0, reduction="none")
SoftMarginLossGrad = _of("SoftMarginLossGrad", "x k dy", ops.soft_margin_loss, reduction="mean")


@as_primitive
def NLLLossGrad(
    logits: Tensor, dy: Tensor, labels: Tensor, weight: Tensor, total_weight: Tensor, *, reduction: str = "mean",
    ignore_index: int = -100,
) -> Tensor:
    """Return the gradient of log probabilities; for a mean, by the sum of the weights of the rows."""
    loss = ops.NLLLoss("none" if reduction == "none" else "sum", ignore_index)
    gradient: Tensor = _GRADIENTS(lambda x: loss(x, labels, weight)[0])(logits, dy)[0]
    return gradient / total_weight if reduction == "mean" else gradient


# ---- pooling, convolutions and images ------------------------------------------------------------------------------
_POOL: Final = {"kernel_size": 1, "strides": 1, "pad_mode": "VALID", "data_format": "NCHW"}
_SAMPLING: Final = {"interpolation_mode": "bilinear", "padding_mode": "zeros", "align_corners": False}
_ALIGNED: Final = {"align_corners": False, "half_pixel_centers": False}
AdaptiveAvgPool2DGrad = _of("AdaptiveAvgPool2DGrad", "dy s size", ops.adaptive_avg_pool2d)
AdaptiveAvgPool3DGrad = _of("AdaptiveAvgPool3DGrad", "dy s size", ops.adaptive_avg_pool3d)
AvgPoolGrad = _of("AvgPoolGrad", "x - dy", _made(ops.AvgPool), **_POOL)
MaxPoolGrad = _of("MaxPoolGrad", "x - dy", _made(ops.MaxPool), **_POOL)
MaxPool3DGrad = _of(
    "MaxPool3DGrad", "x - dy", _made(ops.MaxPool3D), kernel_size=1, strides=1,
    pad_mode="VALID", pad_list=0, data_format="NCDHW",
)


def _tangents(pool: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return the derivative of the gradient of a pool by the output's gradient: what `grad` has at the maxima."""
    return lambda x, y, grad, **settings: ops.jvp(pool(**settings), x, grad)[1]


MaxPoolGradGrad = configured("MaxPoolGradGrad", _tangents(ops.MaxPool), kernel_size=1, strides=1, pad_mode="VALID")
MaxPool3DGradGrad = configured(
    "MaxPool3DGradGrad", _tangents(ops.MaxPool3D), kernel_size=(1, 1, 1), strides=(1, 1, 1), pad_mode="VALID",
    data_format="NCDHW",
)
_WITH_ARGMAX: Final = {"strides": None, "pads": 0, "dilation": (1, 1), "ceil_mode": False, "argmax_type": int64}


def _by_argmax(axes: int) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Return the gradient of a pool's input by the places of the maxima, and the derivative of that by the output's.

    `axes`: The number of leading axes that the places, counted through the others, do not count.
    """

    def at_maxima(x: Tensor, grad: Tensor, argmax: Tensor, **_: Any) -> Tensor:
        rows, places = (ops.reshape(value, (*value.shape[:axes], -1)) for value in (grad, argmax))
        return ops.reshape(ops.gather_d(rows, axes, places), argmax.shape)

    def gradient(x: Tensor, dy: Tensor, argmax: Tensor, **_: Any) -> Tensor:
        result: Tensor = _GRADIENTS(lambda x: at_maxima(x, x, argmax))(x, dy)[0]
        return result

    return gradient, at_maxima


_of_maxima, _at_maxima = _by_argmax(1)
_of_spatial_maxima, _ = _by_argmax(2)
MaxPoolGradWithArgmax = configured("MaxPoolGradWithArgmax", _of_maxima, **_POOL)
MaxPoolGradGradWithArgmax = configured(
    "MaxPoolGradGradWithArgmax", _at_maxima, kernel_size=1, strides=1, pad_mode="VALID"
)
MaxPoolGradWithArgmaxV2 = configured(
    "MaxPoolGradWithArgmaxV2", _of_spatial_maxima, kernel_size=REQUIRED, **_WITH_ARGMAX
)
MaxPool3DGradWithArgmax = configured(
    "MaxPool3DGradWithArgmax", _of_spatial_maxima, **({"ksize": REQUIRED} | _WITH_ARGMAX | {
        "strides": REQUIRED, "pads": REQUIRED, "dilation": (1, 1, 1), "data_format": "NCDHW"
    })
)


def _normalized(
    dy: Tensor, x: Tensor, scale: Tensor, mean: Tensor, variance: Tensor, reserve: Tensor, **settings: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `x`, the scale and the bias; in training the mean and variance are those of `x`."""
    del reserve
    normalize = ops.BatchNorm(**settings)
    gradients: tuple[Tensor, Tensor, Tensor] = _GRADIENTS(
        lambda x, scale, bias: normalize(x, scale, bias, ops.identity(mean), ops.identity(variance))[0]
    )(x, scale, ops.zeros_like(scale), dy)
    return gradients


BatchNormGrad = configured("BatchNormGrad", _normalized, is_training=False, epsilon=1e-5, data_format="NCHW")


def _convolved(x: Tensor, weight: Tensor, pad_list: Any, **settings: Any) -> Tensor:
    # As in MindSpore the size of the window is that of the weight, whatever the settings say.
    own = {"out_channel": int(weight.shape[0]), "kernel_size": tuple(map(int, weight.shape[2:]))}
    result: Tensor = ops.Conv2D(**settings | own)(x, weight)
    return result


Conv2DBackpropFilter = _of(
    "Conv2DBackpropFilter", "dy k s", _convolved, out_channel=REQUIRED,
    kernel_size=REQUIRED, pad_mode="valid", pad=0, pad_list=(0, 0, 0, 0), mode=1, stride=(1, 1),
    dilation=(1, 1, 1, 1), group=1, data_format="NCHW",
)
GridSampler2DGrad = _of("GridSampler2DGrad", "dy x x", _made(ops.GridSampler2D), **_SAMPLING)
GridSampler3DGrad = _of("GridSampler3DGrad", "dy x x", _made(ops.GridSampler3D), **_SAMPLING)
ResizeBicubicGrad = _of("ResizeBicubicGrad", "dy x size", _made(ops.ResizeBicubic), **_ALIGNED)
ResizeBilinearGrad = _of("ResizeBilinearGrad", "dy x size", _made(ops.ResizeBilinearV2), **_ALIGNED)
ResizeLinear1DGrad = _of(
    "ResizeLinear1DGrad", "dy x size", lambda x, size, **settings: ops.ResizeLinear1D(**settings)(x, size[0]),
    coordinate_transformation_mode="align_corners",
)
UpsampleNearest3DGrad = _of(
    "UpsampleNearest3DGrad", "dy s k k", lambda x, size=None, scales=None: ops.UpsampleNearest3D()(x, size, scales)
)
UpsampleTrilinear3DGrad = _of(
    "UpsampleTrilinear3DGrad", "dy s k k",
    lambda x, size=None, scales=None, align_corners=False: ops.UpsampleTrilinear3D(align_corners)(x, size, scales),
    align_corners=False,
)


def _position_sensitive(
    dy: Tensor, rois: Tensor, input_size: int | Sequence[int], output_dim: int, group_size: int, **settings: Any
) -> Tensor:
    sizes = (input_size, input_size) if isinstance(input_size, int) else tuple(input_size)
    expected = (rois.shape[0] * rois.shape[2], output_dim, group_size, group_size)
    if tuple(dy.shape) != expected:
        raise RuntimeError(str(checks.fail_value(
            "PSROIPoolingGrad", f"the gradient must have shape {expected}", tuple(dy.shape), f"ops.zeros({expected})"
        )))
    x = ops.zeros((rois.shape[0], output_dim * group_size**2, *sizes), dy.dtype)
    pool = ops.PSROIPooling(group_size=group_size, output_dim=output_dim, **settings)
    gradient: Tensor = _GRADIENTS(lambda x: pool(x, rois))(x, dy)[0]
    return gradient


PSROIPoolingGrad = configured(
    "PSROIPoolingGrad", _position_sensitive, input_size=REQUIRED, spatial_scale=REQUIRED, group_size=REQUIRED,
    output_dim=REQUIRED,
)
ROIAlignGrad = _of(
    "ROIAlignGrad", "dy k s", lambda rois, x, **settings: ops.ROIAlign(**settings)(x, rois), pooled_height=REQUIRED,
    pooled_width=REQUIRED, spatial_scale=REQUIRED, sample_num=2,
)


def _of_nearest(name: str) -> Any:
    def gradients(dy: Tensor, size: Sequence[int], **settings: Any) -> Tree:
        def output(x: Tensor) -> Tensor:
            return ops.ResizeNearestNeighborV2(**settings)(x, tuple(dy.shape[2:]))

        return _GRADIENTS(output)(ops.zeros((*dy.shape[:2], *map(int, size)), dy.dtype), dy)[0]

    return configured(name, gradients, **_ALIGNED)


ResizeNearestNeighborGrad = _of_nearest("ResizeNearestNeighborGrad")
ResizeNearestNeighborV2Grad = _of_nearest("ResizeNearestNeighborV2Grad")

serve_names(__name__)
