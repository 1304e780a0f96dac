"""Functions of layers with PyTorch's arguments: `mint.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mixtrain import checks, ops
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import float32
from mixtrain.lazy_names import serve_names
from mixtrain.mint.named import named, written
from mixtrain.ops import nhwc
from mixtrain.ops.conv_formula import transposed_convolve
from mixtrain.ops.inputs import as_floats
from mixtrain.ops.operator import operator
from mixtrain.ops.resampling import resampled
from mixtrain.ops.resize import new_sizes
from mixtrain.ops.volumes import sizes_of
from mixtrain.ops.windows import pad as pad_sides
from mixtrain.typing import TensorLike

_Function = Callable[..., Any]
_Sizes = int | Sequence[int]

_SAME: Final = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
cosine_embedding_loss cross_entropy fold gelu group_norm hardshrink hardsigmoid l1_loss layer_norm
max_unpool2d mse_loss nll_loss pixel_shuffle prelu selu sigmoid soft_margin_loss softplus softshrink tanh unfold
"""


def _unbatched(rank: int, compute: _Function, input: TensorLike, *args: Any) -> Any:
    """Return ``compute(input, *args)``, also of an input (C, *sizes) without a batch."""
    if input.ndim != rank + 1:
        return compute(input, *args)
    result = compute(ops.unsqueeze(input, 0), *args)
    return tuple(ops.squeeze(part, 0) for part in result) if isinstance(result, tuple) else ops.squeeze(result, 0)


