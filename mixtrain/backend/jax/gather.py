"""Gather operations that Keras does not have."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.typing import Tensor


def gather_in_batches(x: Tensor, indices: Tensor, *, axis: int, batch_axes: int) -> Tensor:
    axis = axis % jnp.ndim(x) - batch_axes
    take = functools.partial(jnp.take, axis=axis)
    for _ in range(batch_axes):
        take = jax.vmap(take)
    return take(jnp.asarray(x), jnp.asarray(indices))


def gather_nd(x: Tensor, indices: Tensor) -> Tensor:
    indices = jnp.asarray(indices)
    return jnp.asarray(x)[tuple(indices[..., axis] for axis in range(indices.shape[-1]))]


def boolean_mask(x: Tensor, mask: Tensor) -> Tensor:
    _check_known("choosing marked elements", mask)
    return jnp.asarray(x)[np.asarray(mask)]


def unique_with_indices(x: Tensor) -> tuple[Tensor, Tensor]:
    _check_known("unique elements", x)
    values, first, inverse = np.unique(np.asarray(x).reshape(-1), return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.argsort(order)
    return jnp.asarray(values[order]), jnp.asarray(rank[inverse].reshape(np.shape(x)), jnp.int32)


def _check_known(where: str, value: Tensor) -> None:
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{where}: with the JAX backend, expected values that are known, for they decide the size of the result; "
            "got a tensor of a compiled function. Write it outside, in PYNATIVE_MODE, or set KERAS_BACKEND=tensorflow."
        )
