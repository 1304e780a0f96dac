"""The primitives of `_grad_ops` that are derivatives of pools, convolutions, normalizations of images and samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from mixtrain import checks, ops
from mixtrain.dtype import int64
from mixtrain.lazy_names import serve_names
from mixtrain.ops.deformable import deformable_offsets
from mixtrain.ops.derivative_primitives import GRADIENTS, gradients_of, made
from mixtrain.ops.fractional_pool import maxima, means
from mixtrain.ops.inputs import sizes_of
from mixtrain.ops.primitive import REQUIRED, as_primitive, configured
from mixtrain.typing import DTypeLike, Tensor, Tree

_POOL: Final = {"kernel_size": 1, "strides": 1, "pad_mode": "VALID", "data_format": "NCHW"}
_SAMPLING: Final = {"interpolation_mode": "bilinear", "padding_mode": "zeros", "align_corners": False}
_ALIGNED: Final = {"align_corners": False, "half_pixel_centers": False}
AdaptiveAvgPool2DGrad = gradients_of("AdaptiveAvgPool2DGrad", "dy s size", ops.adaptive_avg_pool2d)
AdaptiveAvgPool3DGrad = gradients_of("AdaptiveAvgPool3DGrad", "dy s size", ops.adaptive_avg_pool3d)
AvgPoolGrad = gradients_of("AvgPoolGrad", "x - dy", made(ops.AvgPool), **_POOL)
MaxPoolGrad = gradients_of("MaxPoolGrad", "x - dy", made(ops.MaxPool), **_POOL)
MaxPool3DGrad = gradients_of(
    "MaxPool3DGrad", "x - dy", made(ops.MaxPool3D), kernel_size=1, strides=1,
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
        result: Tensor = GRADIENTS(lambda x: at_maxima(x, x, argmax))(x, dy)[0]
        return result

    return gradient, at_maxima


_of_maxima, _at_maxima = _by_argmax(1)
_of_spatial_maxima, _ = _by_argmax(2)
FractionalMaxPoolGradWithFixedKsize = configured(
    "FractionalMaxPoolGradWithFixedKsize", _of_spatial_maxima, data_format="NCHW"
)
FractionalMaxPool3DGradWithFixedKsize = configured(
    "FractionalMaxPool3DGradWithFixedKsize", _of_spatial_maxima, data_format="NCDHW"
)


@as_primitive
def FractionalMaxPoolGrad(
    orig_input: Tensor, orig_output: Tensor, out_backprop: Tensor, row_pooling_sequence: Tensor,
    col_pooling_sequence: Tensor, *, overlapping: bool = False,
) -> Tensor:
    """Return the gradient at the maxima of groups of rows and columns."""
    bounds = (row_pooling_sequence, col_pooling_sequence, overlapping)
    gradient: Tensor = GRADIENTS(lambda x: maxima(x, *bounds))(orig_input, out_backprop)[0]
    return gradient


@as_primitive
def FractionalAvgPoolGrad(
    orig_input_tensor_shape: Tensor, out_backprop: Tensor, row_pooling_sequence: Tensor, col_pooling_sequence: Tensor,
    *, overlapping: bool = False,
) -> Tensor:
    """Return the gradient of the means of groups of rows and columns, of an input of a shape."""
    x = ops.zeros(sizes_of("FractionalAvgPoolGrad", orig_input_tensor_shape), out_backprop.dtype)
    bounds = (row_pooling_sequence, col_pooling_sequence, overlapping)
    gradient: Tensor = GRADIENTS(lambda x: means(x, *bounds))(x, out_backprop)[0]
    return gradient


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
    gradients: tuple[Tensor, Tensor, Tensor] = GRADIENTS(
        lambda x, scale, bias: normalize(x, scale, bias, ops.identity(mean), ops.identity(variance))[0]
    )(x, scale, ops.zeros_like(scale), dy)
    return gradients


def _normalized_twice(
    x: Tensor, dy: Tensor, scale: Tensor, mean: Tensor, variance: Tensor, d_dx: Tensor, d_dscale: Tensor,
    d_dbias: Tensor, **settings: Any,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `_normalized` by its `x`, `dy` and scale."""
    result: tuple[Tensor, Tensor, Tensor] = GRADIENTS(
        lambda x, dy, scale: _normalized(dy, x, scale, mean, variance, scale, **settings)
    )(x, dy, scale, (d_dx, d_dscale, d_dbias))
    return result


_OF_BATCH: Final = {"is_training": False, "epsilon": 1e-5, "data_format": "NCHW"}
BatchNormGrad = configured("BatchNormGrad", _normalized, **_OF_BATCH)
BatchNormGradGrad = configured("BatchNormGradGrad", _normalized_twice, **_OF_BATCH)


