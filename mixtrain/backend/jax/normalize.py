"""Normalization in float32 of half or float32 tensors, which holds no float32 copy of them for the backward pass."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp


def fused_batch_norm(
    x: Any, gamma: Any, beta: Any, mean: Any, variance: Any, *, epsilon: float, training: bool
) -> tuple[Any, Any, Any]:
    """Normalize a channels-last batch of rank 4.

    Args:
        x: Activations (N, H, W, C), float32, float16 or bfloat16.
        gamma: Scale (C,), float32.
        beta: Shift (C,), float32.
        mean: Moving mean (C,), float32; used where `training` is False.
        variance: Moving variance (C,), float32; used where `training` is False.
        epsilon: Added to the variance.
        training: Whether to normalize by the batch's own statistics.

    Returns:
        ``(y, batch_mean, batch_variance)``: `y` has the shape and dtype of `x`; the statistics are float32 (C,), the
        variance with Bessel's correction (divided by n - 1; 0 where n is 1). Outside training they are the moving ones.
    """
    if not training:
        scale = jax.lax.rsqrt(variance + epsilon) * gamma
        return ((x.astype(jnp.float32) - mean) * scale + beta).astype(x.dtype), mean, variance
    y, batch_mean, batch_variance = normalize_axes(x, gamma, beta, axes=(0, 1, 2), epsilon=epsilon)
    count = math.prod(x.shape[:3])
    corrected = batch_variance * (count / (count - 1) if count > 1 else 0.0)
    return y, batch_mean.reshape(-1), corrected.reshape(-1)


def normalize_axes(
    x: Any, gamma: Any, beta: Any, *, axes: tuple[int, ...], epsilon: float
) -> tuple[Any, Any, Any]:
    """Normalize a tensor over some of its axes, by a gradient of its own: held is `x` itself, and one number a mean.

    Args:
        x: Tensor, float32, float16 or bfloat16.
        gamma: Scale, float32, of a known shape that broadcasts to that of `x`.
        beta: Shift, float32, of the shape of `gamma`.
        axes: Axes that each mean goes over, counted from the front.
        epsilon: Added to the variance.

    Returns:
        ``(y, mean, variance)``: `y` has the shape and dtype of `x`; the statistics are float32, keep the axes with size
        1 and have no gradient.
    """
    y, mean, variance = _normalized(axes, epsilon, x, gamma, beta)
    return y, jax.lax.stop_gradient(mean), jax.lax.stop_gradient(variance)


def _formula(axes: tuple[int, ...], epsilon: float, x: Any, gamma: Any, beta: Any) -> tuple[Any, Any, Any]:
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, axes, keepdims=True)
    # The rounding errors of the sum, taken out: over equal numbers the mean is then that number, whatever the order in
    # which the device adds. What is left of them is multiplied by up to rsqrt(epsilon), in the gradient by more. Both
    # sums are of the same numbers, so that a device that can adds them up in one pass.
    near = wide - mean
    error = jnp.mean(near, axes, keepdims=True)
    spread = jnp.mean(jnp.square(near), axes, keepdims=True)
    # One that overflowed stays infinite: it shows in the gradient, and the loss is what it is.
    variance = jnp.where(jnp.isfinite(spread), jnp.maximum(spread - jnp.square(error), 0.0), spread)
    mean += error
    return ((wide - mean) * jax.lax.rsqrt(variance + epsilon) * gamma + beta).astype(x.dtype), mean, variance


def _forward(axes: tuple[int, ...], epsilon: float, x: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
    # The plain formula: a second gradient goes through the statistics, of which `_backward` takes none.
    y, mean, variance = _formula(axes, epsilon, x, gamma, beta)
    return (y, mean, variance), (x, gamma, beta, mean, variance)


def _backward(axes: tuple[int, ...], epsilon: float, held: Any, upstream: Any) -> tuple[Any, Any, Any]:
    x, gamma, beta, mean, variance = held
    # A variance that overflowed would give gradients of 0, and statistics that are not finite would go unseen.
    scale = jnp.where(jnp.isfinite(variance), jax.lax.rsqrt(variance + epsilon), jnp.nan)
    normal = (x.astype(jnp.float32) - mean) * scale
    wide = upstream[0].astype(jnp.float32)
    if set(axes) <= set(_repeated_axes(gamma, x.ndim)):
        # One scale for all that a mean goes over: the two sums are those of the parameters' gradients.
        of_gamma, of_beta = (jnp.mean(of, axes, keepdims=True) for of in (wide * normal, wide))
        of_x = scale * gamma * (wide - of_beta - normal * of_gamma)
        count = math.prod(x.shape[axis] for axis in axes)
        return of_x.astype(x.dtype), _summed_to(gamma, of_gamma * count), _summed_to(beta, of_beta * count)
    of_normal = wide * gamma
    along = jnp.mean(of_normal * normal, axes, keepdims=True)
    of_x = scale * (of_normal - jnp.mean(of_normal, axes, keepdims=True) - normal * along)
    return of_x.astype(x.dtype), _summed_to(gamma, wide * normal), _summed_to(beta, wide)


_normalized = jax.custom_vjp(_formula, nondiff_argnums=(0, 1))
_normalized.defvjp(_forward, _backward)


def _summed_to(parameter: Any, values: Any) -> Any:
    """Return the sum over the axes along which a parameter was repeated, in its shape."""
    return jnp.sum(values, _repeated_axes(parameter, values.ndim)).reshape(parameter.shape)


def _repeated_axes(parameter: Any, rank: int) -> tuple[int, ...]:
    """Return the axes of a tensor of a rank along which a parameter is repeated."""
    shape = (1,) * (rank - parameter.ndim) + tuple(parameter.shape)
    return tuple(axis for axis, size in enumerate(shape) if size == 1)
