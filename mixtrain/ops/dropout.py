"""Dropout of elements and of whole channels, as functions and primitives."""

from __future__ import annotations

import keras

from mixtrain import checks
from mixtrain.ops import nhwc
from mixtrain.ops.inputs import as_floats, rank_of
from mixtrain.ops.primitive import Primitive, as_primitive
from mixtrain.seed import stream_of
from mixtrain.typing import Tensor, TensorLike


def dropout(input: TensorLike, p: float = 0.5, training: bool = True, seed: int | None = None) -> Tensor:
    """Drop elements of `input` with probability `p` in `training`, and scale up the others to keep the mean.

    `seed` selects a separate stream of random numbers; None for the stream of the operation. `set_seed` makes both
    repeatable (Srivastava et al., 2014). Example: ``ops.dropout(x, 0.1)``.
    """
    where, x = "ops.dropout", as_floats("ops.dropout", input)
    keep = 1.0 - checks.number(where, "p", p, at_least=0, at_most=1, example=0.5)
    if not checks.boolean(where, "training", training) or keep == 1.0:
        return x
    number = 0 if seed is None else checks.integer(where, "seed", seed, at_least=0)
    return _drop(x, _keep_mask(x, keep, number), keep)


def dropout2d(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """Drop whole channels of `input` (N, C, ...) with probability `p` in `training`, and scale up the others.

    Example: ``ops.dropout2d(x, 0.2)``. Source: Tompson et al., 2015; MindSpore, `mindspore.ops.dropout2d`.
    """
    return _drop_channels("ops.dropout2d", input, p, training)


def dropout1d(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout2d` of `input` (N, C, L), with probability `p` in `training`."""
    return _drop_channels("ops.dropout1d", input, p, training)


def dropout3d(input: TensorLike, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout2d` of `input` (N, C, D, H, W), with probability `p` in `training`."""
    return _drop_channels("ops.dropout3d", input, p, training)


def _drop_channels(where: str, input: TensorLike, p: float, training: bool) -> Tensor:
    x = as_floats(where, input)
    keep = 1.0 - checks.number(where, "p", p, at_least=0, at_most=1, example=0.5)
    if rank_of(x) < 2:
        raise checks.fail_value(where, "input must have axes (N, C, ...)", tuple(x.shape), "input (N, C, H, W)")
    if not checks.boolean(where, "training", training) or keep == 1.0:
        return x
    return _apply_mask(x, _channel_mask(x, keep), keep)


def _channel_mask(x: Tensor, keep: float) -> Tensor:
    uniform = keras.random.uniform(keras.ops.shape(x)[:2], seed=stream_of("Dropout2D"))
    return keras.ops.reshape(uniform < keep, (*keras.ops.shape(x)[:2], *(1,) * (rank_of(x) - 2)))


def _keep_mask(x: Tensor, keep: float, seed: int) -> Tensor:
    """Sample which elements to keep."""
    stream = stream_of("Dropout", seed)
    if rank_of(x) != 4:
        return keras.random.uniform(keras.ops.shape(x), dtype="float32", seed=stream) < keep
    # Sampled channels-last for both layouts, so that compiled and eager runs drop the same elements.
    batch, channels, height, width = keras.ops.shape(x)
    uniform = keras.random.uniform((batch, height, width, channels), dtype="float32", seed=stream)
    return nhwc.from_channels_last(uniform < keep)


def _drop(x: Tensor, mask: Tensor, keep: float) -> Tensor:
    return nhwc.elementwise(lambda value, kept: _apply_mask(value, kept, keep), x, mask)


def _apply_mask(x: Tensor, mask: Tensor, keep: float) -> Tensor:
    zeros = keras.ops.zeros_like(x)
    return zeros if keep == 0 else keras.ops.where(mask, x / keep, zeros)


@as_primitive
def Dropout(x: TensorLike, *, keep_prob: float = 0.5, Seed0: int = 0, Seed1: int = 0) -> tuple[Tensor, Tensor]:
    """Drop elements at random, and return 1 where they are kept: ``(output, mask)``, in the dtype of `x`.

    `keep_prob` is the probability to keep an element, in (0, 1]. `Seed0` and `Seed1` select a separate stream of random
    numbers; 0 for the stream of the operation. Example: ``output, mask = ops.Dropout(keep_prob=0.9)(x)``.
    """
    x = as_floats("Dropout", x)
    mask = _keep_mask(x, keep_prob, Seed0 * 65537 + Seed1)
    return _drop(x, mask, keep_prob), nhwc.elementwise(lambda value: keras.ops.cast(value, x.dtype), mask)


class Dropout2D(Primitive):
    """Drop channels at random, keep them with `keep_prob`: ``output, mask = ops.Dropout2D(keep_prob=0.8)(x)``."""

    def __init__(self, keep_prob: float = 0.5) -> None:
        super().__init__()
        self.keep_prob = checks.number(self.name, "keep_prob", keep_prob, at_least=0, at_most=1, example=0.5)

    def __call__(self, x: TensorLike) -> tuple[Tensor, Tensor]:
        """Return `x` with channels dropped, and True where they are kept."""
        x = as_floats(self.name, x)
        mask = keras.ops.broadcast_to(_channel_mask(x, self.keep_prob), keras.ops.shape(x))
        return _apply_mask(x, mask, self.keep_prob), mask


class Dropout3D(Dropout2D):
    """`Dropout2D` for (N, C, D, H, W), with its `keep_prob`. Example: ``ops.Dropout3D(keep_prob=0.8)(x)``."""