def _convolution(rank: int) -> _Function:
    function = getattr(ops, f"conv{rank}d")

    def convolve(
        input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Any:
        mode, padding = (padding, 0) if isinstance(padding, str) else ("pad", padding)
        if mode == "same" and stride not in (1, (1,) * rank):
            raise ValueError(f"conv{rank}d: padding=\"same\" needs stride=1; got {stride}. Write padding=1.")
        return _unbatched(rank, function, input, weight, bias, stride, mode, padding, dilation, groups)

    return convolve


def _conv_transpose2d(
    input: TensorLike, weight: TensorLike, bias: TensorLike | None = None, stride: _Sizes = 1, padding: _Sizes = 0,
    output_padding: _Sizes = 0, groups: int = 1, dilation: _Sizes = 1,
) -> Any:
    where = "mint.nn.functional.conv_transpose2d"
    x, kernel = as_floats(where, input), as_floats(where, weight)
    steps, gaps = (sizes_of(where, "stride, dilation", value, 2) for value in (stride, dilation))
    pads, extra = (sizes_of(where, "padding", value, 2, at_least=0) for value in (padding, output_padding))
    for more, step, gap in zip(extra, steps, gaps, strict=True):
        if more >= max(step, gap):
            raise checks.fail_value(where, "output_padding must be less than stride or dilation", more, "stride=2")
    if len(x.shape) == 3:
        return _conv_transpose2d(x[None], weight, bias, stride, padding, output_padding, groups, dilation)[0]
    y = transposed_convolve(
        nhwc.to_channels_last(x), kernel, stride=steps, padding="valid", dilation=gaps, groups=groups
    )
    y = pad_sides(y, tuple((0, more) for more in extra))
    for axis in (0, 1):
        window = (kernel.shape[2 + axis] - 1) * gaps[axis] + 1
        size = (x.shape[2 + axis] - 1) * steps[axis] + window + extra[axis] - 2 * pads[axis]
        y = y[(slice(None),) * (axis + 1) + (slice(pads[axis], pads[axis] + size),)]
    return nhwc.from_channels_last(y if bias is None else y + as_floats(where, bias))


def _by_volumes(input: TensorLike, pool: _Function, windows: Sequence[Any], *args: Any) -> Any:
    """Pool images as volumes of depth 1, whose windows may be incomplete and dilated."""
    rows = zip(windows, (1, 1, 0, 1, 1), strict=False)
    sizes = [
        value if value is None or isinstance(value, bool) else (depth, *sizes_of("pool2d", "it", value, 2, at_least=0))
        for value, depth in rows
    ]
    result = pool(ops.unsqueeze(input, 2), *sizes, *args)
    return tuple(ops.squeeze(part, 2) for part in result) if isinstance(result, tuple) else ops.squeeze(result, 2)


def _max_pool(
    input: TensorLike, kernel_size: _Sizes, stride: _Sizes | None, padding: _Sizes, dilation: _Sizes, ceil_mode: bool,
    return_indices: bool,
) -> Any:
    if ceil_mode or dilation not in (1, (1, 1)):
        windows = (kernel_size, stride, padding, dilation)
        return _by_volumes(input, ops.max_pool3d, windows, ceil_mode, return_indices)
    return ops.max_pool2d(input, kernel_size, stride, padding, 1, return_indices)


def _avg_pool(rank: int) -> _Function:
    function = getattr(ops, f"avg_pool{rank}d")

    def pool(
        input: TensorLike, kernel_size: _Sizes, stride: _Sizes | None = None, padding: _Sizes = 0,
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
    ) -> Any:
        settings = (kernel_size, kernel_size if stride is None else stride, padding, ceil_mode, count_include_pad)
        if rank == 2 and ceil_mode:
            return _unbatched(2, _by_volumes, input, ops.avg_pool3d, settings, divisor_override or 0)
        more = () if rank == 1 else (divisor_override or 0,)
        return _unbatched(rank, function, input, *settings, *more)

    return pool


def _batch_norm(
    input: TensorLike, running_mean: Any, running_var: Any,
    weight: TensorLike | None = None, bias: TensorLike | None = None, training: bool = False, momentum: float = 0.1,
    eps: float = 1e-5,
) -> Any:
    if training and running_mean is not None and not isinstance(running_mean, Parameter):
        # `ops.batch_norm` updates Parameters; a plain Tensor is written to here.
        axes = (0, *range(2, input.ndim))
        for running, batch in ((running_mean, ops.mean(input, axes)), (running_var, ops.var(input, axes, 1))):
            written(running, ops.lerp(running, ops.cast(batch, running.dtype), momentum))
    return ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def _embedding(
    input: TensorLike, weight: Any, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False,
) -> Any:
    if scale_grad_by_freq:
        raise NotImplementedError("embedding: expected scale_grad_by_freq=False; got True. Write the default.")
    if max_norm is not None:  # The rows that are read are shortened first, and stay so.
        read = ops.ravel(input)
        used = ops.greater(Tensor.index_add(ops.zeros(weight.shape[0]), 0, read, ops.ones_like(read, dtype=float32)), 0)
        short = ops.renorm(ops.stop_gradient(weight), norm_type, 0, max_norm)
        written(weight, ops.where(ops.unsqueeze(used, -1), short, weight))
    rows = ops.gather(weight, input, 0)
    if padding_idx is None:
        return rows
    padding = ops.unsqueeze(ops.equal(input, padding_idx % weight.shape[0]), -1)
    return ops.where(padding, ops.stop_gradient(rows), rows)


def _pad(input: TensorLike, pad: Sequence[int], mode: Any = "constant", value: float | None = None) -> Any:
    if mode != "constant" and input.ndim - len(pad) // 2 not in (1, 2):
        raise checks.fail_value(
            "mint.nn.functional.pad", f"all axes after (N, C) must be padded with mode=\"{mode}\"", pad, "two for each"
        )
    sizes = [input.shape[-1 - n // 2] - (mode == "reflect") for n in range(len(pad))]
    if mode in ("reflect", "circular") and any(n > size for n, size in zip(pad, sizes, strict=True)):
        raise checks.fail_value("mint.nn.functional.pad", f"pad must be at most {sizes}", pad, "less")
    return ops.pad(input, pad, mode, value)


def _one_hot(tensor: Any, num_classes: int = -1) -> Any:
    classes = int(ops.amax(tensor)) + 1 if num_classes == -1 else num_classes
    return ops.one_hot(tensor, classes, ops.cast(1, "int64"), ops.cast(0, "int64"))


def _reduced(values: Any, reduction: str) -> Any:
    checks.one_of("mint.nn.functional", "reduction", reduction, ("none", "mean", "sum", "batchmean"))
    if reduction == "batchmean":
        return ops.div(ops.sum(values), values.shape[0])
    return values if reduction == "none" else ops.mean(values) if reduction == "mean" else ops.sum(values)


def _kl_div(input: TensorLike, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    if log_target:
        return _reduced(ops.mul(ops.exp(target), ops.sub(target, input)), reduction)
    return _reduced(ops.sub(ops.xlogy(target, target), ops.mul(target, input)), reduction)


def _smooth_l1(input: TensorLike, target: TensorLike, reduction: str = "mean", beta: float = 1.0) -> Any:
    if beta == 0:
        return ops.l1_loss(input, target, reduction)
    return ops.smooth_l1_loss(input, target, beta, reduction)


def _normalize(input: TensorLike, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Any:
    return ops.div(input, ops.clamp(ops.vector_norm(input, p, dim, True), eps))


def _interpolate(
    input: TensorLike, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
) -> Any:
    rank = input.ndim - 2
    scales = None if scale_factor is None or recompute_scale_factor else (
        tuple(scale_factor) if isinstance(scale_factor, (tuple, list)) else (float(scale_factor),) * rank
    )
    rows = zip(input.shape[2:], scales or (1,) * rank, strict=True)
    whole = all(float(old * by).is_integer() for old, by in rows)
    if mode == "bicubic" and rank == 2 or not whole and mode in _KINDS:
        return _resampled(input, size, scale_factor, scales, mode, bool(align_corners))
    return ops.interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


def _resample(input: TensorLike, size: Any, scale_factor: Any, scales: Any, mode: str, align_corners: bool) -> Any:
    """Resize by an exact cubic kernel, or by scales that the sizes round."""
    sizes = new_sizes("mint.nn.functional.interpolate", input, size, scale_factor)
    grid = "starts" if mode == "nearest" else "corners" if align_corners else "centers"
    return resampled(input, range(2, len(input.shape)), sizes, _KINDS[mode], grid, scales)


_KINDS: Final = {
    "nearest": "nearest", "linear": "linear", "bilinear": "linear", "trilinear": "linear", "bicubic": "exact_cubic",
}
_resampled: Final = operator("interpolate", _resample, owner="mint.nn.functional")


def _log_softmax(input: TensorLike, dim: int | None = None, *, dtype: Any = None) -> Any:
    x = input if dtype is None else ops.cast(input, dtype)
    return ops.log_softmax(x, _softmax_axis(x) if dim is None else dim)


def _softmax_axis(input: TensorLike) -> int:
    """Return the axis that PyTorch chooses where none is given."""
    return 0 if input.ndim in (0, 1, 3) else 1


def _stated(function: _Function) -> _Function:
    """Return an activation that writes its result to the input if `inplace` is True."""
    return lambda input, inplace=False: written(input, function(input)) if inplace else function(input)


def _dropout(function: _Function) -> _Function:
    def drop(input: TensorLike, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        if not 0 <= p <= 1:
            raise ValueError(f"dropout: p must be from 0 to 1; got {p}. Write p=0.5.")
        result = ops.zeros_like(input) if training and p == 1 else function(input, p, training)
        return written(input, result) if inplace else result

    return drop


_FUNCTIONS: Final[Mapping[str, _Function]] = {
    **{f"conv{rank}d": _convolution(rank) for rank in (1, 2, 3)},
    **{f"avg_pool{rank}d": _avg_pool(rank) for rank in (1, 2, 3)},
    "batch_norm": _batch_norm,
    "binary_cross_entropy": lambda input, target, weight=None, reduction="mean": ops.binary_cross_entropy(
        input, target, weight, reduction
    ),
    "binary_cross_entropy_with_logits": lambda input, target, weight=None, reduction="mean", pos_weight=None: (
        ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)
    ),
    "clamp": lambda input, min=None, max=None: ops.clamp(input, min, max),
    "conv_transpose2d": operator("conv2d_transpose", _conv_transpose2d, owner="mint.nn.functional"),
    "dropout": _dropout(ops.dropout),
    "dropout2d": _dropout(ops.dropout2d),
    "elu": lambda input, alpha=1.0, inplace=False: _stated(lambda x: ops.elu(x, alpha))(input, inplace),
    "elu_": lambda input, alpha=1.0: written(input, ops.elu(input, alpha)),
    "embedding": _embedding,
    "flatten": lambda input, start_dim=0, end_dim=-1: ops.flatten(input, start_dim=start_dim, end_dim=end_dim),
    "glu": lambda input, dim=-1: ops.glu(input, dim),
    "grid_sample": lambda input, grid, mode="bilinear", padding_mode="zeros", align_corners=None: ops.grid_sample(
        input, grid, mode, padding_mode, bool(align_corners)
    ),
    "hardswish": lambda input: ops.cast(ops.hardswish(input), input.dtype),
    "hardtanh": lambda input, min_val=-1.0, max_val=1.0, inplace=False: _stated(
        lambda x: ops.cast(ops.hardtanh(x, min_val, max_val), x.dtype)
    )(input, inplace),
    "hardtanh_": lambda input, min_val=-1, max_val=1: written(input, ops.hardtanh(input, min_val, max_val)),
    "interpolate": _interpolate,
    "kl_div": _kl_div,
    "leaky_relu": lambda input, negative_slope=0.01: ops.leaky_relu(input, negative_slope),
    "linear": lambda input, weight, bias=None: ops.dense(input, weight, bias),
    "log_softmax": _log_softmax,
    "logsigmoid": lambda input: ops.logsigmoid(input),
    "max_pool2d": lambda input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False,
    return_indices=False: _unbatched(
        2, _max_pool, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices
    ),
    "mish": lambda input: ops.mish(input),
    "normalize": _normalize,
    "one_hot": _one_hot,
    "pad": _pad,
    "relu": _stated(ops.relu),
    "relu_": lambda input: written(input, ops.relu(input)),
    "relu6": _stated(lambda x: ops.cast(ops.relu6(x), x.dtype)),
    "sigmoid_": lambda input: written(input, ops.sigmoid(input)),
    "silu": _stated(ops.silu),
    "smooth_l1_loss": _smooth_l1,
    "softmax": lambda input, dim=None, dtype=None: ops.softmax(
        input, _softmax_axis(input) if dim is None else dim, dtype=dtype
    ),
    "threshold": lambda input, threshold, value, inplace=False: _stated(lambda x: ops.threshold(x, threshold, value))(
        input, inplace
    ),
    "threshold_": lambda input, threshold, value: written(input, ops.threshold(input, threshold, value)),
    "upsample": lambda input, size=None, scale_factor=None, mode="nearest", align_corners=None: _interpolate(
        input, size, scale_factor, mode, align_corners
    ),
}
FUNCTIONS: Final = {name: getattr(ops, name) for name in _SAME.split()} | named("mint.nn.functional", _FUNCTIONS)
globals().update(FUNCTIONS)

__all__ = sorted(FUNCTIONS)

serve_names(__name__)
