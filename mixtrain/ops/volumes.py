"""Convolution, pooling and unpooling of sequences and volumes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, int32, int64
from mixtrain.ops import nhwc
from mixtrain.ops.adaptive import pool_to
from mixtrain.ops.conv_formula import convolve
from mixtrain.ops.elementwise import named
from mixtrain.ops.inputs import as_floats, rank_of, values_of, widened
from mixtrain.ops.pool_formula import padded_avg_pool, padded_max_pool
from mixtrain.ops.primitive import configured
from mixtrain.ops.windows import Pads, Window, ceil_padding, same_pads
from mixtrain.typing import DTypeLike, Tensor, TensorLike


def sizes_of(where: str, name: str, value: Any, rank: int, *, at_least: int = 1) -> Window:
    """Return an int, a tuple of `rank` ints or of 1, 1 and `rank` ints as a tuple of `rank` ints."""
    if backend.is_tensor(value):
        value = values_of(where, value).reshape(-1).tolist()
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank
    values = values[2:] if len(values) == rank + 2 else values * rank if len(values) == 1 else values
    if len(values) != rank:
        raise checks.fail_value(where, f"{name} must be an int or {rank} of them", value, f"{name}={(1,) * rank}")
    return tuple(checks.integer(where, name, item, at_least=at_least) for item in values)


def pads_from(where: str, padding: Any, rank: int) -> Pads:
    """Return padding, an int, one for each axis or one for each side, as a pair for each axis."""
    if isinstance(padding, (tuple, list)) and len(padding) == 2 * rank:
        sides = [checks.integer(where, "padding", side, at_least=0) for side in padding]
        return tuple(zip(sides[::2], sides[1::2], strict=True))
    return tuple((size, size) for size in sizes_of(where, "padding", padding, rank, at_least=0))


def _convolution(
    where: str, rank: int, input: TensorLike, weight: TensorLike, bias: TensorLike | None, settings: tuple[Any, ...]
) -> Tensor:
    stride, pad_mode, padding, dilation, groups = settings
    x, kernel = as_floats(where, input), as_floats(where, weight)
    if rank_of(x) != rank + 2:
        raise checks.fail_value(where, f"the input must have {rank + 2} axes", tuple(x.shape), "x (N, C, *sizes)")
    y = convolve(
        nhwc.to_channels_last(x), keras.ops.cast(kernel, x.dtype), stride=sizes_of(where, "stride", stride, rank),
        pad_mode=str(checks.one_of(where, "pad_mode", pad_mode.lower(), ("valid", "same", "pad"))),
        pads=pads_from(where, padding, rank), dilation=sizes_of(where, "dilation", dilation, rank),
        groups=checks.integer(where, "groups", groups, at_least=1),
    )
    return nhwc.from_channels_last(y if bias is None else y + keras.ops.cast(as_floats(where, bias), y.dtype))


def conv1d(
    input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: int | Sequence[int] = 1,
    pad_mode: str = "valid", padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
) -> Tensor:
    """Convolve sequences `input` (N, C, L) with `weight` (out, C / `groups`, width), and add `bias`.

    `stride`, `pad_mode`, `padding` and `dilation` are those of `conv2d`.
    """
    return _convolution("ops.conv1d", 1, input, weight, bias, (stride, pad_mode, padding, dilation, groups))


def conv3d(
    input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: int | Sequence[int] = 1,
    pad_mode: str = "valid", padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
) -> Tensor:
    """Convolve volumes `input` (N, C, D, H, W) with `weight` (out, C / `groups`, *kernel), and add `bias`.

    `stride`, `pad_mode`, `padding` and `dilation` are those of `conv2d`.
    """
    return _convolution("ops.conv3d", 3, input, weight, bias, (stride, pad_mode, padding, dilation, groups))


def _avg_pool(
    where: str, rank: int, x: TensorLike, kernel_size: int | Sequence[int], stride: int | Sequence[int],
    padding: int | Sequence[int], ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None, *, same: bool = False,
) -> Tensor:
    x = as_floats(where, x)
    kernel_size = sizes_of(where, "kernel_size", kernel_size, rank)
    stride = sizes_of(where, "stride", stride, rank)
    sides = same_pads(x.shape[2:], kernel_size, stride) if same else pads_from(where, padding, rank)
    ceil_sides = ceil_padding(x.shape[2:], kernel_size, stride, sides) if ceil_mode else ((0, 0),) * rank
    return nhwc.from_channels_last(padded_avg_pool(
        nhwc.to_channels_last(x), kernel_size, stride, sides, ceil_sides, include_pad=count_include_pad,
        divisor=divisor_override or None,
    ))


def avg_pool1d(
    input_x: TensorLike, kernel_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:
    """Average-pool sequences `input_x` (N, C, L).

    `kernel_size`, `stride`, `padding`, `ceil_mode` and `count_include_pad` are those of `avg_pool2d`.
    """
    return _avg_pool("ops.avg_pool1d", 1, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool3d(
    input_x: TensorLike, kernel_size: int | Sequence[int] = 1, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int = 0,
) -> Tensor:
    """Average-pool volumes `input_x` (N, C, D, H, W).

    `kernel_size`, `stride`, `padding`, `ceil_mode`, `count_include_pad` and `divisor_override` are those of
    `avg_pool2d`.
    """
    return _avg_pool(
        "ops.avg_pool3d", 3, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def max_pool3d(
    x: TensorLike, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Max-pool volumes `x` (N, C, D, H, W); `dilation` is the distance between the window's elements.

    `kernel_size`: an int or (depth, height, width); `stride`: None for `kernel_size`; `padding`, which is never the
    maximum; `ceil_mode`: whether a partial window at the end counts; `return_indices`: whether to return (output,
    indices), each the flat index in D * H * W of a maximum, int64.
    """
    return _max_pool("ops.max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _max_pool(
    where: str, rank: int, x: TensorLike, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None,
    padding: int | Sequence[int], dilation: int | Sequence[int], ceil_mode: bool, return_indices: bool,
) -> Tensor:
    """Return the maximum of each window of (N, C, *sizes), and with `return_indices` its flat index."""
    x, kernel_size = as_floats(where, x), sizes_of(where, "kernel_size", kernel_size, rank)
    stride = kernel_size if stride is None else sizes_of(where, "stride", stride, rank)
    dilation, sides = sizes_of(where, "dilation", dilation, rank), pads_from(where, padding, rank)
    dilated = tuple((size - 1) * gap + 1 for size, gap in zip(kernel_size, dilation, strict=True))
    ceil_sides = ceil_padding(x.shape[2:], dilated, stride, sides) if ceil_mode else ((0, 0),) * rank
    pooled = padded_max_pool(
        nhwc.to_channels_last(x), kernel_size, stride, dilation, sides, ceil_sides, return_indices=return_indices
    )
    return keras.tree.map_structure(nhwc.from_channels_last, pooled)


