"""Products, pooling, gathering and losses; half tensors are compiled natively by XLA."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.backend.jax.device import describe_device
from mixtrain.dtype import bfloat16
from mixtrain.typing import Tensor

UNPOOLED_VOLUMES: Final = frozenset[str]()


def product(function: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    # In eager code `asarray` of an array costs as much as a small product.
    x, y = (value if isinstance(value, jax.Array) else jnp.asarray(value) for value in (x, y))
    return function(x, y)


def times_transposed(x: Tensor, weight: Tensor) -> Tensor:
    return product(lambda x, weight: jnp.matmul(x, weight.T), x, weight)


def float8_einsum(
    equation: str, x: Tensor, x_scale: Tensor, y: Tensor, y_scale: Tensor, *, dtype: str, exact: bool
) -> Tensor:
    if not describe_device().fast_float8:
        return jnp.einsum(equation, x * x_scale, y * y_scale).astype(dtype)
    operands, result = equation.split("->")
    left, right = operands.split(",")
    shared = [letter for letter in left if letter in right]
    batch = [letter for letter in shared if letter in result]
    summed = [letter for letter in shared if letter not in result]
    axes = [tuple(tuple(map(term.index, letters)) for term in (left, right)) for letters in (summed, batch)]
    # bfloat16 has the range of the sums before they are scaled, float16 has not.
    result_type = jnp.bfloat16 if dtype == bfloat16 else jnp.float32
    precision = jax.lax.Precision.HIGHEST if exact else None
    product = jax.lax.dot_general(x, y, tuple(axes), precision, preferred_element_type=result_type)
    letters = "".join([*batch, *(letter for term in (left, right) for letter in term if letter not in shared)])
    # Not times the product of the scales, which may be outside the range of float32.
    ordered = jnp.transpose(product, [letters.index(letter) for letter in result])
    return (ordered.astype(jnp.float32) * x_scale * y_scale).astype(dtype)


def pool(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    return function(jnp.asarray(x))


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


def sparse_softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    labels = jnp.asarray(labels)[..., None]
    classes = logits.shape[-1]
    log_probabilities = jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.clip(labels, 0, classes - 1), axis=-1)
    return jnp.where((labels >= 0) & (labels < classes), -log_probabilities, jnp.nan)[..., 0]


def softmax_cross_entropy(labels: Tensor, logits: Tensor) -> Tensor:
    return -jnp.sum(labels * jax.nn.log_softmax(logits), axis=-1)
