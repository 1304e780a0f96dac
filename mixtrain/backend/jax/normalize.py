"""Normalization in float32 of half or float32 tensors, without float32 copies kept for the backward pass."""

from __future__ import annotations

import math
from typing import Any, Final

import jax
import jax.numpy as jnp

from mixtrain.backend.jax.joined import joined_sum
from mixtrain.typing import Tensor

# Statistics over channels are about the mean of one of so many shares of the values.
_SHARES: Final = 16
# With fewer rows of images a share of one row is no small part.
_MIN_ROWS: Final = 4


def fused_batch_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float, training: bool
) -> tuple[Tensor, Tensor, Tensor]:
    if not training:
        scale = jax.lax.rsqrt(variance + epsilon) * gamma
        return ((x.astype(jnp.float32) - mean) * scale + beta).astype(x.dtype), mean, variance
    count = math.prod(x.shape[:3])
    joined = joined_sum(1.0)
    if joined is None:
        y, batch_mean, batch_variance = normalize_axes(x, gamma, beta, axes=(0, 1, 2), epsilon=epsilon)
    else:
        wide = x.astype(jnp.float32)
        batch_mean = joined_sum(jnp.mean(wide, (0, 1, 2))) / joined
        centered = wide - batch_mean
        batch_variance = joined_sum(jnp.mean(jnp.square(centered), (0, 1, 2))) / joined
        y = (centered * (jax.lax.rsqrt(batch_variance + epsilon) * gamma) + beta).astype(x.dtype)
        y = _checked(y, batch_variance)
        batch_mean, batch_variance = jax.lax.stop_gradient((batch_mean, batch_variance))
        count *= joined
    corrected = batch_variance * (count / (count - 1) if count > 1 else 0.0)
    return y, batch_mean.reshape(-1), corrected.reshape(-1)


@jax.custom_vjp
def _checked(y: Tensor, variance: Tensor) -> Tensor:
    """Return normalized values, with gradients of NaN where the variance has overflowed: see `_backward`."""
    del variance
    return y


