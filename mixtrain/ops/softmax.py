"""Softmax, softmin, log-softmax and gated linear units."""

from __future__ import annotations

import numbers
from collections.abc import Sequence

import keras

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype
from mixtrain.ops.inputs import as_floats, axes_of, axis_of, rank_of
from mixtrain.ops.primitive import Primitive, configured
from mixtrain.typing import DTypeLike, Tensor, TensorLike


def softmax(input: TensorLike, axis: int = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    """The softmax of `input` along `axis`, cast to `dtype` first. Example: ``ops.softmax(x)``."""
    x = _cast(as_floats("ops.softmax", input), dtype)
    return keras.ops.softmax(x, axis=axis_of("ops.softmax", axis, rank_of(x)))


def softmin(x: TensorLike, axis: int = -1, *, dtype: DTypeLike | None = None) -> Tensor:
    """The softmax of -`x` along `axis`, in `dtype`."""
    return softmax(-as_floats("ops.softmin", x), axis, dtype=dtype)


def log_softmax(logits: TensorLike, axis: int = -1) -> Tensor:
    """The logarithm of the softmax of `logits` along `axis`, without overflow. Example: ``ops.log_softmax(x)``."""
    x = as_floats("ops.log_softmax", logits)
    return keras.ops.log_softmax(x, axis=axis_of("ops.log_softmax", axis, rank_of(x)))


def glu(x: TensorLike, axis: int = -1) -> Tensor:
    """The first half of `x` along `axis`, times the sigmoid of the second half.

    Example: ``ops.glu(x)``. Source: Dauphin et al., 2017; MindSpore, `mindspore.ops.glu`.
    """
    value = as_floats("ops.glu", x)
    axis = axis_of("ops.glu", axis, rank_of(value))
    if (value.shape[axis] or 0) % 2:
        raise checks.fail_value("ops.glu", "the axis must have an even size", value.shape[axis], "an even size")
    return keras.ops.glu(value, axis=axis)


def _cast(x: TensorLike, dtype: DTypeLike | None) -> Tensor:
    return x if dtype is None else backend.to_tensor(x, as_dtype(dtype))


class Softmax(Primitive):
    """The softmax along `axis`, an int, or along a tuple of them together. Example: ``ops.Softmax()(x)``."""

    def __init__(self, axis: int | Sequence[int] = -1) -> None:
        super().__init__()
        items = axis if isinstance(axis, (tuple, list)) else (axis,)
        if any(isinstance(item, bool) or not isinstance(item, numbers.Integral) for item in items):
            raise checks.fail_type(self.name, "axis must be an int or a tuple of ints", axis, "axis=-1")
        self.axis: int | Sequence[int] = axis

    def __call__(self, logits: TensorLike) -> Tensor:
        """Normalize `logits`."""
        x = as_floats(self.name, logits)
        if self.axis in ((), []):
            raise checks.fail_value(self.name, "axis must not be empty", self.axis, "axis=-1")
        axes = axes_of(self.name, self.axis, rank_of(x))
        # Keras 3.10 cannot compile a tuple of axes.
        return keras.ops.softmax(x, axis=axes[0] if len(axes) == 1 else axes)


LogSoftmax = configured("LogSoftmax", log_softmax, axis=-1)