def _lp_pool(
    where: str, rank: int, x: TensorLike, norm_type: float, kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None, ceil_mode: bool,
) -> Tensor:
    x = as_floats(where, x)
    powers = keras.ops.power(widened(x), norm_type)
    kernel_size = sizes_of(where, "kernel_size", kernel_size, rank)
    stride = kernel_size if stride is None else stride
    # A divisor of 1 gives the sum of each window.
    sums = _avg_pool(where, rank, powers, kernel_size, stride, 0, ceil_mode, True, 1)
    roots = keras.ops.power(keras.ops.sign(sums) * keras.ops.relu(keras.ops.abs(sums)), 1 / norm_type)
    return keras.ops.cast(roots, x.dtype)


def lp_pool1d(
    x: TensorLike, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root of the sum of powers `norm_type` over each window of sequences `x`.

    `kernel_size`, `stride` and `ceil_mode` are those of `max_pool3d`.
    """
    if rank_of(x) == 2:
        return lp_pool1d(keras.ops.expand_dims(x, 0), norm_type, kernel_size, stride, ceil_mode)[0]
    return _lp_pool("ops.lp_pool1d", 1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    x: TensorLike, norm_type: float, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root of the sum of powers `norm_type` over each window of images `x`.

    `kernel_size`, `stride` and `ceil_mode` are those of `max_pool3d`.
    """
    return _lp_pool("ops.lp_pool2d", 2, x, norm_type, kernel_size, stride, ceil_mode)


def _adaptive(name: str, rank: int, inputs: str) -> Callable[..., Tensor]:
    reduce, values = (keras.ops.mean, "mean") if "avg" in name else (keras.ops.max, "maximum")

    def pool(input: TensorLike, output_size: int | Sequence[int | None], return_indices: bool = False) -> Tensor:
        x = as_floats(f"ops.{name}", input)
        if rank_of(x) == rank + 1:
            return keras.tree.map_structure(
                lambda y: y[0], pool(keras.ops.expand_dims(x, 0), output_size, return_indices)
            )
        sizes: tuple[Any, ...] = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * rank
        if rank_of(x) != rank + 2 or len(sizes) != rank:
            raise checks.fail_value(
                f"ops.{name}", f"input must have {rank + 2} axes and output_size a number or {rank}",
                (tuple(x.shape), sizes), f"output_size={(1,) * rank}",
            )
        sizes = tuple(size if new is None else new for new, size in zip(sizes, x.shape[2:], strict=True))
        if return_indices:
            return _adaptive_max_with_indices(x, sizes)
        return nhwc.from_channels_last(pool_to(nhwc.to_channels_last(x), sizes, reduce))

    return named(pool, name, (
        f"Pool {inputs} `input` to `output_size` by the {values} of each window; None keeps a size. "
        "`return_indices` adds the flat indices of the maxima."
    ))


def _adaptive_max_with_indices(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Max-pool (N, C, *sizes) to `output_size`; return the maxima and their flat indices, int64."""
    lengths = x.shape[2:]
    bounds = [[slice(i * old // new, -(-(i + 1) * old // new)) for i in range(new)]
              for old, new in zip(lengths, output_size, strict=True)]
    maxima, indices = [], []
    flat_indices = keras.ops.reshape(keras.ops.arange(math.prod(lengths)), lengths)
    for window in itertools.product(*bounds):
        values = keras.ops.reshape(x[(slice(None), slice(None), *window)], (*x.shape[:2], -1))
        argmax = keras.ops.argmax(values, axis=-1)
        maxima.append(keras.ops.take_along_axis(values, argmax[..., None], axis=-1)[..., 0])
        indices.append(keras.ops.take(keras.ops.reshape(flat_indices[window], (-1,)), argmax, axis=0))
    shape = (*x.shape[:2], *output_size)
    output, index = (keras.ops.reshape(keras.ops.stack(part, axis=-1), shape) for part in (maxima, indices))
    return output, backend.to_tensor(index, "int64")


adaptive_avg_pool1d = _adaptive("adaptive_avg_pool1d", 1, "sequences")
adaptive_avg_pool3d = _adaptive("adaptive_avg_pool3d", 3, "volumes")
adaptive_max_pool1d = _adaptive("adaptive_max_pool1d", 1, "sequences")
adaptive_max_pool2d = _adaptive("adaptive_max_pool2d", 2, "images")
adaptive_max_pool3d = _adaptive("adaptive_max_pool3d", 3, "volumes")


def _unpool(name: str, rank: int, inputs: str) -> Callable[..., Tensor]:
    def unpool(
        x: TensorLike, indices: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0, output_size: Sequence[int] | None = None,
    ) -> Tensor:
        where, value = f"ops.{name}", as_floats(f"ops.{name}", x)
        if rank_of(value) == rank + 1:
            return unpool(value[None], keras.ops.expand_dims(indices, 0), kernel_size, stride, padding, output_size)[0]
        kernel_size = sizes_of(where, "kernel_size", kernel_size, rank)
        stride = sizes_of(where, "stride", stride, rank) if stride else kernel_size
        padding = sizes_of(where, "padding", padding, rank, at_least=0)
        lengths = [
            (old - 1) * step - 2 * side + size
            for old, step, side, size in zip(value.shape[2:], stride, padding, kernel_size, strict=True)
        ]
        lengths = list(output_size)[-rank:] if output_size else lengths
        rows, length = math.prod(value.shape[:2]), math.prod(lengths)
        # `indices` count within one channel of one sample; add the start of each.
        flat = keras.ops.reshape(keras.ops.cast(indices, "int32"), (rows, -1))
        flat = flat + keras.ops.arange(rows, dtype="int32")[:, None] * length
        output = keras.ops.scatter(
            keras.ops.reshape(flat, (-1, 1)), keras.ops.reshape(value, (-1,)), (rows * length,)
        )
        return keras.ops.reshape(output, (*value.shape[:2], *lengths))

    return named(unpool, name, (
        f"The inverse of max pooling of {inputs}: `x` at the flat `indices`, zeros elsewhere. `kernel_size`, `stride` "
        "(None for `kernel_size`) and `padding` are those of the pooling; `output_size` overrides the size they give."
    ))


max_unpool1d = _unpool("max_unpool1d", 1, "sequences")
max_unpool2d = _unpool("max_unpool2d", 2, "images")
max_unpool3d = _unpool("max_unpool3d", 3, "volumes")


def _conv3d(x: Tensor, weight: Tensor, **settings: Any) -> Tensor:
    return conv3d(
        x, weight, None, settings["stride"], settings["pad_mode"], settings["pad"], settings["dilation"],
        settings["group"],
    )


def _max_pool3d(
    x: Tensor, *, kernel_size: int | Sequence[int], strides: int | Sequence[int], pad_mode: str,
    pad_list: int | Sequence[int], ceil_mode: Tensor, data_format: str,
) -> Tensor:
    kernel_size = sizes_of("MaxPool3D", "kernel_size", kernel_size, 3)
    strides = sizes_of("MaxPool3D", "strides", strides, 3)
    if pad_mode.lower() == "same":
        pad_list = list(itertools.chain(*same_pads(x.shape[2:], kernel_size, strides)))
    return max_pool3d(x, kernel_size, strides, pad_list, 1, bool(ceil_mode))


def _avg_pool3d(
    x: Tensor, *, kernel_size: int | Sequence[int], strides: int | Sequence[int], pad_mode: str,
    pad: int | Sequence[int], ceil_mode: bool, count_include_pad: bool, divisor_override: int, data_format: str,
) -> Tensor:
    return _avg_pool(
        "AvgPool3D", 3, x, kernel_size, strides, pad, ceil_mode, count_include_pad, divisor_override,
        same=pad_mode.lower() == "same",
    )


def _max_pool3d_with_argmax(
    x: Tensor, *, ksize: int | Sequence[int], strides: int | Sequence[int], pads: int | Sequence[int],
    dilation: int | Sequence[int], ceil_mode: bool,
) -> Tensor:
    return _max_pool("MaxPool3DWithArgmax", 3, x, ksize, strides, pads, dilation, ceil_mode, True)


def _max_pool2d_with_argmax(
    x: Tensor, *, kernel_size: int | Sequence[int], strides: int | Sequence[int], pads: int | Sequence[int],
    dilation: int | Sequence[int], ceil_mode: bool, argmax_type: DTypeLike,
) -> tuple[Tensor, Tensor]:
    where = "MaxPoolWithArgmaxV2"
    dtype = checks.one_of(where, "argmax_type", as_dtype(argmax_type), (int32, int64))
    values, indices = _max_pool(where, 2, x, kernel_size, strides, pads, dilation, ceil_mode, True)
    return values, keras.ops.cast(indices, backend.canonical_dtype(dtype))


Conv3D = configured(
    "Conv3D", _conv3d, out_channel=1, kernel_size=1, mode=1, pad_mode="valid", pad=0, stride=1, dilation=1, group=1,
    data_format="NCDHW",
)
MaxPool3D = configured(
    "MaxPool3D", _max_pool3d, kernel_size=1, strides=1, pad_mode="VALID", pad_list=0, ceil_mode=None,
    data_format="NCDHW",
)
AvgPool3D = configured(
    "AvgPool3D", _avg_pool3d, kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False,
    count_include_pad=True, divisor_override=0, data_format="NCDHW",
)
MaxPool3DWithArgmax = configured(
    "MaxPool3DWithArgmax", _max_pool3d_with_argmax, ksize=1, strides=1, pads=0, dilation=(1, 1, 1), ceil_mode=False
)
MaxPoolWithArgmaxV2 = configured(
    "MaxPoolWithArgmaxV2", _max_pool2d_with_argmax, kernel_size=1, strides=None, pads=0, dilation=(1, 1),
    ceil_mode=False, argmax_type=int64,
)
AdaptiveAvgPool2D = configured("AdaptiveAvgPool2D", _adaptive("adaptive_avg_pool2d", 2, "images"), output_size=1)
AdaptiveAvgPool3D = configured("AdaptiveAvgPool3D", adaptive_avg_pool3d, output_size=1)
MaxUnpool2D = configured(
    "MaxUnpool2D", lambda x, indices, *, ksize, strides, pads, output_shape, data_format: max_unpool2d(
        x, indices, ksize, strides or None, pads, output_shape or None
    ), ksize=1, strides=0, pads=0, output_shape=(), data_format="NCHW",
)
MaxUnpool3D = configured(
    "MaxUnpool3D", lambda x, indices, *, ksize, strides, pads, output_shape, data_format: max_unpool3d(
        x, indices, ksize, strides or None, pads, output_shape or None
    ), ksize=1, strides=0, pads=0, output_shape=(), data_format="NCDHW",
)