def _check_gradient(variance: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    return jnp.where(jnp.isfinite(variance), upstream, jnp.nan).astype(upstream.dtype), jnp.zeros_like(variance)


_checked.defvjp(lambda y, variance: (y, variance), _check_gradient)


def normalize_axes(
    x: Tensor, gamma: Tensor, beta: Tensor, *, axes: tuple[int, ...], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    y, mean, variance = _normalized(axes, epsilon, x, gamma, beta)
    return y, jax.lax.stop_gradient(mean), jax.lax.stop_gradient(variance)


def _formula(
    axes: tuple[int, ...], epsilon: float, x: Tensor, gamma: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    wide = x.astype(jnp.float32)
    shift = _shift(wide, axes)
    # Both sums are over `centered`, so that a device can compute them in one pass.
    # Scaled before the sum: a product with the sum would be fused with the addition to `shift` in some of the loops
    # that compute `y`, and not in others, so that a maximum of `y`, which JAX finds by comparing, is not found again.
    centered = wide - shift
    weight = 1 / math.prod(wide.shape[axis] for axis in axes)
    error = jnp.sum(centered * weight, axes, keepdims=True)
    mean_square = jnp.sum(jnp.square(centered) * weight, axes, keepdims=True)
    # An overflowed variance stays infinite, so that the gradient shows it.
    variance = jnp.where(jnp.isfinite(mean_square), jnp.maximum(mean_square - jnp.square(error), 0.0), mean_square)
    # The rounding error of `shift` is in `error`, so that the mean of equal values is that value in any order of
    # summation: what remains is multiplied by up to rsqrt(epsilon), in the gradient by more.
    mean = shift + error
    # One factor for each channel. With two, XLA on a GPU writes the gradient of a ReLU that follows to memory, rather
    # than computing its mask again where the gradient is read.
    factor = jax.lax.rsqrt(variance + epsilon) * gamma
    return ((wide - mean) * factor + beta).astype(x.dtype), mean, variance


def _shift(wide: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return a mean that lies close enough to that of all values for the variance about it to be corrected.

    It is that of the first rows of images, a share p >= 1/16 of the values, so it takes little of a pass over them.
    Since they are among the values, their mean is at most sqrt(1/p - 1) standard deviations away whatever the values
    are, and the correction multiplies the rounding error of the variance by at most 1/p.

    Rows, such as those of a layer normalization, are reduced in one kernel of a GPU together with what follows.
    """
    sizes = {axis: wide.shape[axis] for axis in axes if 0 < axis < wide.ndim - 1 and isinstance(wide.shape[axis], int)}
    axis = max(sizes, key=lambda axis: sizes[axis], default=0)  # Not the batch, which may be sharded.
    part = wide
    if sizes.get(axis, 0) >= _MIN_ROWS:
        part = jax.lax.slice_in_dim(wide, 0, -(-sizes[axis] // _SHARES), axis=axis)
    # Scaled before the sum, where it is fused: a division of the sums would be a kernel of its own.
    weight = 1 / math.prod(part.shape[axis] for axis in axes)
    return jax.lax.stop_gradient(jnp.sum(part * weight, axes, keepdims=True))


def _forward(axes: tuple[int, ...], epsilon: float, x: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Any, Any]:
    # Not `_normalized`: a second derivative must pass through the statistics, which have no gradient in `_backward`.
    y, mean, variance = _formula(axes, epsilon, x, gamma, beta)
    return (y, mean, variance), (x, gamma, beta, mean, variance)


def _backward(axes: tuple[int, ...], epsilon: float, residuals: Any, upstream: Any) -> tuple[Tensor, Tensor, Tensor]:
    x, gamma, beta, mean, variance = residuals
    scale = jax.lax.rsqrt(variance + epsilon)
    # NaN for an overflowed variance: its gradients would be 0, and the overflow would go unnoticed.
    checked_scale = jnp.where(jnp.isfinite(variance), scale, jnp.nan)
    centered = x.astype(jnp.float32) - mean
    wide = upstream[0].astype(jnp.float32)
    if set(axes) <= set(_broadcast_axes(gamma, x.ndim)):
        # `gamma` is constant over the reduced axes: the sums for `x` are also those for the parameters.
        d_gamma, d_beta = (jnp.mean(value, axes, keepdims=True) for value in (wide * centered, wide))
        d_gamma *= checked_scale
        d_x = (scale * gamma) * (wide - d_beta - centered * (scale * d_gamma))
        count = math.prod(x.shape[axis] for axis in axes)
        return d_x.astype(x.dtype), _sum_to(gamma, d_gamma * count), _sum_to(beta, d_beta * count)
    normal = centered * checked_scale
    d_normal = wide * gamma
    projection = jnp.mean(d_normal * normal, axes, keepdims=True)
    d_x = checked_scale * (d_normal - jnp.mean(d_normal, axes, keepdims=True) - normal * projection)
    return d_x.astype(x.dtype), _sum_to(gamma, wide * normal), _sum_to(beta, wide)


_normalized = jax.custom_vjp(_formula, nondiff_argnums=(0, 1))
_normalized.defvjp(_forward, _backward)


def _sum_to(parameter: Tensor, values: Tensor) -> Tensor:
    """Sum over the axes along which a parameter was broadcast, to its shape."""
    return jnp.sum(values, _broadcast_axes(parameter, values.ndim)).reshape(parameter.shape)


def _broadcast_axes(parameter: Tensor, rank: int) -> tuple[int, ...]:
    """Return the axes along which a parameter is broadcast to a tensor of a rank."""
    shape = (1,) * (rank - parameter.ndim) + tuple(parameter.shape)
    return tuple(axis for axis, size in enumerate(shape) if size == 1)
