"""Cells with parameters that have PyTorch's names, defaults and initial values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.cell.tree import name_of
from mixtrain.common.initializer import HeUniform, InitializerLike, Normal, Uniform, fans, initializer
from mixtrain.common.parameter import Parameter
from mixtrain.dtype import as_dtype, float32, int64, is_half
from mixtrain.mint.nn.functional import FUNCTIONS
from mixtrain.nn.layer.dense import Dense
from mixtrain.nn.layer.dropout import Dropout as _Dropout
from mixtrain.nn.layer.group_norm import normalize_groups
from mixtrain.nn.layer.inputs import check_width, float_tensor
from mixtrain.ops import nhwc
from mixtrain.ops.parameter_reads import parameters_read_as
from mixtrain.ops.windows import Window
from mixtrain.process_group import current as current_group
from mixtrain.typing import DTypeLike, Tensor, TensorLike

__all__ = [
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "Dropout",
    "Embedding", "GroupNorm", "LayerNorm", "Linear", "PReLU", "SyncBatchNorm",
]

_Sizes = int | Sequence[int]


class Linear(Dense):
    """``x @ weight.T + bias`` over the last axis.

    Args:
        in_features, out_features: Size of the last axis of the input and of the output.
        bias: Whether a bias is added.
        weight_init, bias_init: Initial values; by default uniform within 1 / sqrt(in_features).
        dtype: Dtype of the parameters, float32 by default.

    Example: ``mint.nn.Linear(4, 2)(x)``.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, weight_init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None, dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(in_features, out_features, weight_init, bias_init, bias, dtype=dtype or float32)
        self.in_features, self.out_features = in_features, out_features

    def extend_repr(self) -> str:
        return f"input_features={self.in_features}, output_features={self.out_features}, has_bias={self.has_bias}"


