"""Fractional pooling: windows at random positions, for fractional ratios of input to output size."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import float32, int64
from mixtrain.ops.elementwise import named
from mixtrain.ops.inputs import rank_of, sizes_of, tensor, values_of
from mixtrain.ops.primitive import Primitive, as_primitive
from mixtrain.ops.random import rand
from mixtrain.seed import generator
from mixtrain.typing import Tensor, TensorLike


def _sizes(where: str, name: str, value: Any, count: int) -> tuple[int, ...]:
    """Return one size for each axis."""
    sizes = (value,) * count if isinstance(value, int) else sizes_of(where, value)
    if len(sizes) != count or min(sizes) < 1:
        raise checks.fail_value(where, f"{name} must be {count} sizes of 1 or more", value, f"{name}={(2,) * count}")
    return tuple(sizes)


def _output_sizes(where: str, size: Any, ratio: Any, input_sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the output from `size`, or from the `ratio` of output to input sizes."""
    if (size is None) is (ratio is None):
        raise checks.fail_value(
            where, "one of output_size and output_ratio must be given", (size, ratio),
            f"output_size={(2,) * len(input_sizes)}",
        )
    rank = len(input_sizes)
    if size is not None:
        return _sizes(where, "output_size", size, rank)
    ratios = (ratio,) * rank if isinstance(ratio, float) else tuple(ratio)
    if len(ratios) != rank or not all(0 < float(value) < 1 for value in ratios):
        raise checks.fail_value(
            where, f"output_ratio must be {rank} numbers between 0 and 1", ratio, "output_ratio=0.5"
        )
    return tuple(int(length * float(value)) for length, value in zip(input_sizes, ratios, strict=True))


def _starts(samples: Tensor, size: int, window: int, count: int) -> Tensor:
    """Return the starts of the windows along one axis, (N, C, count): the last one ends with the axis."""
    last = keras.ops.full((*samples.shape, 1), size - window, dtype="int32")
    if count == 1:
        return last
    step = np.float32(size - window) / np.float32(count - 1)
    indices = np.arange(count - 1, dtype=np.float32)
    starts = keras.ops.cast((indices + samples[..., None]) * step, "int32")
    return keras.ops.concatenate([starts - keras.ops.cast(samples[..., None] * step, "int32"), last], axis=-1)


