"""Small cells that wrap one operation: gamma functions, reductions, reshaping and regularization."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import backend, checks
from mixtrain.cell.cell import Cell
from mixtrain.nn.layer.inputs import float_tensor
from mixtrain.ops import channel_shuffle, digamma, igamma, lgamma, logsumexp
from mixtrain.typing import Tensor


class ReduceLogSumExp(Cell):
    """log(sum(exp(x))) along `axis`, kept with `keep_dims`. Example: ``nn.ReduceLogSumExp(1)(x)``."""

    def __init__(self, axis: int | Sequence[int], keep_dims: bool = False) -> None:
        super().__init__()
        self.axis, self.keep_dims = axis, checks.boolean(self.cls_name, "keep_dims", keep_dims)

    def construct(self, x: Tensor) -> Tensor:
        """Reduce `x`."""
        return logsumexp(x, self.axis, self.keep_dims)


class Moments(Cell):
    """The mean and the variance along `axis`, an int or ints, None for all; in the dtype of `x`, computed in float32.

    Example: ``mean, variance = nn.Moments((0, 1), keep_dims=True)(x)``.
    """

    def __init__(self, axis: int | tuple[int, ...] | None = None, keep_dims: bool | None = None) -> None:
        super().__init__()
        self.axis = () if axis is None else checks.instance(self.cls_name, "axis", axis, (int, tuple), "axis=0")
        self.keep_dims = checks.boolean(self.cls_name, "keep_dims", bool(keep_dims) if keep_dims is None else keep_dims)

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and the variance of `x`."""
        value = float_tensor(self.cls_name, x)
        axes = list(range(len(value.shape))) if self.axis == () else self.axis
        moments = keras.ops.moments(keras.ops.cast(value, "float32"), axes, keepdims=self.keep_dims)
        return tuple(keras.ops.cast(each, value.dtype) for each in moments)


class ChannelShuffle(Cell):
    """Interleave the channels of `groups` groups. Example: ``nn.ChannelShuffle(2)(x)``.

    Source: Zhang et al., 2017; MindSpore, `mindspore.nn.ChannelShuffle`.
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = checks.integer(self.cls_name, "groups", groups, at_least=1)

    def construct(self, x: Tensor) -> Tensor:
        """Shuffle the channels of `x`."""
        return channel_shuffle(x, self.groups)


class LGamma(Cell):
    """The logarithm of the gamma function. Example: ``nn.LGamma()(x)``."""

    def construct(self, x: Tensor) -> Tensor:
        """Compute the function of `x`."""
        return lgamma(x)


class LBeta(Cell):
    """The logarithm of the beta function of `x` and `y`. Example: ``nn.LBeta()(x, y)``."""

    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute the function of `x` and `y`."""
        return lgamma(x) + lgamma(y) - lgamma(x + y)


class IGamma(Cell):
    """The lower regularized incomplete gamma function of `a` at `x`. Example: ``nn.IGamma()(a, x)``."""

    def construct(self, a: Tensor, x: Tensor) -> Tensor:
        """Compute the function of `a` and `x`."""
        return igamma(a, x)


class DiGamma(Cell):
    """The derivative of `LGamma`. Example: ``nn.DiGamma()(x)``."""

    def construct(self, x: Tensor) -> Tensor:
        """Compute the function of `x`."""
        return digamma(x)


class Unflatten(Cell):
    """Split one axis into several of sizes `unflattened_size`. Example: ``nn.Unflatten(1, (2, 3))(x)``.

    Args:
        axis: The axis to split.
        unflattened_size: A tuple of ints.
    """

    def __init__(self, axis: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.axis, self.unflattened_size = axis, tuple(unflattened_size)

    def construct(self, x: Tensor) -> Tensor:
        """Split the axis of `x`."""
        x = backend.to_tensor(x)
        axis, sizes = self.axis % len(x.shape), list(keras.ops.shape(x))
        return keras.ops.reshape(x, (*sizes[:axis], *self.unflattened_size, *sizes[axis + 1 :]))


class L1Regularizer(Cell):
    """`scale` times the sum of absolute values. Example: ``nn.L1Regularizer(0.5)(weight)``."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = checks.number(self.cls_name, "scale", scale, above=0, example=0.5)

    def construct(self, weights: Tensor) -> Tensor:
        """Compute the penalty of `weights`."""
        return keras.ops.sum(keras.ops.abs(float_tensor(self, weights))) * self.scale
