"""Gradients of a step on a GPU: small ones become parts of vectors, and all are checked together, in few kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.backend.signatures import Gradients
from mixtrain.typing import Tensor

# The largest small tensor, 1 MiB in float32: a GPU reads it in less time than it takes to launch a kernel.
MAX_SMALL_SIZE: Final = 2**18
# XLA (jaxlib 0.10) computes the parts of a vector in the kernel that joins them if that has at most 96 operands; with
# this many parts it has.
_MAX_PARTS: Final = 40
# A row of values is reduced in one kernel, then all rows together. XLA would reduce each large gradient in two.
_ROW_SIZE: Final = 4096
_MIN_ROW_SIZE: Final = 256


def check_packed(gradients: Gradients, *, finite: bool) -> tuple[list[Tensor | None], Tensor, Tensor]:
    """Return dense gradients to use from here on, whether all are finite (if `finite`, else True), and their norm.

    A vector is checked by one kernel, in place of one or two for each of its parts; the update reads its parts.
    """
    present = {index: gradient for index, gradient in enumerate(gradients) if gradient is not None}
    small = [index for index, gradient in present.items() if gradient.size <= MAX_SMALL_SIZE]
    # cuDNN returns gradients of its kernels in a layout of its own. An update that reads them cannot write in place, so
    # XLA copies weights and slots. A vector has one layout.
    foreign = [index for index, gradient in present.items() if gradient.size > MAX_SMALL_SIZE and gradient.ndim > 3]
    groups = [[index] for index in foreign]
    for dtype in sorted({present[index].dtype for index in small}, key=str):
        of_dtype = [index for index in small if present[index].dtype == dtype]
        groups += [of_dtype[start : start + _MAX_PARTS] for start in range(0, len(of_dtype), _MAX_PARTS)]
    # Without the barriers XLA takes the vectors apart again, and computes the norm in the kernels of the update.
    vectors = jax.lax.optimization_barrier([
        jnp.concatenate([jnp.ravel(present[index]) for index in indices]) for indices in groups
    ])
    rows = [gradient for index, gradient in present.items() if index not in {*small, *foreign}]
    rows += [jnp.pad(vector, (0, -vector.size % _ROW_SIZE)).reshape(-1, _ROW_SIZE) for vector in vectors]
    flag, norm = _finite_and_norm(rows, finite=finite)
    for indices, vector in zip(groups, vectors, strict=True):
        ends = np.cumsum([present[index].size for index in indices])
        for index, part in zip(indices, jnp.split(vector, ends[:-1]), strict=True):
            present[index] = part.reshape(present[index].shape)
    return [present.get(index) for index in range(len(gradients))], flag, norm


def _finite_and_norm(tensors: Sequence[Tensor], *, finite: bool) -> tuple[Tensor, Tensor]:
    """Return whether tensors are finite (if `finite`, else True), and their norm, each read once."""

    def add(one: Sequence[Tensor], other: Sequence[Tensor]) -> tuple[Tensor, ...]:
        sums = (one[0] + other[0],)
        return (*sums, one[1] & other[1]) if finite else sums

    starts = (np.float32(0), np.bool_(True)) if finite else (np.float32(0),)
    parts = []
    for tensor in tensors:
        values = (jnp.square(tensor.astype(jnp.float32)), jnp.isfinite(tensor))[: len(starts)]
        parts.append([jnp.ravel(part) for part in jax.lax.reduce(values, starts, add, _row_axes(tensor.shape))])
    joined = jax.lax.optimization_barrier([jnp.concatenate(column) for column in zip(*parts, strict=True)])
    norm = jnp.sqrt(jnp.sum(joined[0]))
    return jnp.all(joined[1]) if finite else jnp.array(True), norm


def _row_axes(shape: Sequence[int]) -> list[int]:
    """Return the last axes of a shape, as few as have enough values together."""
    first = len(shape) - 1
    while first > 0 and math.prod(shape[first:]) < _MIN_ROW_SIZE:
        first -= 1
    return list(range(first, len(shape)))
