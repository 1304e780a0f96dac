"""Poolings whose windows begin at random places: fractional ratios of the sizes of input and output."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import float32, int64
from mixtrain.ops.inputs import rank_of, sizes_of, tensor
from mixtrain.ops.primitive import Primitive
from mixtrain.ops.random import rand
from mixtrain.seed import generator


def _sizes(where: str, name: str, value: Any, count: int) -> tuple[int, ...]:
    """Return one size for each axis."""
    sizes = (value,) * count if isinstance(value, int) else sizes_of(where, value)
    if len(sizes) != count or min(sizes) < 1:
        raise checks.fail_value(where, f"{name} must be {count} sizes of 1 or more", value, f"{name}={(2,) * count}")
    return tuple(sizes)


def _output_sizes(where: str, size: Any, ratio: Any, given: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of the output, from themselves or from their ratios to those of the input."""
    if (size is None) is (ratio is None):
        raise checks.fail_value(
            where, "one of output_size and output_ratio must be given", (size, ratio),
            f"output_size={(2,) * len(given)}",
        )
    if size is not None:
        return _sizes(where, "output_size", size, len(given))
    ratios = (ratio,) * len(given) if isinstance(ratio, float) else tuple(ratio)
    if len(ratios) != len(given) or not all(0 < float(one) < 1 for one in ratios):
        raise checks.fail_value(
            where, f"output_ratio must be {len(given)} numbers between 0 and 1", ratio, "output_ratio=0.5"
        )
    return tuple(int(have * float(one)) for have, one in zip(given, ratios, strict=True))


def _starts(samples: Any, size: int, window: int, count: int) -> Any:
    """Return where the windows along one axis begin, (N, C, count): the last one ends with the axis."""
    last = keras.ops.full((*samples.shape, 1), size - window, dtype="int32")
    if count == 1:
        return last
    step = np.float32(size - window) / np.float32(count - 1)
    numbers = np.arange(count - 1, dtype=np.float32)
    places = keras.ops.cast((numbers + samples[..., None]) * step, "int32")
    return keras.ops.concatenate([places - keras.ops.cast(samples[..., None] * step, "int32"), last], axis=-1)


def _pooled(where: str, x: Any, window: tuple[int, ...], sizes: tuple[int, ...], samples: Any) -> tuple[Any, Any]:
    """Return the largest elements of each window, and where they are among those of their image."""
    count, given = len(window), tuple(x.shape[2:])
    for have, part, wanted in zip(given, window, sizes, strict=True):
        if part + wanted - 1 > have:
            raise checks.fail_value(
                where, f"kernel_size and output_size must fit into {have} elements", (part, wanted), "smaller ones"
            )
    if samples is None:
        samples = rand(x.shape[0], x.shape[1], count, dtype=float32)
    samples = keras.ops.cast(tensor(where, samples), float32)
    flat: Any = 0
    for axis in range(count):
        # As in the reference, an image's samples are of columns, then of rows; a volume's are in the order of its axes.
        sample = samples[..., axis if count == 3 else 1 - axis]
        begins = _starts(sample, given[axis], window[axis], sizes[axis])
        places = begins[..., None] + np.arange(window[axis], dtype=np.int32)
        # (N, C, 1, .., size, .., 1, 1, .., window, .., 1)
        spread = [1] * (2 * count)
        spread[axis], spread[count + axis] = sizes[axis], window[axis]
        flat = flat * given[axis] + keras.ops.reshape(places, (*places.shape[:2], *spread))
    flat = keras.ops.reshape(flat, (*flat.shape[:2], int(np.prod(sizes)), int(np.prod(window))))
    elements = keras.ops.reshape(x, (*x.shape[:2], -1))
    chosen = keras.ops.take_along_axis(elements, keras.ops.reshape(flat, (*flat.shape[:2], -1)), axis=-1)
    chosen = keras.ops.reshape(chosen, flat.shape)
    best = keras.ops.argmax(chosen, axis=-1)[..., None]
    places = keras.ops.take_along_axis(flat, keras.ops.cast(best, flat.dtype), axis=-1)
    shape = (*x.shape[:2], *sizes)
    return (
        keras.ops.reshape(keras.ops.max(chosen, axis=-1), shape),
        backend.to_tensor(keras.ops.reshape(places, shape), int64),
    )


