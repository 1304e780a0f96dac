"""Rearranged elements and generated ones: columns, pixel shuffles, index grids, masks and window functions."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import DType, as_dtype, float32, float64, int64
from mixtrain.ops.array import reshape
from mixtrain.ops.elementwise import named
from mixtrain.ops.inputs import rank_of, tensor
from mixtrain.ops.primitive import as_primitive
from mixtrain.ops.tensor_info import shape
from mixtrain.typing import DTypeLike, Tensor, TensorLike


def _at_least(rank: int) -> Callable[..., Any]:
    name = f"atleast_{rank}d"

    def expand(value: TensorLike) -> Tensor:
        x = tensor(f"ops.{name}", value)
        missing = rank - rank_of(x)
        if missing <= 0:
            return x
        # As in NumPy: a vector becomes (1, N) or (1, N, 1), a matrix (M, N, 1).
        leading = 1 if rank > 1 and rank_of(x) < 2 else 0
        return keras.ops.reshape(x, (*(1,) * leading, *x.shape, *(1,) * (missing - leading)))

    def at_least(inputs: TensorLike | Sequence[TensorLike]) -> Tensor | tuple[Tensor, ...]:
        return tuple(map(expand, inputs)) if isinstance(inputs, (tuple, list)) else expand(inputs)

    doc = f"`inputs`, a tensor or a tuple of them, with at least {rank} axes. Example: ``ops.{name}(x)``."
    return named(at_least, name, doc)


atleast_1d: Final = _at_least(1)
atleast_2d: Final = _at_least(2)
atleast_3d: Final = _at_least(3)


def column_stack(tensors: Sequence[TensorLike]) -> Tensor:
    """Concatenate `tensors` along their second axis, vectors as columns."""
    values = [tensor("ops.column_stack", value) for value in tensors]
    columns = [keras.ops.reshape(value, (-1, 1)) if rank_of(value) < 2 else value for value in values]
    return keras.ops.concatenate(columns, axis=1)


def dstack(tensors: Sequence[TensorLike]) -> Tensor:
    """Concatenate `tensors` along their third axis."""
    return keras.ops.concatenate(list(atleast_3d([tensor("ops.dstack", value) for value in tensors])), axis=2)


def cartesian_prod(*inputs: TensorLike) -> Tensor:
    """The Cartesian product of the vectors `inputs`, one combination per row."""
    grids = keras.ops.meshgrid(*[tensor("ops.cartesian_prod", value) for value in inputs], indexing="ij")
    columns = [keras.ops.reshape(grid, (-1,)) for grid in grids]
    return columns[0] if len(columns) == 1 else keras.ops.stack(columns, axis=-1)


def combinations(input: TensorLike, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All combinations of `r` elements of the vector `input`, one per row; `with_replacement`, elements may repeat."""
    x = tensor("ops.combinations", input)
    checks.integer("ops.combinations", "r", r, at_least=1)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    indices = np.array(list(choose(range(x.shape[0]), r)), np.int32).reshape(-1, r)
    return keras.ops.take(x, indices, axis=0)


def view_as(input: TensorLike, other: TensorLike) -> Tensor:
    """`input` in the shape of `other`."""
    return reshape(input, shape(other))