def _max_pool(
    where: str, x: Tensor, window: tuple[int, ...], sizes: tuple[int, ...], samples: TensorLike
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window, and its index in the flat image."""
    rank, lengths = len(window), tuple(x.shape[2:])
    for length, width, size in zip(lengths, window, sizes, strict=True):
        if width + size - 1 > length:
            raise checks.fail_value(
                where, f"kernel_size and output_size must fit into {length} elements", (width, size), "smaller ones"
            )
    if samples is None:
        samples = rand(x.shape[0], x.shape[1], rank, dtype=float32)
    samples = keras.ops.cast(tensor(where, samples), float32)
    flat: Tensor = 0
    for axis in range(rank):
        # As in MindSpore, samples are in the order of the axes of a volume, but for columns first in an image.
        sample = samples[..., axis if rank == 3 else 1 - axis]
        starts = _starts(sample, lengths[axis], window[axis], sizes[axis])
        indices = starts[..., None] + np.arange(window[axis], dtype=np.int32)
        # (N, C, 1, .., size, .., 1, 1, .., window, .., 1)
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = sizes[axis], window[axis]
        flat = flat * lengths[axis] + keras.ops.reshape(indices, (*indices.shape[:2], *shape))
    flat = keras.ops.reshape(flat, (*flat.shape[:2], int(np.prod(sizes)), int(np.prod(window))))
    elements = keras.ops.reshape(x, (*x.shape[:2], -1))
    windows = keras.ops.take_along_axis(elements, keras.ops.reshape(flat, (*flat.shape[:2], -1)), axis=-1)
    windows = keras.ops.reshape(windows, flat.shape)
    argmax = keras.ops.argmax(windows, axis=-1)[..., None]
    indices = keras.ops.take_along_axis(flat, keras.ops.cast(argmax, flat.dtype), axis=-1)
    output_shape = (*x.shape[:2], *sizes)
    return (
        keras.ops.reshape(keras.ops.max(windows, axis=-1), output_shape),
        backend.to_tensor(keras.ops.reshape(indices, output_shape), int64),
    )


def _fractional_max_pool(rank: int) -> Callable[..., Any]:
    name = f"fractional_max_pool{rank}d"
    where, axes = f"ops.{name}", "(N, C, H, W)" if rank == 2 else "(N, C, D, H, W)"

    def pool(
        input: TensorLike, kernel_size: int | Sequence[int], output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None, return_indices: bool = False,
        _random_samples: TensorLike | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        x = tensor(where, input)
        if rank_of(x) not in (rank + 1, rank + 2):
            raise checks.fail_value(where, f"input must have the axes {axes}, or all but N", tuple(x.shape), axes)
        batch = x if rank_of(x) == rank + 2 else keras.ops.expand_dims(x, 0)
        window = _sizes(where, "kernel_size", kernel_size, rank)
        sizes = _output_sizes(where, output_size, output_ratio, tuple(batch.shape[2:]))
        values, indices = _max_pool(where, batch, window, sizes, _random_samples)
        if rank_of(x) == rank + 1:
            values, indices = values[0], indices[0]
        return (values, indices) if checks.boolean(where, "return_indices", return_indices) else values

    return named(pool, name, (
        f"The maxima of windows of `kernel_size` at random positions (Graham, 2014), of `input` {axes}.\n\n"
        "The sizes of the result are `output_size`, or those of the input times `output_ratio`; with `return_indices` "
        "the indices of the maxima come second. `_random_samples` are the numbers in [0, 1) to use.\n\n"
        f"Example: ``ops.{name}(x, 2, output_ratio=0.5)``."
    ))


fractional_max_pool2d: Final = _fractional_max_pool(2)
fractional_max_pool3d: Final = _fractional_max_pool(3)


def _with_fixed_ksize(name: str, pool: Callable[..., Any], layout: str) -> type[Primitive]:
    def pooled(
        x: TensorLike, random_samples: TensorLike, *, ksize: int | Sequence[int], output_shape: int | Sequence[int],
        data_format: str = layout,
    ) -> tuple[Tensor, Tensor]:
        return pool(  # type: ignore[no-any-return]
            x, ksize, output_shape, return_indices=True, _random_samples=random_samples
        )

    named(pooled, name, (
        f"`{pool.__name__}` as an object that takes the random samples and returns indices too.\n\n"
        f"`ksize`: size of the windows; `output_shape`: sizes of the result; `data_format`: \"{layout}\". Example:\n"
        f"``ops.{name}(2, {(2,) * (len(layout) - 2)})(x, random_samples)``."
    ))
    return as_primitive(pooled)


FractionalMaxPoolWithFixedKsize: Final = _with_fixed_ksize(
    "FractionalMaxPoolWithFixedKsize", fractional_max_pool2d, "NCHW"
)
FractionalMaxPool3DWithFixedKsize: Final = _with_fixed_ksize(
    "FractionalMaxPool3DWithFixedKsize", fractional_max_pool3d, "NCDHW"
)


def _pool_of(reduce: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Return the function that reduces groups of rows and columns of images (N, H, W, C) between bounds."""

    def pool(x: Tensor, rows: TensorLike, columns: TensorLike, overlapping: bool) -> Tensor:
        where, overlap = "ops.fractional_pool", int(overlapping)
        value, bounds = tensor(where, x), [values_of(where, each).tolist() for each in (rows, columns)]
        cells = [
            reduce(value[:, top:bottom + overlap, left:right + overlap])
            for (top, bottom), (left, right) in itertools.product(*map(itertools.pairwise, bounds))
        ]
        shape = (value.shape[0], *(len(each) - 1 for each in bounds), value.shape[3])
        return keras.ops.reshape(keras.ops.stack(cells, axis=1), shape)

    return pool


maxima: Final = _pool_of(lambda part: keras.ops.max(part, axis=(1, 2)))
means: Final = _pool_of(
    lambda part: keras.ops.cast(keras.ops.mean(keras.ops.cast(part, "float32"), axis=(1, 2)), part.dtype)
)


class _FractionalPool(Primitive):
    """Base of the poolings of rows and columns in random groups of two neighboring sizes.

    The settings are `pooling_ratio`, the ratios of the sizes of the input (N, H, W, C) to those of the output;
    `pseudo_random` and `deterministic`, accepted; `overlapping`, whether a group includes the first element of the
    next; and `seed`, `seed2`.
    """

    def __init__(
        self, pooling_ratio: Sequence[float], pseudo_random: bool = False, overlapping: bool = False,
        deterministic: bool = False, seed: int = 0, seed2: int = 0,
    ) -> None:
        super().__init__()
        if len(pooling_ratio) != 4 or pooling_ratio[0] != 1 or pooling_ratio[3] != 1 or min(pooling_ratio) < 1:
            raise checks.fail_value(
                self.name, "pooling_ratio must be (1, height, width, 1), at least 1", pooling_ratio,
                "[1.0, 1.5, 1.5, 1.0]",
            )
        self.pooling_ratio, self.overlapping = list(pooling_ratio), overlapping
        self.pseudo_random, self.deterministic, self.seed, self.seed2 = pseudo_random, deterministic, seed, seed2

    _pool: Callable[..., Tensor]

    def _bounds(self, size: int, ratio: float, rng: np.random.Generator) -> np.ndarray:
        """Return the starts of the groups, and the end of the last."""
        count = int(size / ratio)
        longer = size - size // count * count
        lengths = size // count + rng.permutation(np.arange(count) < longer)
        return np.concatenate([[0], np.cumsum(lengths)])

    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
        value = tensor(self.name, x)
        rng = np.random.default_rng([self.seed, self.seed2]) if self.seed or self.seed2 else generator()
        rows, columns = (self._bounds(value.shape[axis], self.pooling_ratio[axis], rng) for axis in (1, 2))
        output = type(self)._pool(value, rows, columns, self.overlapping)
        return output, backend.to_tensor(rows, int64), backend.to_tensor(columns, int64)


class FractionalMaxPool(_FractionalPool):
    """The maxima of random groups of rows and columns, and the bounds of the groups (Graham, 2014).

    `pooling_ratio`: the ratios of the sizes of the input (N, H, W, C) to those of the output; `overlapping`: whether a
    group includes the first element of the next; `seed`, `seed2`: the seed of the groups, 0 and 0 for new groups in
    each call; `pseudo_random` and `deterministic` are accepted. Example:
    ``ops.FractionalMaxPool([1.0, 1.5, 1.5, 1.0])(x)``.
    """

    _pool = staticmethod(maxima)


class FractionalAvgPool(_FractionalPool):
    """The means of random groups of rows and columns; see `FractionalMaxPool`.

    Example: ``ops.FractionalAvgPool([1.0, 1.5, 1.5, 1.0])(x)``.
    Source: Graham, 2014; MindSpore, `mindspore.ops.FractionalAvgPool`.
    """

    _pool = staticmethod(means)
