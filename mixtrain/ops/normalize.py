"""Normalization of vectors, samples, groups and channels."""

from __future__ import annotations

from collections.abc import Sequence

import keras

from mixtrain import backend, checks
from mixtrain.dtype import float32
from mixtrain.ops.inputs import as_floats, axes_of, rank_of
from mixtrain.ops.primitive import as_primitive
from mixtrain.typing import Tensor, TensorLike


@as_primitive
def L2Normalize(input_x: TensorLike, *, axis: int | Sequence[int] = 0, epsilon: float = 1e-4) -> Tensor:
    """Divide by the root of the sum of squares along `axis`, an int or several, computed in at least float32.

    `epsilon` is the lower bound of the sum. Example: ``ops.L2Normalize()(Tensor([3.0, 4.0]))`` is ``[0.6, 0.8]``.
    """
    x = as_floats("L2Normalize", input_x)
    axes = axes_of("L2Normalize", axis, rank_of(x))
    squares = keras.ops.sum(keras.ops.square(keras.ops.cast(x, float32)), axis=axes, keepdims=True)
    return x * keras.ops.cast(keras.ops.rsqrt(keras.ops.maximum(squares, epsilon)), x.dtype)


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Sequence[int]) -> Tensor:
    """Return `x` * `weight` + `bias`, reshaped to `shape`, which broadcasts; None omits a factor or term."""
    if weight is not None:
        x = x * keras.ops.reshape(keras.ops.cast(as_floats("ops", weight), float32), shape)
    if bias is not None:
        x = x + keras.ops.reshape(keras.ops.cast(as_floats("ops", bias), float32), shape)
    return x


def _normalized(x: Tensor, axes: int | tuple[int, ...], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    mean = keras.ops.mean(x, axis=axes, keepdims=True)
    variance = keras.ops.mean(keras.ops.square(x - mean), axis=axes, keepdims=True)
    return (x - mean) / keras.ops.sqrt(variance + eps), mean, variance


def layer_norm(
    input: TensorLike, normalized_shape: Sequence[int], weight: TensorLike | None = None,
    bias: TensorLike | None = None, eps: float = 1e-5,
) -> Tensor:
    """Normalize the last axes of `input`, of shape `normalized_shape`, in float32; `eps` is added to the variance.

    `weight` and `bias` of that shape scale and shift; None for 1 and 0. Example:
    ``ops.layer_norm(Tensor([1.0, 3.0]), (2,))`` is ``[-1.0, 1.0]``.
    """
    x = as_floats("ops.layer_norm", input)
    sizes = tuple(normalized_shape)
    if any(size not in (None, wanted) for size, wanted in zip(x.shape[::-1], sizes[::-1], strict=False)):
        raise checks.fail_value("ops.layer_norm", f"the last axes must be {sizes}", tuple(x.shape), "their sizes")
    axes = tuple(range(-len(sizes), 0))
    y, _, _ = _normalized(keras.ops.cast(x, float32), axes, eps)
    return keras.ops.cast(_scaled(y, weight, bias, sizes), x.dtype)


def group_norm(
    input: TensorLike, num_groups: int, weight: TensorLike | None = None, bias: TensorLike | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize `num_groups` groups of channels of each sample of `input` (N, C, ...); `eps` is added to the variance.

    `weight` and `bias` scale and shift each channel; None for 1 and 0.
    """
    x = as_floats("ops.group_norm", input)
    count, channels = x.shape[:2]
    if channels % num_groups:
        raise checks.fail_value("ops.group_norm", "the channels must divide by num_groups", channels, "num_groups=1")
    y, _, _ = _normalized(keras.ops.reshape(keras.ops.cast(x, float32), (count, num_groups, -1)), -1, eps)
    y = keras.ops.reshape(y, keras.ops.shape(x))
    return keras.ops.cast(_scaled(y, weight, bias, (channels, *(1,) * (rank_of(x) - 2))), x.dtype)


def batch_norm(
    input_x: TensorLike, running_mean: TensorLike, running_var: TensorLike, weight: TensorLike, bias: TensorLike,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:
    """Normalize the channels of `input_x` (N, C, ...): by running statistics, or in `training` by those of the batch.

    `running_mean` and `running_var` are updated in training if they are Parameters, with the weight `momentum` for the
    batch; `weight` and `bias` scale and shift each channel, None for 1 and 0; `eps` is added to the variance.
    """
    x = as_floats("ops.batch_norm", input_x)
    wide = keras.ops.cast(x, float32)
    shape = (x.shape[1], *(1,) * (rank_of(x) - 2))
    if training:
        axes = tuple(axis for axis in range(rank_of(x)) if axis != 1)
        y, mean, variance = _normalized(wide, axes, eps)
        count = keras.ops.cast(keras.ops.size(x) / x.shape[1], float32)
        # The running variance is unbiased, the one that normalizes the batch is not.
        for running, batch in ((running_mean, mean), (running_var, variance * count / (count - 1))):
            if isinstance(running, keras.Variable):
                new = backend.snapshot(running) * (1 - momentum) + keras.ops.reshape(batch, (-1,)) * momentum
                running.assign(keras.ops.cast(new, running.dtype))
    else:
        mean, variance = (
            keras.ops.reshape(keras.ops.cast(as_floats("ops.batch_norm", value), float32), shape)
            for value in (running_mean, running_var)
        )
        y = (wide - mean) / keras.ops.sqrt(variance + eps)
    return keras.ops.cast(_scaled(y, weight, bias, shape), x.dtype)


@as_primitive
def LayerNorm(
    input_x: TensorLike, gamma: TensorLike, beta: TensorLike, *, begin_norm_axis: int = 1, begin_params_axis: int = 1,
    epsilon: float = 1e-7,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize the axes of each sample from `begin_norm_axis` on: ``(output, mean, variance)``.

    `begin_params_axis`: first axis that scale and shift belong to; `epsilon`: added to the variance. Mean and variance
    have no gradients, as in MindSpore. Example:
    ``output, mean, variance = ops.LayerNorm()(x, gamma, beta)``.
    """
    x = as_floats("LayerNorm", input_x)
    rank = rank_of(x)
    y, mean, variance = _normalized(keras.ops.cast(x, float32), tuple(range(begin_norm_axis % rank, rank)), epsilon)
    y = keras.ops.cast(_scaled(y, gamma, beta, tuple(x.shape[begin_params_axis % rank :])), x.dtype)
    return y, keras.ops.stop_gradient(mean), keras.ops.stop_gradient(variance)