def pixel_shuffle(input: TensorLike, upscale_factor: int) -> Tensor:
    """Rearrange `input` (..., C * r², H, W) to (..., C, H * r, W * r), where r is `upscale_factor`."""
    where = "ops.pixel_shuffle"
    x, r = tensor(where, input), checks.integer(where, "upscale_factor", upscale_factor, at_least=1)
    *batch, channels, height, width = x.shape
    if channels % r**2:
        raise checks.fail_value(where, f"the channels must divide by {r**2}", channels, "less")
    blocks = keras.ops.reshape(x, (*batch, channels // r**2, r, r, height, width))
    n = len(batch)
    pixels = keras.ops.transpose(blocks, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return keras.ops.reshape(pixels, (*batch, channels // r**2, height * r, width * r))


def pixel_unshuffle(input: TensorLike, downscale_factor: int) -> Tensor:
    """Rearrange `input` (..., C, H * r, W * r) to (..., C * r², H, W), where r is `downscale_factor`."""
    where = "ops.pixel_unshuffle"
    x, r = tensor(where, input), checks.integer(where, "downscale_factor", downscale_factor, at_least=1)
    *batch, channels, height, width = x.shape
    pixels = keras.ops.reshape(x, (*batch, channels, height // r, r, width // r, r))
    n = len(batch)
    blocks = keras.ops.transpose(pixels, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return keras.ops.reshape(blocks, (*batch, channels * r**2, height // r, width // r))


def channel_shuffle(x: TensorLike, groups: int) -> Tensor:
    """Interleave the channels of the `groups` of `x` (N, C, ...)."""
    value = tensor("ops.channel_shuffle", x)
    batch, channels, *sizes = value.shape
    grouped = keras.ops.swapaxes(keras.ops.reshape(value, (batch, groups, channels // groups, *sizes)), 1, 2)
    return keras.ops.reshape(grouped, (batch, channels, *sizes))


def space_to_depth(x: TensorLike, block_size: int) -> Tensor:
    """Move blocks of `block_size` x `block_size` pixels of `x` (N, C, H, W) into channels."""
    value, r = tensor("ops.SpaceToDepth", x), block_size
    n, c, h, w = value.shape
    blocks = keras.ops.transpose(keras.ops.reshape(value, (n, c, h // r, r, w // r, r)), (0, 3, 5, 1, 2, 4))
    return keras.ops.reshape(blocks, (n, c * r * r, h // r, w // r))


def depth_to_space(x: TensorLike, block_size: int) -> Tensor:
    """Move channels of `x` (N, C, H, W) into blocks of `block_size` x `block_size` pixels."""
    value, r = tensor("ops.DepthToSpace", x), block_size
    n, c, h, w = value.shape
    pixels = keras.ops.transpose(keras.ops.reshape(value, (n, r, r, c // r**2, h, w)), (0, 3, 4, 1, 5, 2))
    return keras.ops.reshape(pixels, (n, c // r**2, h * r, w * r))


@as_primitive
def SpaceToDepth(x: TensorLike, *, block_size: int) -> Tensor:
    """Move blocks of `block_size` pixels into channels. Example: ``ops.SpaceToDepth(2)(x)``."""
    return space_to_depth(x, block_size)


@as_primitive
def DepthToSpace(x: TensorLike, *, block_size: int) -> Tensor:
    """Move channels into blocks of `block_size` pixels. Example: ``ops.DepthToSpace(2)(x)``."""
    return depth_to_space(x, block_size)


def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DTypeLike | None = None
) -> Tensor:
    """The Kaiser window of `window_length` numbers, `beta`, `dtype` (float64), `periodic`: ``ops.kaiser_window(5)``."""
    length = int(window_length)
    # A periodic window is a symmetric one of one more number, without its last; a window of one number is 1.
    values = np.kaiser(length + (periodic and length > 1), beta)[:length]
    return backend.to_tensor(values, float64 if dtype is None else as_dtype(dtype))


def sequence_mask(lengths: TensorLike, maxlen: int | None = None) -> Tensor:
    """Masks that are True for the first `lengths` of `maxlen` positions; None is the greatest length."""
    x = tensor("ops.sequence_mask", lengths)
    size = int(backend.to_numpy(keras.ops.max(x))) if maxlen is None else int(maxlen)
    return keras.ops.cast(keras.ops.arange(size), x.dtype) < x[..., None]


def _triangle_indices(name: str, function: Callable[..., Any], position: str) -> Callable[..., Tensor]:
    def indices(row: int, col: int, offset: int = 0, *, dtype: DTypeLike = int64) -> Tensor:
        return backend.to_tensor(np.stack(function(row, offset, col)), backend.canonical_dtype(as_dtype(dtype)))

    doc = f"The indices (2, n) at and {position} the diagonal `offset` of a `row` x `col` matrix, in `dtype`."
    return named(indices, name, f"{doc} Example: ``ops.{name}(3, 3)``.")


tril_indices: Final = _triangle_indices("tril_indices", np.tril_indices, "below")
triu_indices: Final = _triangle_indices("triu_indices", np.triu_indices, "above")


def vander(x: TensorLike, N: int | None = None) -> Tensor:
    """The Vandermonde matrix of the vector `x`: `N` powers as columns, the highest first."""
    value = tensor("ops.vander", x)
    powers = np.arange(value.shape[0] if N is None else N, dtype=np.int32)[::-1].copy()
    return keras.ops.power(value[:, None], keras.ops.cast(powers, value.dtype))


def logspace(start: TensorLike, end: TensorLike, steps: int, base: float = 10, *, dtype: DTypeLike = float32) -> Tensor:
    """`steps` numbers from `base` ** `start` to `base` ** `end`, evenly spaced on a log scale, in `dtype`."""
    start, end = (keras.ops.cast(tensor("ops.logspace", value), float32) for value in (start, end))
    exponents = keras.ops.linspace(start, end, int(steps))
    return keras.ops.cast(keras.ops.power(float(base), exponents), as_dtype(dtype))


def _window(
    name: str, function: Callable[..., np.ndarray], title: str, default_dtype: DType = float32
) -> Callable[..., Tensor]:
    def window(
        window_length: int, periodic: bool = True, *shape: float, dtype: DTypeLike | None = None, **kwargs: float
    ) -> Tensor:
        is_int = isinstance(window_length, numbers.Integral)
        length = int(window_length if is_int else backend.to_numpy(tensor(f"ops.{name}", window_length)))
        dtype = backend.canonical_dtype(as_dtype(dtype or default_dtype))
        if length <= 1:
            return keras.ops.ones((length,), dtype)
        phase = np.arange(length) / (length if periodic else length - 1)
        return backend.to_tensor(function(phase, *shape, **kwargs), dtype)

    doc = (
        f"{title} of `window_length` numbers in `dtype`, `periodic` or symmetric; `shape` and `kwargs` are its "
        f"coefficients. Example: ``ops.{name}(5)``."
    )
    return named(window, name, doc)


# The default dtype of this window is float64, as in MindSpore.
hann_window: Final = _window("hann_window", lambda t: 0.5 - 0.5 * np.cos(2 * math.pi * t), "The Hann window", float64)
hamming_window: Final = _window(
    "hamming_window", lambda t, alpha=0.54, beta=0.46: alpha - beta * np.cos(2 * math.pi * t), "The Hamming window"
)
bartlett_window: Final = _window("bartlett_window", lambda t: 1 - np.abs(2 * t - 1), "The Bartlett window")
blackman_window: Final = _window(
    "blackman_window", lambda t: 0.42 - 0.5 * np.cos(2 * math.pi * t) + 0.08 * np.cos(4 * math.pi * t),
    "The Blackman window",
)
