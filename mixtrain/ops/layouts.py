"""Elements in other arrangements: columns, products of sets, channels into pixels, indices, masks and windows."""

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
from mixtrain.ops.inputs import rank_of, tensor
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.tensor_info import shape


def _at_least(axes: int) -> Callable[..., Any]:
    name = f"atleast_{axes}d"

    def one(value: Any) -> Any:
        x = tensor(f"ops.{name}", value)
        missing = axes - rank_of(x)
        if missing <= 0:
            return x
        # Two axes become those in front of a third; less get new ones around them.
        ahead = {(3, 1): 1, (3, 0): 1, (2, 1): 1, (2, 0): 1}.get((axes, rank_of(x)), 0)
        sizes = (*(1,) * ahead, *x.shape, *(1,) * (missing - ahead))
        return keras.ops.reshape(x, sizes)

    def of_all(inputs: Any) -> Any:
        return tuple(map(one, inputs)) if isinstance(inputs, (tuple, list)) else one(inputs)

    of_all.__name__ = of_all.__qualname__ = name
    of_all.__doc__ = (
        f"`inputs`, a tensor or a tuple of them, with at least {axes} axes. Example: ``ops.{name}(x)``. "
        f"Source: MindSpore, `mindspore.ops.{name}`."
    )
    return of_all


atleast_1d: Final = _at_least(1)
atleast_2d: Final = _at_least(2)
atleast_3d: Final = _at_least(3)


def column_stack(tensors: Sequence[Any]) -> Any:
    """`tensors` beside each other, vectors as columns. Source: MindSpore, `mindspore.ops.column_stack`."""
    parts = [tensor("ops.column_stack", one) for one in tensors]
    return keras.ops.concatenate(
        [keras.ops.reshape(one, (-1, 1)) if rank_of(one) < 2 else one for one in parts], axis=1
    )


def dstack(tensors: Sequence[Any]) -> Any:
    """`tensors` behind each other, along the third axis. Source: MindSpore, `mindspore.ops.dstack`."""
    return keras.ops.concatenate(list(atleast_3d([tensor("ops.dstack", one) for one in tensors])), axis=2)