def _fractional(name: str, count: int) -> Callable[..., Any]:
    where, axes = f"ops.{name}", "(N, C, H, W)" if count == 2 else "(N, C, D, H, W)"

    def pool(
        input: Any, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        x = tensor(where, input)
        if rank_of(x) not in (count + 1, count + 2):
            raise checks.fail_value(where, f"input must have the axes {axes}, or all but N", tuple(x.shape), axes)
        whole = x if rank_of(x) == count + 2 else keras.ops.expand_dims(x, 0)
        window = _sizes(where, "kernel_size", kernel_size, count)
        sizes = _output_sizes(where, output_size, output_ratio, tuple(whole.shape[2:]))
        found = _pooled(where, whole, window, sizes, _random_samples)
        if rank_of(x) == count + 1:
            found = found[0][0], found[1][0]
        return found if checks.boolean(where, "return_indices", return_indices) else found[0]

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = (
        f"The largest elements of windows of `kernel_size` whose places are drawn, of `input` {axes}.\n\n"
        "The sizes of the result are `output_size`, or those of the input times `output_ratio`; with `return_indices` "
        "the places of the elements come second. `_random_samples` are numbers in [0, 1) in place of drawn ones.\n\n"
        f"Example: ``ops.{name}(x, 2, output_ratio=0.5)``. Source: Graham, 2014; MindSpore, `mindspore.ops.{name}`."
    )
    return pool


fractional_max_pool2d: Final = _fractional("fractional_max_pool2d", 2)
fractional_max_pool3d: Final = _fractional("fractional_max_pool3d", 3)


class FractionalMaxPool3DWithFixedKsize(Primitive):
    """`fractional_max_pool3d` as an object that is called with the samples; returns places too.

    Args:
        ksize: The window.
        output_shape: The sizes of the result.
        data_format: "NCDHW", the only one.

    Example: ``ops.FractionalMaxPool3DWithFixedKsize(2, (2, 2, 2))(x, random_samples)``.
    Source: MindSpore, `mindspore.ops.FractionalMaxPool3DWithFixedKsize`.
    """

    def __init__(self, ksize: Any, output_shape: Any, data_format: str = "NCDHW") -> None:
        super().__init__()
        self.ksize, self.output_shape = ksize, output_shape
        self.data_format = checks.one_of(self.name, "data_format", data_format, ("NCDHW",))

    def __call__(self, x: Any, random_samples: Any) -> tuple[Any, Any]:
        return fractional_max_pool3d(  # type: ignore[no-any-return]
            x, self.ksize, self.output_shape, return_indices=True, _random_samples=random_samples
        )


class _FractionalPool(Primitive):
    """Rows and columns in random groups of two neighboring sizes, each pooled to one element.

    The settings are `pooling_ratio`, the sizes of the input (N, H, W, C) through those of the output; `pseudo_random`
    and `deterministic`, accepted; `overlapping`, whether a group holds the first element of the next; `seed`, `seed2`.
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

    def _pool(self, part: Any) -> Any:
        raise NotImplementedError

    def _bounds(self, size: int, ratio: float, drawn: np.random.Generator) -> np.ndarray:
        """Return where groups begin, and the end of the last."""
        count = int(size / ratio)
        longer = size - size // count * count
        lengths = size // count + drawn.permutation(np.arange(count) < longer)
        return np.concatenate([[0], np.cumsum(lengths)])

    def __call__(self, x: Any) -> tuple[Any, Any, Any]:
        value = tensor(self.name, x)
        seeded = self.seed or self.seed2
        drawn = np.random.default_rng([self.seed, self.seed2]) if seeded else generator()
        rows, columns = (self._bounds(value.shape[axis], self.pooling_ratio[axis], drawn) for axis in (1, 2))
        more = int(self.overlapping)
        cells = [
            self._pool(value[:, top:bottom + more, left:right + more])
            for (top, bottom), (left, right) in itertools.product(itertools.pairwise(rows), itertools.pairwise(columns))
        ]
        shape = (value.shape[0], len(rows) - 1, len(columns) - 1, value.shape[3])
        found = keras.ops.reshape(keras.ops.stack(cells, axis=1), shape)
        return found, backend.to_tensor(rows, int64), backend.to_tensor(columns, int64)


class FractionalMaxPool(_FractionalPool):
    """The largest of random groups of rows and columns, and where groups begin and end.

    Args:
        pooling_ratio: The sizes of the input (N, H, W, C) through those of the output.
        pseudo_random: Accepted; without effect.
        overlapping: Whether a group holds the first element of the next.
        deterministic: Accepted; without effect.
        seed: With `seed2`, what the groups are drawn by; 0 and 0 for new ones each time.
        seed2: See `seed`.

    Example: ``ops.FractionalMaxPool([1.0, 1.5, 1.5, 1.0])(x)``.
    Source: Graham, 2014; MindSpore, `mindspore.ops.FractionalMaxPool`.
    """

    def _pool(self, part: Any) -> Any:
        return keras.ops.max(part, axis=(1, 2))


class FractionalAvgPool(_FractionalPool):
    """The means of random groups of rows and columns; see `FractionalMaxPool`.

    Example: ``ops.FractionalAvgPool([1.0, 1.5, 1.5, 1.0])(x)``.
    Source: Graham, 2014; MindSpore, `mindspore.ops.FractionalAvgPool`.
    """

    def _pool(self, part: Any) -> Any:
        return keras.ops.cast(keras.ops.mean(keras.ops.cast(part, "float32"), axis=(1, 2)), part.dtype)