@as_primitive
def InstanceNormV2Grad(
    dy: Tensor, x: Tensor, gamma: Tensor, mean: Tensor, variance: Tensor, save_mean: Tensor, save_variance: Tensor, *,
    is_training: bool = True, epsilon: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `x`, gamma and beta; `save_variance` is the reciprocal of a standard deviation."""
    scale = save_variance if is_training else ops.rsqrt(variance + epsilon)
    normal = (x - (save_mean if is_training else mean)) * scale
    of_gamma, of_beta = ops.sum(dy * normal, (2, 3), True), ops.sum(dy, (2, 3), True)
    if is_training:
        dy = dy - (of_beta + normal * of_gamma) / (x.shape[2] * x.shape[3])
    return dy * gamma * scale, of_gamma, of_beta


def _convolution(convolution: Any) -> Callable[..., Tensor]:
    def convolved(x: Tensor, weight: Tensor, pad_list: Any = None, **settings: Any) -> Tensor:
        # As in MindSpore the size of the window is that of the weight, whatever the settings say.
        spatial = weight.ndim - 2
        own = {"out_channel": int(weight.shape[0]), "kernel_size": tuple(map(int, weight.shape[2:]))}
        steps = {key: settings[key] for key in ("stride", "dilation") if isinstance(settings[key], tuple)}
        own |= {key: value[-spatial:] for key, value in steps.items()}
        result: Tensor = convolution(**settings | own)(x, weight)
        return result

    return convolved


Conv2DBackpropFilter = gradients_of(
    "Conv2DBackpropFilter", "dy k s", _convolution(ops.Conv2D), out_channel=REQUIRED,
    kernel_size=REQUIRED, pad_mode="valid", pad=0, pad_list=(0, 0, 0, 0), mode=1, stride=(1, 1),
    dilation=(1, 1, 1, 1), group=1, data_format="NCHW",
)
_OF_VOLUMES: Final = {
    "out_channel": REQUIRED, "kernel_size": REQUIRED, "mode": 1, "pad_mode": "valid", "pad": 0, "stride": 1,
    "dilation": 1, "group": 1, "data_format": "NCDHW",
}
Conv3DBackpropFilter = gradients_of("Conv3DBackpropFilter", "k dy s", _convolution(ops.Conv3D), **_OF_VOLUMES)
Conv3DBackpropInput = gradients_of(
    "Conv3DBackpropInput", "k dy s", lambda weight, x, **settings: _convolution(ops.Conv3D)(x, weight, **settings),
    **_OF_VOLUMES,
)
DeformableOffsetsGrad = gradients_of(
    "DeformableOffsetsGrad", "dy x x", deformable_offsets, strides=REQUIRED, pads=REQUIRED, kernel_size=REQUIRED,
    dilations=(1, 1, 1, 1), data_format="NCHW", deformable_groups=1, modulated=True,
)
CropAndResizeGradBoxes = configured(
    "CropAndResizeGradBoxes",
    lambda dy, images, boxes, box_index, method: GRADIENTS(
        lambda boxes: ops.crop_and_resize(images, boxes, box_index, tuple(dy.shape[1:3]), method)
    )(boxes, dy)[0], method="bilinear",
)


@as_primitive
def CropAndResizeGradImage(
    grads: Tensor, boxes: Tensor, box_index: Tensor, image_size: Tensor, *, T: DTypeLike, method: str = "bilinear"
) -> Tensor:
    """Return the gradient of images of the shape `image_size`, in the dtype `T`."""
    images = ops.zeros(sizes_of("CropAndResizeGradImage", image_size), T)
    gradient: Tensor = GRADIENTS(
        lambda images: ops.crop_and_resize(images, boxes, box_index, tuple(grads.shape[1:3]), method)
    )(images, ops.cast(grads, T))[0]
    return gradient


GridSampler2DGrad = gradients_of("GridSampler2DGrad", "dy x x", made(ops.GridSampler2D), **_SAMPLING)
GridSampler3DGrad = gradients_of("GridSampler3DGrad", "dy x x", made(ops.GridSampler3D), **_SAMPLING)
ResizeBicubicGrad = gradients_of("ResizeBicubicGrad", "dy x size", made(ops.ResizeBicubic), **_ALIGNED)
ResizeBilinearGrad = gradients_of("ResizeBilinearGrad", "dy x size", made(ops.ResizeBilinearV2), **_ALIGNED)
ResizeLinear1DGrad = gradients_of(
    "ResizeLinear1DGrad", "dy x size", lambda x, size, **settings: ops.ResizeLinear1D(**settings)(x, size[0]),
    coordinate_transformation_mode="align_corners",
)
UpsampleNearest3DGrad = gradients_of(
    "UpsampleNearest3DGrad", "dy s k k", lambda x, size=None, scales=None: ops.UpsampleNearest3D()(x, size, scales)
)
UpsampleTrilinear3DGrad = gradients_of(
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
    gradient: Tensor = GRADIENTS(lambda x: pool(x, rois))(x, dy)[0]
    return gradient


PSROIPoolingGrad = configured(
    "PSROIPoolingGrad", _position_sensitive, input_size=REQUIRED, spatial_scale=REQUIRED, group_size=REQUIRED,
    output_dim=REQUIRED,
)
ROIAlignGrad = gradients_of(
    "ROIAlignGrad", "dy k s", lambda rois, x, **settings: ops.ROIAlign(**settings)(x, rois), pooled_height=REQUIRED,
    pooled_width=REQUIRED, spatial_scale=REQUIRED, sample_num=2,
)


def _of_nearest(name: str) -> Any:
    def gradients(dy: Tensor, size: Sequence[int], **settings: Any) -> Tree:
        def output(x: Tensor) -> Tensor:
            return ops.ResizeNearestNeighborV2(**settings)(x, tuple(dy.shape[2:]))

        return GRADIENTS(output)(ops.zeros((*dy.shape[:2], *map(int, size)), dy.dtype), dy)[0]

    return configured(name, gradients, **_ALIGNED)


ResizeNearestNeighborGrad = _of_nearest("ResizeNearestNeighborGrad")
ResizeNearestNeighborV2Grad = _of_nearest("ResizeNearestNeighborV2Grad")

serve_names(__name__)
