"""Windows over sequences and volumes: convolutions, poolings of one axis or three, and what undoes them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

from mixtrain import backend, checks
from mixtrain.ops.adaptive import pool_to
from mixtrain.ops.conv_formula import convolve
from mixtrain.ops.inputs import as_floats, rank_of, values_of
from mixtrain.ops.pool_formula import largest, means
from mixtrain.ops.primitive import configured
from mixtrain.ops.windows import Sides, Window, pad, same_sides


def sizes_of(where: str, name: str, value: Any, rank: int, *, at_least: int = 1) -> Window:
    """Return an int, `rank` of them or these after two ones, as a tuple of `rank` ints."""
    if backend.is_tensor(value):
        value = values_of(where, value).reshape(-1).tolist()
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank
    values = values[2:] if len(values) == rank + 2 else values * rank if len(values) == 1 else values
    if len(values) != rank:
        raise checks.fail_value(where, f"{name} must be an int or {rank} of them", value, f"{name}={(1,) * rank}")
    return tuple(checks.integer(where, name, one, at_least=at_least) for one in values)


def around_of(where: str, padding: Any, rank: int) -> Sides:
    """Return padding, an int, one for each axis or one for each side, as a pair for each axis."""
    if isinstance(padding, (tuple, list)) and len(padding) == 2 * rank:
        each = [checks.integer(where, "padding", one, at_least=0) for one in padding]
        return tuple(zip(each[::2], each[1::2], strict=True))
    return tuple((one, one) for one in sizes_of(where, "padding", padding, rank, at_least=0))


def to_last(x: Any) -> Any:
    """Return a channels-first tensor channels last."""
    return keras.ops.moveaxis(x, 1, -1)


def to_first(x: Any) -> Any:
    """Return a channels-last tensor channels first."""
    return keras.ops.moveaxis(x, -1, 1)


def window_parts(x: Any, size: Window, step: Window, gap: Window) -> list[Any]:
    """Return, for each place in a window, the elements that all windows have there; `x` is (N, C, *sizes)."""
    counts = [
        (length - (reach - 1) * apart - 1) // one + 1
        for length, reach, one, apart in zip(x.shape[2:], size, step, gap, strict=True)
    ]
    return [
        x[(slice(None), slice(None), *(
            slice(place * apart, place * apart + (count - 1) * one + 1, one)
            for place, count, one, apart in zip(places, counts, step, gap, strict=True)
        ))]
        for places in itertools.product(*map(range, size))
    ]


def overrun(lengths: Sequence[int], reach: Window, step: Window, around: Sides, ceil_mode: bool) -> Sides:
    """Return how far the last, partial window of `ceil_mode` goes beyond the padding."""
    found = []
    for length, span, one, (before, after) in zip(lengths, reach, step, around, strict=True):
        last = -(-(length + before + after - span) // one) * one
        last -= one if last >= length + before else 0
        found.append((0, max(last + span - length - before - after, 0) if ceil_mode else 0))
    return tuple(found)


def _convolution(where: str, rank: int, input: Any, weight: Any, bias: Any, settings: tuple[Any, ...]) -> Any:
    stride, pad_mode, padding, dilation, groups = settings
    x, kernel = as_floats(where, input), as_floats(where, weight)
    if rank_of(x) != rank + 2:
        raise checks.fail_value(where, f"the input must have {rank + 2} axes", tuple(x.shape), "x (N, C, *sizes)")
    y = convolve(
        to_last(x), keras.ops.cast(kernel, x.dtype), stride=sizes_of(where, "stride", stride, rank),
        pad_mode=str(checks.one_of(where, "pad_mode", pad_mode.lower(), ("valid", "same", "pad"))),
        around=around_of(where, padding, rank), dilation=sizes_of(where, "dilation", dilation, rank),
        groups=checks.integer(where, "groups", groups, at_least=1),
    )
    return to_first(y if bias is None else y + keras.ops.cast(as_floats(where, bias), y.dtype))


def conv1d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:
    """Slide `weight` (out, C / `groups`, width) over sequences `input` (N, C, L), and add `bias`.

    `stride`, `pad_mode`, `padding` and `dilation` are those of `conv2d`. Source: MindSpore, `mindspore.ops.conv1d`.
    """
    return _convolution("ops.conv1d", 1, input, weight, bias, (stride, pad_mode, padding, dilation, groups))


def conv3d(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, pad_mode: str = "valid", padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:
    """Slide `weight` (out, C / `groups`, depth, height, width) over volumes `input` (N, C, D, H, W), and add `bias`.

    `stride`, `pad_mode`, `padding` and `dilation` are those of `conv2d`. Source: MindSpore, `mindspore.ops.conv3d`.
    """
    return _convolution("ops.conv3d", 3, input, weight, bias, (stride, pad_mode, padding, dilation, groups))


def _averages(
    where: str, rank: int, x: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None, *, same: bool = False,
) -> Any:
    x = as_floats(where, x)
    size, step = sizes_of(where, "kernel_size", kernel_size, rank), sizes_of(where, "stride", stride, rank)
    around = same_sides(x.shape[2:], size, step) if same else around_of(where, padding, rank)
    beyond = overrun(x.shape[2:], size, step, around, bool(ceil_mode))
    last = to_last(x)
    found = means(pad(pad(last, around), beyond), size, step)
    if divisor_override:
        return to_first(found * (math.prod(size) / divisor_override))
    if any(map(any, beyond)) or not count_include_pad:
        whole = 1.0 if count_include_pad else 0.0
        counted = pad(keras.ops.ones_like(last[:1, ..., :1]), around, whole)
        found = found / means(pad(counted, beyond), size, step)
    return to_first(found)


def avg_pool1d(
    input_x: Any, kernel_size: Any = 1, stride: Any = 1, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Any:
    """The mean of each window of sequences `input_x` (N, C, L).

    `kernel_size`, `stride`, `padding`, `ceil_mode` and `count_include_pad` are those of `avg_pool2d`.
    Source: MindSpore, `mindspore.ops.avg_pool1d`.
    """
    return _averages("ops.avg_pool1d", 1, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool3d(
    input_x: Any, kernel_size: Any = 1, stride: Any = 1, padding: Any = 0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int = 0,
) -> Any:
    """The mean of each window of volumes `input_x` (N, C, D, H, W).

    `kernel_size`, `stride`, `padding`, `ceil_mode`, `count_include_pad` and `divisor_override` are those of
    `avg_pool2d`. Source: MindSpore, `mindspore.ops.avg_pool3d`.
    """
    return _averages(
        "ops.avg_pool3d", 3, input_x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def max_pool3d(
    x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest number of each window of volumes `x` (N, C, D, H, W).

    Args:
        x: Volumes.
        kernel_size: Window: an int or (depth, height, width).
        stride: Step of the window; None for its size.
        padding: Padding, which never wins.
        dilation: Distance between the window's elements.
        ceil_mode: Whether a partial window at the end counts.
        return_indices: Whether to return (output, indices), each the place in D * H * W of a maximum, int64.

    Source: MindSpore, `mindspore.ops.max_pool3d`.
    """
    return max_pool_nd("ops.max_pool3d", 3, x, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool_nd(
    where: str, rank: int, x: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
    return_indices: bool,
) -> Any:
    """Return the largest number of each window of (N, C, *sizes), and with `return_indices` its place."""
    x, size = as_floats(where, x), sizes_of(where, "kernel_size", kernel_size, rank)
    step = size if stride is None else sizes_of(where, "stride", stride, rank)
    gap, around = sizes_of(where, "dilation", dilation, rank), around_of(where, padding, rank)
    reach = tuple((one - 1) * apart + 1 for one, apart in zip(size, gap, strict=True))
    beyond = overrun(x.shape[2:], reach, step, around, bool(ceil_mode))
    last = to_last(x)
    if not return_indices and max(gap) == 1:
        return to_first(largest(pad(pad(last, around, -math.inf), beyond, -math.inf), size, step))
    wide = to_first(pad(pad(last, around, -math.inf), beyond, -math.inf))
    values = keras.ops.stack(window_parts(wide, size, step, gap), axis=-1)
    best = keras.ops.argmax(values, axis=-1)[..., None]
    found = keras.ops.take_along_axis(values, best, axis=-1)[..., 0]
    if not return_indices:
        return found
    places = keras.ops.reshape(keras.ops.arange(math.prod(x.shape[2:])), (1, *x.shape[2:], 1))
    places = to_first(pad(pad(places, around, -1), beyond, -1))
    table = keras.ops.stack(window_parts(places, size, step, gap), axis=-1)
    table = keras.ops.broadcast_to(table, values.shape)
    return found, backend.to_tensor(keras.ops.take_along_axis(table, best, axis=-1)[..., 0], "int64")


def _lp_pool(where: str, rank: int, x: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    value, size = as_floats(where, x), sizes_of(where, "kernel_size", kernel_size, rank)
    powers = keras.ops.power(value, norm_type)
    sums = _averages(where, rank, powers, size, size if stride is None else stride, 0, ceil_mode, True, 1)
    return keras.ops.power(keras.ops.sign(sums) * keras.ops.relu(keras.ops.abs(sums)), 1 / norm_type)


def lp_pool1d(x: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The root of the sum of powers `norm_type` over each window of sequences `x`.

    `kernel_size`, `stride` and `ceil_mode` are those of `max_pool3d`. Source: MindSpore, `mindspore.ops.lp_pool1d`.
    """
    if rank_of(x) == 2:
        return lp_pool1d(keras.ops.expand_dims(x, 0), norm_type, kernel_size, stride, ceil_mode)[0]
    return _lp_pool("ops.lp_pool1d", 1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(x: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The root of the sum of powers `norm_type` over each window of images `x`.

    `kernel_size`, `stride` and `ceil_mode` are those of `max_pool3d`. Source: MindSpore, `mindspore.ops.lp_pool2d`.
    """
    return _lp_pool("ops.lp_pool2d", 2, x, norm_type, kernel_size, stride, ceil_mode)


def _adaptive(name: str, rank: int, of: str) -> Callable[..., Any]:
    reduce = keras.ops.mean if "avg" in name else keras.ops.max

    def pool(input: Any, output_size: Any, return_indices: bool = False) -> Any:
        x = as_floats(f"ops.{name}", input)
        if rank_of(x) == rank + 1:
            return keras.tree.map_structure(
                lambda y: y[0], pool(keras.ops.expand_dims(x, 0), output_size, return_indices)
            )
        given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * rank
        sizes = [old if new is None else new for new, old in zip(given, x.shape[2:], strict=True)]
        if return_indices:
            return adaptive_places(x, sizes)
        return to_first(pool_to(to_last(x), sizes, reduce))

    says = "means" if "avg" in name else "largest numbers"
    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = (
        f"The {says} of as many windows of {of} `input` as `output_size` has places; None keeps a size. "
        f"`return_indices` adds the places of the largest. Source: MindSpore, `mindspore.ops.{name}`."
    )
    return pool


def adaptive_places(x: Any, sizes: Sequence[int]) -> tuple[Any, Any]:
    """Return the largest numbers of as many windows as `sizes` says, and their places, int64."""
    lengths = x.shape[2:]
    edges = [[(n * old // new, -(-(n + 1) * old // new)) for n in range(new)]
             for old, new in zip(lengths, sizes, strict=True)]
    values, places = [], []
    order = keras.ops.reshape(keras.ops.arange(math.prod(lengths)), lengths)
    for window in itertools.product(*edges):
        cut = tuple(slice(*edge) for edge in window)
        part = keras.ops.reshape(x[(slice(None), slice(None), *cut)], (*x.shape[:2], -1))
        best = keras.ops.argmax(part, axis=-1)
        values.append(keras.ops.take_along_axis(part, best[..., None], axis=-1)[..., 0])
        places.append(keras.ops.take(keras.ops.reshape(order[cut], (-1,)), best, axis=0))
    shape = (*x.shape[:2], *sizes)
    found, where = (keras.ops.reshape(keras.ops.stack(one, axis=-1), shape) for one in (values, places))
    return found, backend.to_tensor(where, "int64")


adaptive_avg_pool1d: Final = _adaptive("adaptive_avg_pool1d", 1, "sequences")
adaptive_avg_pool3d: Final = _adaptive("adaptive_avg_pool3d", 3, "volumes")
adaptive_max_pool1d: Final = _adaptive("adaptive_max_pool1d", 1, "sequences")
adaptive_max_pool2d: Final = _adaptive("adaptive_max_pool2d", 2, "images")
adaptive_max_pool3d: Final = _adaptive("adaptive_max_pool3d", 3, "volumes")


def _unpool(name: str, rank: int, of: str) -> Callable[..., Any]:
    def unpool(
        x: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Any:
        where, value = f"ops.{name}", as_floats(f"ops.{name}", x)
        if rank_of(value) == rank + 1:
            return unpool(value[None], keras.ops.expand_dims(indices, 0), kernel_size, stride, padding, output_size)[0]
        size = sizes_of(where, "kernel_size", kernel_size, rank)
        step = sizes_of(where, "stride", stride, rank) if stride else size
        around = sizes_of(where, "padding", padding, rank, at_least=0)
        lengths = [
            (old - 1) * one - 2 * sides + reach
            for old, one, sides, reach in zip(value.shape[2:], step, around, size, strict=True)
        ]
        lengths = list(output_size)[-rank:] if output_size else lengths
        rows, flat = math.prod(value.shape[:2]), math.prod(lengths)
        places = keras.ops.reshape(keras.ops.cast(indices, "int32"), (rows, -1))
        places = places + keras.ops.arange(rows, dtype="int32")[:, None] * flat
        filled = keras.ops.scatter(
            keras.ops.reshape(places, (-1, 1)), keras.ops.reshape(value, (-1,)), (rows * flat,)
        )
        return keras.ops.reshape(filled, (*value.shape[:2], *lengths))

    unpool.__name__ = unpool.__qualname__ = name
    unpool.__doc__ = (
        f"The inverse of max pooling of {of}: `x` at the places `indices`, zeros elsewhere. `kernel_size`, `stride` "
        "(None for that size) and `padding` are the pooling's; `output_size` overrides the size that they give. "
        f"Source: MindSpore, `mindspore.ops.{name}`."
    )
    return unpool


max_unpool1d: Final = _unpool("max_unpool1d", 1, "sequences")
max_unpool2d: Final = _unpool("max_unpool2d", 2, "images")
max_unpool3d: Final = _unpool("max_unpool3d", 3, "volumes")


def _conv3d(x: Any, weight: Any, **settings: Any) -> Any:
    return conv3d(
        x, weight, None, settings["stride"], settings["pad_mode"], settings["pad"], settings["dilation"],
        settings["group"],
    )


def _max_pool3d(
    x: Any, *, kernel_size: Any, strides: Any, pad_mode: str, pad_list: Any, ceil_mode: Any, data_format: str
) -> Any:
    size, step = sizes_of("MaxPool3D", "kernel_size", kernel_size, 3), sizes_of("MaxPool3D", "strides", strides, 3)
    around: Any = tuple(pad_list) if isinstance(pad_list, (tuple, list)) else pad_list
    if pad_mode.lower() == "same":
        around = tuple(side for pair in same_sides(x.shape[2:], size, step) for side in pair)
    return max_pool3d(x, size, step, around, 1, bool(ceil_mode))


def _avg_pool3d(
    x: Any, *, kernel_size: Any, strides: Any, pad_mode: str, pad: Any, ceil_mode: bool, count_include_pad: bool,
    divisor_override: int, data_format: str,
) -> Any:
    return _averages(
        "AvgPool3D", 3, x, kernel_size, strides, pad, ceil_mode, count_include_pad, divisor_override,
        same=pad_mode.lower() == "same",
    )


def _pool_with_places(rank: int, name: str) -> Callable[..., Any]:
    def pool(x: Any, *, dilation: Any = 1, ceil_mode: bool = False, **named: Any) -> Any:
        named = {key.replace("ksize", "kernel_size"): value for key, value in named.items()}
        return max_pool_nd(
            name, rank, x, named["kernel_size"], named["strides"], named["pads"], dilation, ceil_mode, True
        )

    return pool


Conv3D: Final = configured(
    "Conv3D", _conv3d, out_channel=1, kernel_size=1, mode=1, pad_mode="valid", pad=0, stride=1, dilation=1, group=1,
    data_format="NCDHW",
)
MaxPool3D: Final = configured(
    "MaxPool3D", _max_pool3d, kernel_size=1, strides=1, pad_mode="VALID", pad_list=0, ceil_mode=None,
    data_format="NCDHW",
)
AvgPool3D: Final = configured(
    "AvgPool3D", _avg_pool3d, kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False,
    count_include_pad=True, divisor_override=0, data_format="NCDHW",
)
MaxPool3DWithArgmax: Final = configured(
    "MaxPool3DWithArgmax", _pool_with_places(3, "MaxPool3DWithArgmax"), ksize=1, strides=1, pads=0,
    dilation=(1, 1, 1), ceil_mode=False,
)
MaxPoolWithArgmaxV2: Final = configured(
    "MaxPoolWithArgmaxV2", _pool_with_places(2, "MaxPoolWithArgmaxV2"), kernel_size=1, strides=None, pads=0,
    dilation=(1, 1), ceil_mode=False,
)
AdaptiveAvgPool2D: Final = configured(
    "AdaptiveAvgPool2D", _adaptive("adaptive_avg_pool2d", 2, "images"), output_size=1
)
AdaptiveAvgPool3D: Final = configured("AdaptiveAvgPool3D", adaptive_avg_pool3d, output_size=1)
MaxUnpool2D: Final = configured(
    "MaxUnpool2D", lambda x, places, *, ksize, strides, pads, output_shape, data_format: max_unpool2d(
        x, places, ksize, strides or None, pads, output_shape or None
    ), ksize=1, strides=0, pads=0, output_shape=(), data_format="NCHW",
)
MaxUnpool3D: Final = configured(
    "MaxUnpool3D", lambda x, places, *, ksize, strides, pads, output_shape, data_format: max_unpool3d(
        x, places, ksize, strides or None, pads, output_shape or None
    ), ksize=1, strides=0, pads=0, output_shape=(), data_format="NCDHW",
)
