"""Normalization in float32 of half or float32 tensors, without float32 copies kept for the backward pass."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from mixtrain.typing import Tensor


def fused_batch_norm(
    x: Tensor, gamma: Tensor, beta: Tensor, mean: Tensor, variance: Tensor, *, epsilon: float, training: bool
) -> tuple[Tensor, Tensor, Tensor]:
    if not training:
        scale = jax.lax.rsqrt(variance + epsilon) * gamma
        return ((x.astype(jnp.float32) - mean) * scale + beta).astype(x.dtype), mean, variance
    y, batch_mean, batch_variance = normalize_axes(x, gamma, beta, axes=(0, 1, 2), epsilon=epsilon)
    count = math.prod(x.shape[:3])
    corrected = batch_variance * (count / (count - 1) if count > 1 else 0.0)
    return y, batch_mean.reshape(-1), corrected.reshape(-1)


def normalize_axes(
    x: Tensor, gamma: Tensor, beta: Tensor, *, axes: tuple[int, ...], epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    y, mean, variance = _normalized(axes, epsilon, x, gamma, beta)
    return y, jax.lax.stop_gradient(mean), jax.lax.stop_gradient(variance)


def _formula(
    axes: tuple[int, ...], epsilon: float, x: Tensor, gamma: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, axes, keepdims=True)
    # Corrects the rounding error of the sum, so that the mean of equal values is that value in any order of summation:
    # the remaining error is multiplied by up to rsqrt(epsilon), in the gradient by more. Both sums are over `centered`,
    # so that a device can compute them in one pass.
    centered = wide - mean
    error = jnp.mean(centered, axes, keepdims=True)
    mean_square = jnp.mean(jnp.square(centered), axes, keepdims=True)
    # An overflowed variance stays infinite, so that the gradient shows it.
    variance = jnp.where(jnp.isfinite(mean_square), jnp.maximum(mean_square - jnp.square(error), 0.0), mean_square)
    mean += error
    return ((wide - mean) * jax.lax.rsqrt(variance + epsilon) * gamma + beta).astype(x.dtype), mean, variance


def _forward(axes: tuple[int, ...], epsilon: float, x: Tensor, gamma: Tensor, beta: Tensor) -> tuple[Any, Any]:
    # Not `_normalized`: a second derivative must pass through the statistics, which have no gradient in `_backward`.
    y, mean, variance = _formula(axes, epsilon, x, gamma, beta)
    return (y, mean, variance), (x, gamma, beta, mean, variance)


def _backward(axes: tuple[int, ...], epsilon: float, residuals: Any, upstream: Any) -> tuple[Tensor, Tensor, Tensor]:
    x, gamma, beta, mean, variance = residuals
    # NaN for an overflowed variance: its gradients would be 0, and the overflow would go unnoticed.
    scale = jnp.where(jnp.isfinite(variance), jax.lax.rsqrt(variance + epsilon), jnp.nan)
    normal = (x.astype(jnp.float32) - mean) * scale
    wide = upstream[0].astype(jnp.float32)
    if set(axes) <= set(_broadcast_axes(gamma, x.ndim)):
        # `gamma` is constant over the reduced axes: the sums for `x` are also those for the parameters.
        d_gamma, d_beta = (jnp.mean(value, axes, keepdims=True) for value in (wide * normal, wide))
        d_x = scale * gamma * (wide - d_beta - normal * d_gamma)
        count = math.prod(x.shape[axis] for axis in axes)
        return d_x.astype(x.dtype), _sum_to(gamma, d_gamma * count), _sum_to(beta, d_beta * count)
    d_normal = wide * gamma
    projection = jnp.mean(d_normal * normal, axes, keepdims=True)
    d_x = scale * (d_normal - jnp.mean(d_normal, axes, keepdims=True) - normal * projection)
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