def cartesian_prod(*inputs: Any) -> Any:
    """Every choice of an element from each of the vectors `inputs`, a row each.

    Source: MindSpore, `mindspore.ops.cartesian_prod`.
    """
    grids = keras.ops.meshgrid(*[tensor("ops.cartesian_prod", one) for one in inputs], indexing="ij")
    columns = [keras.ops.reshape(grid, (-1,)) for grid in grids]
    return columns[0] if len(columns) == 1 else keras.ops.stack(columns, axis=-1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Every choice of `r` elements of the vector `input`, a row each; `with_replacement`, elements may come again.

    Source: MindSpore, `mindspore.ops.combinations`.
    """
    x = tensor("ops.combinations", input)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(x.shape[0]), r)), np.int32).reshape(-1, r)
    return keras.ops.take(x, places, axis=0)


def view_as(input: Any, other: Any) -> Any:
    """`input` in the shape of `other`. Source: MindSpore, `mindspore.ops.view_as`."""
    return reshape(input, shape(other))


def pixel_shuffle(input: Any, upscale_factor: int) -> Any:
    """(..., C * r², H, W) as (..., C, H * r, W * r), where r is `upscale_factor`; of `input`.

    Source: MindSpore, `mindspore.ops.pixel_shuffle`.
    """
    where = "ops.pixel_shuffle"
    x, r = tensor(where, input), checks.integer(where, "upscale_factor", upscale_factor, at_least=1)
    *ahead, channels, height, width = x.shape
    parts = keras.ops.reshape(x, (*ahead, channels // r**2, r, r, height, width))
    n = len(ahead)
    turned = keras.ops.transpose(parts, (*range(n + 1), n + 3, n + 1, n + 4, n + 2))
    return keras.ops.reshape(turned, (*ahead, channels // r**2, height * r, width * r))


def pixel_unshuffle(input: Any, downscale_factor: int) -> Any:
    """(..., C, H * r, W * r) as (..., C * r², H, W), where r is `downscale_factor`; of `input`.

    Source: MindSpore, `mindspore.ops.pixel_unshuffle`.
    """
    where = "ops.pixel_unshuffle"
    x, r = tensor(where, input), checks.integer(where, "downscale_factor", downscale_factor, at_least=1)
    *ahead, channels, height, width = x.shape
    parts = keras.ops.reshape(x, (*ahead, channels, height // r, r, width // r, r))
    n = len(ahead)
    turned = keras.ops.transpose(parts, (*range(n + 1), n + 2, n + 4, n + 1, n + 3))
    return keras.ops.reshape(turned, (*ahead, channels * r**2, height // r, width // r))


def channel_shuffle(x: Any, groups: int) -> Any:
    """`x` (N, C, ...) with the channels of its `groups` dealt in turn.

    Source: MindSpore, `mindspore.ops.channel_shuffle`.
    """
    value = tensor("ops.channel_shuffle", x)
    count, channels, *rest = value.shape
    parts = keras.ops.swapaxes(keras.ops.reshape(value, (count, groups, channels // groups, *rest)), 1, 2)
    return keras.ops.reshape(parts, (count, channels, *rest))


def space_to_depth(x: Any, block_size: int) -> Any:
    """Blocks of `block_size` pixels of `x` (N, C, H, W) as channels.

    Source: MindSpore, `mindspore.ops.SpaceToDepth`.
    """
    value, r = tensor("ops.SpaceToDepth", x), block_size
    n, c, h, w = value.shape
    parts = keras.ops.transpose(keras.ops.reshape(value, (n, c, h // r, r, w // r, r)), (0, 3, 5, 1, 2, 4))
    return keras.ops.reshape(parts, (n, c * r * r, h // r, w // r))


def depth_to_space(x: Any, block_size: int) -> Any:
    """Channels of `x` (N, C, H, W) as blocks of `block_size` pixels.

    Source: MindSpore, `mindspore.ops.DepthToSpace`.
    """
    value, r = tensor("ops.DepthToSpace", x), block_size
    n, c, h, w = value.shape
    parts = keras.ops.transpose(keras.ops.reshape(value, (n, r, r, c // r**2, h, w)), (0, 3, 4, 1, 5, 2))
    return keras.ops.reshape(parts, (n, c // r**2, h * r, w * r))


class SpaceToDepth(Primitive):
    """Blocks of `block_size` pixels as channels. Example: ``ops.SpaceToDepth(2)(x)``.

    Source: MindSpore, `mindspore.ops.SpaceToDepth`.
    """

    def __init__(self, block_size: int) -> None:
        super().__init__()
        self.block_size = checks.integer(self.name, "block_size", block_size, at_least=2)

    def __call__(self, x: Any) -> Any:
        return space_to_depth(x, self.block_size)


class DepthToSpace(Primitive):
    """Channels as blocks of `block_size` pixels. Example: ``ops.DepthToSpace(2)(x)``.

    Source: MindSpore, `mindspore.ops.DepthToSpace`.
    """

    def __init__(self, block_size: int) -> None:
        super().__init__()
        self.block_size = checks.integer(self.name, "block_size", block_size, at_least=2)

    def __call__(self, x: Any) -> Any:
        return depth_to_space(x, self.block_size)


def kaiser_window(
    window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None
) -> Any:
    """Kaiser's window of `window_length` numbers and shape `beta`, float64 or `dtype`; one more ends a `periodic` one.

    Example: ``ops.kaiser_window(5)``. Source: MindSpore, `mindspore.ops.kaiser_window`.
    """
    count = int(window_length)
    values = np.kaiser(count + periodic, beta)[:count]
    return backend.to_tensor(values, float64 if dtype is None else as_dtype(dtype))


def sequence_mask(lengths: Any, maxlen: int | None = None) -> Any:
    """True for the first `lengths` of `maxlen` places (of the greatest length, without it).

    Source: MindSpore, `mindspore.ops.sequence_mask`.
    """
    x = tensor("ops.sequence_mask", lengths)
    most = int(backend.to_numpy(keras.ops.max(x))) if maxlen is None else int(maxlen)
    return keras.ops.cast(keras.ops.arange(most), x.dtype) < x[..., None]


def _triangle(name: str, function: Callable[..., Any], words: str) -> Callable[..., Any]:
    def places(row: int, col: int, offset: int = 0, *, dtype: Any = int64) -> Any:
        return backend.to_tensor(np.stack(function(row, offset, col)), backend.held_format(as_dtype(dtype)))

    places.__name__ = places.__qualname__ = name
    places.__doc__ = (
        f"The places {words} the diagonal `offset` of a matrix of `row` rows and `col` columns, (2, n), in `dtype`. "
        f"Example: ``ops.{name}(3, 3)``. Source: MindSpore, `mindspore.ops.{name}`."
    )
    return places


tril_indices: Final = _triangle("tril_indices", np.tril_indices, "at and below")
triu_indices: Final = _triangle("triu_indices", np.triu_indices, "at and above")


def vander(x: Any, N: int | None = None) -> Any:
    """The powers of the vector `x` as columns, `N` of them, the highest first.

    Source: MindSpore, `mindspore.ops.vander`.
    """
    value = tensor("ops.vander", x)
    powers = np.arange(value.shape[0] if N is None else N, dtype=np.int32)[::-1].copy()
    return keras.ops.power(value[:, None], keras.ops.cast(powers, value.dtype))


def logspace(start: Any, end: Any, steps: int, base: Any = 10, *, dtype: Any = float32) -> Any:
    """`base` to the powers from `start` to `end`, in `steps` steps, of `dtype`.

    Source: MindSpore, `mindspore.ops.logspace`.
    """
    ends = [keras.ops.cast(tensor("ops.logspace", one), float32) for one in (start, end)]
    return keras.ops.cast(keras.ops.power(float(base), keras.ops.linspace(*ends, int(steps))), as_dtype(dtype))


def _window(
    name: str, terms: Callable[..., np.ndarray], words: str, usual: DType = float32
) -> Callable[..., Any]:
    def values(window_length: int, periodic: bool = True, *shape: float, dtype: Any = None, **named: float) -> Any:
        counted = isinstance(window_length, numbers.Integral)
        length = int(window_length if counted else backend.to_numpy(tensor(f"ops.{name}", window_length)))
        if length <= 1:
            return keras.ops.ones((length,), backend.held_format(as_dtype(dtype or usual)))
        turn = np.arange(length) / (length if periodic else length - 1)
        return backend.to_tensor(terms(turn, *shape, **named), backend.held_format(as_dtype(dtype or usual)))

    values.__name__ = values.__qualname__ = name
    values.__doc__ = (
        f"{words} of `window_length` numbers in `dtype`, one period where it is `periodic`; `shape` and `named` are "
        f"its coefficients. Example: ``ops.{name}(5)``. Source: MindSpore, `mindspore.ops.{name}`."
    )
    return values


# Without a dtype this one is float64, as in MindSpore.
hann_window: Final = _window(
    "hann_window", lambda t: 0.5 - 0.5 * np.cos(2 * math.pi * t), "Hann's window", float64
)
hamming_window: Final = _window(
    "hamming_window", lambda t, alpha=0.54, beta=0.46: alpha - beta * np.cos(2 * math.pi * t), "Hamming's window"
)
bartlett_window: Final = _window("bartlett_window", lambda t: 1 - np.abs(2 * t - 1), "Bartlett's window")
blackman_window: Final = _window(
    "blackman_window", lambda t: 0.42 - 0.5 * np.cos(2 * math.pi * t) + 0.08 * np.cos(4 * math.pi * t),
    "Blackman's window",
)