class _Convolution(Cell):
    """Base class of convolutions over `_rank` axes; see `Conv2d` for the arguments."""

    precision_family = "matmul"
    _rank: ClassVar[int] = 2
    _transposed: ClassVar[bool] = False

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: _Sizes, stride: _Sizes = 1, padding: _Sizes | str = 0,
        dilation: _Sizes = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        where = self.cls_name
        self.in_channels = checks.integer(where, "in_channels", in_channels, at_least=1)
        self.out_channels = checks.integer(where, "out_channels", out_channels, at_least=1)
        self.kernel_size = self._window("kernel_size", kernel_size)
        self.stride, self.dilation = self._window("stride", stride), self._window("dilation", dilation)
        self.groups = checks.integer(where, "groups", groups, at_least=1)
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise checks.fail_value(where, f"{name} must be a multiple of groups={groups}", channels, "groups=1")
        modes = ("zeros",) if self._transposed else ("zeros", "reflect", "replicate", "circular")
        self.padding_mode = checks.one_of(where, "padding_mode", padding_mode, modes)
        if isinstance(padding, str):
            checks.one_of(where, "padding", padding, ("same", "valid"))
            if padding == "same" and any(step != 1 for step in self.stride):
                raise checks.fail_value(where, 'stride must be 1 with padding="same"', stride, "padding=1")
        self.padding: Any = padding if isinstance(padding, str) else self._window("padding", padding, at_least=0)
        first, second = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        shape = (first, second // groups, *self.kernel_size)
        self.weight = Parameter(initializer(HeUniform(math.sqrt(5)), shape, dtype or float32), name="weight")
        self.bias = None
        if checks.boolean(where, "bias", bias):
            init = Uniform(1 / math.sqrt(fans(shape)[0]))
            self.bias = Parameter(initializer(init, (out_channels,), dtype or float32), name="bias")

    def _window(self, name: str, value: _Sizes, at_least: int = 1) -> Window:
        values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        values = values * self._rank if len(values) == 1 else values
        if len(values) != self._rank:
            raise checks.fail_value(self.cls_name, f"{name} must be an int or {self._rank}", value, f"{name}=1")
        return tuple(checks.integer(self.cls_name, name, size, at_least=at_least) for size in values)

    def _sides(self) -> list[int]:
        """Return the elements that are added before and after each axis, the last axis first, as `pad` takes them."""
        if self.padding == "valid":
            return [0, 0] * self._rank
        sizes = zip(self.kernel_size, self.dilation, strict=True)
        around = [(size - 1) * gap for size, gap in sizes] if self.padding == "same" else [2 * n for n in self.padding]
        return [side for total in reversed(around) for side in (total // 2, total - total // 2)]

    def construct(self, input: Tensor) -> Tensor:
        """Convolve `input` (N, C, *sizes) or (C, *sizes), and add the bias."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = FUNCTIONS["pad"](input, self._sides(), self.padding_mode), 0
        function = FUNCTIONS[f"conv{self._rank}d"]
        return function(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def extend_repr(self) -> str:
        return (
            f"input_channels={self.in_channels}, output_channels={self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, padding={self.padding}, dilation={self.dilation}, groups={self.groups}, "
            f"bias={self.bias is not None}"
        )


class Conv2d(_Convolution):
    """Convolve images with a learned kernel.

    Args:
        in_channels, out_channels: Channels of the input and of the output.
        kernel_size, stride, dilation: Size, stride and spacing of the kernel: an int or one for each axis.
        padding: Elements added on both sides of each axis; or "same" or "valid".
        groups: Number of groups that the channels are split into.
        bias: Whether a bias is added.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        dtype: Dtype of the parameters, float32 by default.

    Example: ``mint.nn.Conv2d(3, 8, 3, padding=1)(x)``.
    """


class Conv1d(_Convolution):
    """`Conv2d` of sequences (N, C, L), with weights (out, in / groups, width). Example: ``mint.nn.Conv1d(3, 8, 3)``."""

    _rank = 1


class Conv3d(_Convolution):
    """`Conv2d` of volumes (N, C, D, H, W). Example: ``mint.nn.Conv3d(3, 8, 3)``."""

    _rank = 3


class ConvTranspose2d(_Convolution):
    """The transpose of `Conv2d`, which upsamples images.

    Args:
        in_channels, out_channels, kernel_size, stride, groups, bias, dilation, padding_mode, dtype: As in `Conv2d`,
            with padding_mode="zeros" alone.
        padding: Rows and columns cropped from all sides.
        output_padding: By how much the output is longer.

    Example: ``mint.nn.ConvTranspose2d(8, 4, 2, 2)(x)``.
    """

    _transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: _Sizes, stride: _Sizes = 1, padding: _Sizes = 0,
        output_padding: _Sizes = 0, groups: int = 1, bias: bool = True, dilation: _Sizes = 1,
        padding_mode: str = "zeros", dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, dtype
        )
        self.output_padding = self._window("output_padding", output_padding, at_least=0)

    def construct(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Upsample `input`; `output_size` is the size of the output where the stride leaves a choice."""
        extra = self.output_padding
        if output_size is not None:
            rows = zip(output_size[-2:], input.shape[-2:], self.stride, self.padding, self.dilation, self.kernel_size,
                       strict=True)
            extra = tuple(
                new - ((old - 1) * step - 2 * int(side) + gap * (size - 1) + 1)
                for new, old, step, side, gap, size in rows
            )
            if any(not 0 <= more < step for more, step in zip(extra, self.stride, strict=True)):
                raise checks.fail_value(name_of(self), "output_size must be one of the stride", output_size, "None")
        return FUNCTIONS["conv_transpose2d"](
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class _BatchNorm(Cell):
    """Base class of batch normalizations, computed in float32; see `BatchNorm2d` for the arguments."""

    precision_family = "normalization"
    _ranks: ClassVar[tuple[int, ...]] = (4,)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.num_features = checks.integer(self.cls_name, "num_features", num_features, at_least=1)
        self.eps, self.momentum, self.affine, self.track_running_stats = eps, momentum, affine, track_running_stats
        self.dtype = dtype or float32

        def parameter(name: str, init: str, wanted: bool, learned: bool = False) -> Any:
            values = initializer(init, (num_features,), self.dtype)
            return Parameter(values, name=name, requires_grad=learned) if wanted else None

        self.weight, self.bias = parameter("weight", "ones", affine, True), parameter("bias", "zeros", affine, True)
        self.running_mean = parameter("running_mean", "zeros", track_running_stats)
        self.running_var = parameter("running_var", "ones", track_running_stats)
        self.num_batches_tracked: Any = Parameter(
            initializer("zeros", (), int64), name="num_batches_tracked", requires_grad=False
        ) if track_running_stats else None

    def construct(self, input: Tensor) -> Tensor:
        """Normalize `input` by the statistics of the batch in training, by the running ones otherwise."""
        x = float_tensor(self, input)
        if len(x.shape) not in self._ranks:
            ranks = " or ".join(map(str, self._ranks))
            raise checks.fail_value(name_of(self), f"expected {ranks} axes", tuple(x.shape), "x.reshape(...)")
        check_width(self, x, 1, self.num_features, noun="channels", argument="num_features")
        last = nhwc.to_channels_last(x)
        shape = keras.ops.shape(last)
        # (N, 1, everything between, C), as the backend normalizes images.
        flat = keras.ops.reshape(last, (shape[0], 1, -1, shape[-1])) if len(shape) != 4 else last
        dtype = as_dtype(x.dtype)
        y = self._normalize(flat if is_half(dtype) else keras.ops.cast(flat, float32))
        return nhwc.from_channels_last(keras.ops.reshape(keras.ops.cast(y, dtype), shape))

    def _normalize(self, x: Tensor) -> Tensor:
        """Normalize (N, H, W, C), and update the running statistics in training."""
        one, zero = (keras.ops.full((self.num_features,), value, "float32") for value in (1, 0))
        gamma = one if self.weight is None else keras.ops.cast(self.weight.value, float32)
        beta = zero if self.bias is None else keras.ops.cast(self.bias.value, float32)
        track = self.running_mean is not None
        with parameters_read_as(None):
            mean, variance = (self.running_mean.value, self.running_var.value) if track else (zero, one)
            y, *batch = backend.fused_batch_norm(
                x, gamma, beta, keras.ops.cast(mean, float32), keras.ops.cast(variance, float32), epsilon=self.eps,
                training=self.training or not track,
            )
            if self.training and track:
                count = self.num_batches_tracked.value + 1
                self.num_batches_tracked.assign(count)
                # Without a momentum, the running statistics are the mean of all.
                part = 1 / keras.ops.cast(count, "float32") if self.momentum is None else self.momentum
                rows = zip((self.running_mean, self.running_var), (mean, variance), batch, strict=True)
                for running, old, new in rows:
                    running.assign(keras.ops.cast(old * (1 - part) + new * part, running.dtype))
        return y

    def extend_repr(self) -> str:
        return (
            f"num_features={self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm2d(_BatchNorm):
    """Normalize each channel of images over the batch, then scale and shift it.

    Args:
        num_features: Channels of the input.
        eps: Added to the variance.
        momentum: Weight of the batch in the running statistics; None for the mean of all batches.
        affine: Whether there are `weight` and `bias`.
        track_running_stats: Whether there are running statistics; without them those of the batch are always used.
        dtype: Dtype of the parameters, float32 by default.

    Example: ``mint.nn.BatchNorm2d(3)(x)``.
    """


class BatchNorm1d(_BatchNorm):
    """`BatchNorm2d` of vectors (N, C) or sequences (N, C, L). Example: ``mint.nn.BatchNorm1d(3)(x)``."""

    _ranks = (2, 3)


class BatchNorm3d(_BatchNorm):
    """`BatchNorm2d` of volumes (N, C, D, H, W). Example: ``mint.nn.BatchNorm3d(3)(x)``."""

    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """`BatchNorm2d` of 2 to 5 axes, of a single process; several write `mixtrain.nn.SyncBatchNorm`.

    Args:
        num_features, eps, momentum, affine, track_running_stats, dtype: As in `BatchNorm2d`.
        process_group: None, the group of all processes.

    Example: ``mint.nn.SyncBatchNorm(3)(x)``.
    """

    _ranks = (2, 3, 4, 5)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group: str | None = None, dtype: DTypeLike | None = None,
    ) -> None:
        if current_group().size > 1:
            raise NotImplementedError("SyncBatchNorm: mint's is of one process. Write mixtrain.nn.SyncBatchNorm.")
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)


class LayerNorm(Cell):
    """Normalize the last axes of each sample in float32, then scale and shift them.

    Args:
        normalized_shape: The sizes of these axes, an int for one.
        eps: Added to the variance.
        elementwise_affine: Whether there are `weight` and `bias`.
        bias: Whether there is a bias beside the weight.
        dtype: Dtype of the parameters, float32 by default.

    Example: ``mint.nn.LayerNorm(64)(x)``.
    """

    precision_family = "normalization"

    def __init__(
        self, normalized_shape: _Sizes, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        sizes = (normalized_shape,) if isinstance(normalized_shape, int) else normalized_shape
        checks.instance(self.cls_name, "normalized_shape", sizes, (tuple, list), "normalized_shape=(64,)")
        if not sizes:
            raise checks.fail_value(self.cls_name, "normalized_shape must not be empty", (), "normalized_shape=64")
        self.normalized_shape, self.eps, self.elementwise_affine = tuple(sizes), eps, elementwise_affine
        self.weight = self.bias = None
        if elementwise_affine:
            self.weight = Parameter(initializer("ones", self.normalized_shape, dtype or float32), name="weight")
            if bias:
                self.bias = Parameter(initializer("zeros", self.normalized_shape, dtype or float32), name="bias")

    def construct(self, input: Tensor) -> Tensor:
        """Normalize `input`."""
        return FUNCTIONS["layer_norm"](input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extend_repr(self) -> str:
        return f"normalized_shape={self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Cell):
    """Normalize groups of channels of each sample in float32, then scale and shift each channel.

    Args:
        num_groups, num_channels: Number of groups, and channels of the input, a multiple of it.
        eps: Added to the variance.
        affine: Whether `weight` and `bias` are learned; both are applied either way.
        dtype: Dtype of the parameters, float32 by default.

    Example: ``mint.nn.GroupNorm(2, 4)(x)``.
    """

    precision_family = "normalization"

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.num_groups = checks.integer(self.cls_name, "num_groups", num_groups, at_least=1)
        self.num_channels = checks.integer(self.cls_name, "num_channels", num_channels, at_least=1)
        if num_channels % num_groups:
            raise checks.fail_value(
                self.cls_name, f"num_channels must be a multiple of num_groups={num_groups}", num_channels,
                "num_groups=1",
            )
        self.eps = checks.instance(self.cls_name, "eps", eps, float, "eps=1e-5")
        self.affine = checks.boolean(self.cls_name, "affine", affine)
        for name, init in (("weight", "ones"), ("bias", "zeros")):
            values = initializer(init, (num_channels,), dtype or float32)
            setattr(self, name, Parameter(values, name=name, requires_grad=affine))

    def construct(self, input: Tensor) -> Tensor:
        """Normalize `input` (N, C, ...)."""
        x = float_tensor(self, input)
        check_width(self, x, 1, self.num_channels, noun="channels", argument="num_channels")
        return normalize_groups(x, self.num_groups, self.weight.value, self.bias.value, self.eps)[0]

    def extend_repr(self) -> str:
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}, eps={self.eps}, affine={self.affine}"


class Embedding(Cell):
    """Rows of a learned table.

    Args:
        num_embeddings, embedding_dim: Rows and columns of the table.
        padding_idx: Row that starts as zeros and is not learned.
        max_norm, norm_type: Longest norm of a row, to which longer ones are cut when read, and its power.
        scale_grad_by_freq, sparse: False, the only values.
        _weight: Values of the table; by default normally distributed.
        _freeze: Whether the table is not learned.
        dtype: Dtype of the table, float32 by default.

    Example: ``mint.nn.Embedding(10, 4)(indices)``.
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
        _weight: TensorLike | None = None, _freeze: bool = False, dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        where, shape = self.cls_name, (num_embeddings, embedding_dim)
        self.num_embeddings = checks.integer(where, "num_embeddings", num_embeddings, at_least=1)
        self.embedding_dim = checks.integer(where, "embedding_dim", embedding_dim, at_least=1)
        if sparse or scale_grad_by_freq:
            raise checks.fail_value(where, "sparse and scale_grad_by_freq must be False", True, "the defaults")
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        if padding_idx is not None:
            last = num_embeddings - 1
            checks.number(where, "padding_idx", padding_idx, at_least=-num_embeddings, at_most=last, example=last)
        if _weight is not None and tuple(_weight.shape) != shape:
            raise checks.fail_value(where, f"_weight must have shape {shape}", tuple(_weight.shape), "its own shape")
        values = initializer(Normal(1.0, 0.0), shape, dtype or float32) if _weight is None else _weight
        if _weight is None and padding_idx is not None:
            others = keras.ops.arange(num_embeddings) != padding_idx % num_embeddings
            values = values * keras.ops.cast(others, values.dtype)[:, None]
        self.weight = Parameter(values, name="weight", requires_grad=not _freeze)

    def construct(self, input: Tensor) -> Tensor:
        """Return the rows of the indices `input`."""
        return FUNCTIONS["embedding"](input, self.weight, self.padding_idx, self.max_norm, self.norm_type)

    def extend_repr(self) -> str:
        return f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}"


class PReLU(Cell):
    """x where x > 0, else weight * x, with one learned weight or one for each channel.

    Args:
        num_parameters: Number of weights.
        init: Their initial value.
        dtype: Their dtype, float32 by default.

    Example: ``mint.nn.PReLU()(x)``.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: DTypeLike | None = None) -> None:
        super().__init__()
        self.weight = Parameter(initializer(init, (num_parameters,), dtype or float32), name="weight")

    def construct(self, input: Tensor) -> Tensor:
        """Apply the function to `input`."""
        return FUNCTIONS["prelu"](input, self.weight)


class Dropout(_Dropout):
    """In training, zero elements with the probability `p`, and scale up the others.

    Args: p, inplace: The probability, from 0 to 1; the result is a new tensor either way.
    Example: ``mint.nn.Dropout(0.1)(x)``.
    """

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__(p=0.0 if p == 1 else p)
        self.p, self.inplace = p, inplace

    def construct(self, input: Tensor) -> Any:
        """Drop elements of `input` in training."""
        return keras.ops.zeros_like(input) if self.training and self.p == 1 else super().construct(input)
