"""Dropout as a function: elements, or whole channels, are set to zero at random."""

from __future__ import annotations

from typing import Any

import keras

from mixtrain import backend, checks
from mixtrain.ops.inputs import as_floats, rank_of
from mixtrain.ops.primitive import Primitive
from mixtrain.seed import stream_of


def dropout(input: Any, p: float = 0.5, training: bool = True, seed: int | None = None) -> Any:
    """In training, set elements to zero at random and scale up the others, so that the mean stays.

    Args:
        input: Tensor.
        p: Chance that an element is dropped, from 0 to 1.
        training: Whether to drop at all.
        seed: Its own stream of random numbers; None for the operation's. `set_seed` makes both repeatable.

    Returns:
        Tensor of the shape and format of `input`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> ops.dropout(mixtrain.Tensor([1.0, 2.0]), training=False).numpy().tolist()
        [1.0, 2.0]

    Source: Srivastava et al., 2014; MindSpore, `mindspore.ops.dropout`.
    """
    where, x = "ops.dropout", as_floats("ops.dropout", input)
    keep = 1.0 - checks.number(where, "p", p, at_least=0, at_most=1, example=0.5)
    if not checks.boolean(where, "training", training) or keep == 1.0:
        return x
    own = 0 if seed is None else checks.integer(where, "seed", seed, at_least=0)
    return _dropped(x, _kept(x, keep, "Dropout", own), keep)


def dropout2d(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """In training, set whole channels of `input` (N, C, ...) to zero with chance `p`, and scale up the others.

    Example: ``ops.dropout2d(x, 0.2)``. Source: Tompson et al., 2015; MindSpore, `mindspore.ops.dropout2d`.
    """
    return _of_channels("ops.dropout2d", input, p, training)


def dropout1d(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """`dropout2d` of `input` (N, C, L), with chance `p`, in `training`.

    Source: MindSpore, `mindspore.ops.dropout1d`.
    """
    return _of_channels("ops.dropout1d", input, p, training)


def dropout3d(input: Any, p: float = 0.5, training: bool = True) -> Any:
    """`dropout2d` of `input` (N, C, D, H, W), with chance `p`, in `training`.

    Source: MindSpore, `mindspore.ops.dropout3d`.
    """
    return _of_channels("ops.dropout3d", input, p, training)


def _of_channels(where: str, input: Any, p: float, training: bool) -> Any:
    x = as_floats(where, input)
    keep = 1.0 - checks.number(where, "p", p, at_least=0, at_most=1, example=0.5)
    if rank_of(x) < 2:
        raise checks.fail_value(where, "input must have axes (N, C, ...)", tuple(x.shape), "input (N, C, H, W)")
    if not checks.boolean(where, "training", training) or keep == 1.0:
        return x
    return _scaled(x, _kept_channels(x, keep), keep)


def _kept_channels(x: Any, keep: float) -> Any:
    drawn = keras.random.uniform(keras.ops.shape(x)[:2], seed=stream_of("Dropout2D"))
    return keras.ops.reshape(drawn < keep, (*keras.ops.shape(x)[:2], *(1,) * (rank_of(x) - 2)))


def _kept(x: Any, keep: float, name: str, seed: int) -> Any:
    """Draw which elements stay; in one order for both layouts, so that compiled and eager runs drop the same."""
    stream = stream_of(name, seed)
    if rank_of(x) != 4:
        return keras.random.uniform(keras.ops.shape(x), dtype="float32", seed=stream) < keep
    count, channels, height, width = keras.ops.shape(x)
    drawn = keras.random.uniform((count, height, width, channels), dtype="float32", seed=stream)
    return backend.from_channels_last(drawn < keep)


def _dropped(x: Any, kept: Any, keep: float) -> Any:
    return backend.elementwise(lambda value, stays: _scaled(value, stays, keep), x, kept)


def _scaled(x: Any, kept: Any, keep: float) -> Any:
    zeros = keras.ops.zeros_like(x)
    return zeros if keep == 0 else keras.ops.where(kept, x / keep, zeros)


class Dropout(Primitive):
    """Drop elements at random, and tell which stayed: ``(output, mask)``.

    Args:
        keep_prob: Chance that an element is kept, in (0, 1].
        Seed0: Its own stream of random numbers; 0 for the operation's.
        Seed1: Likewise, together with `Seed0`.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: An argument is out of range.

    Example:
        >>> import mixtrain, mixtrain.ops as ops
        >>> output, mask = ops.Dropout(keep_prob=1.0)(mixtrain.Tensor([1.0, 2.0]))
        >>> output.numpy().tolist(), mask.numpy().tolist()
        ([1.0, 2.0], [1.0, 1.0])

    Source: MindSpore, `mindspore.ops.Dropout`.
    """

    def __init__(self, keep_prob: float = 0.5, Seed0: int = 0, Seed1: int = 0) -> None:  # noqa: N803
        super().__init__()
        self.keep_prob = checks.number(self.name, "keep_prob", keep_prob, above=0, at_most=1, example=0.5)
        first = checks.integer(self.name, "Seed0", Seed0, at_least=0)
        self._seed = first * 65537 + checks.integer(self.name, "Seed1", Seed1, at_least=0)

    def __call__(self, x: Any) -> tuple[Any, Any]:
        """Return `x` with elements dropped, and 1 where they stayed, both in the format of `x`."""
        x = as_floats(self.name, x)
        kept = _kept(x, self.keep_prob, "Dropout", self._seed)
        return _dropped(x, kept, self.keep_prob), backend.elementwise(lambda one: keras.ops.cast(one, x.dtype), kept)


class Dropout2D(Primitive):
    """Drop whole channels at random, and tell which elements stayed: ``(output, mask)``, the mask of bools.

    Args:
        keep_prob: Chance that a channel is kept, from 0 to 1.

    Example: ``output, mask = ops.Dropout2D(keep_prob=0.8)(x)``. Source: MindSpore, `mindspore.ops.Dropout2D`.
    """

    def __init__(self, keep_prob: float = 0.5) -> None:
        super().__init__()
        self.keep_prob = checks.number(self.name, "keep_prob", keep_prob, at_least=0, at_most=1, example=0.5)

    def __call__(self, x: Any) -> tuple[Any, Any]:
        """Return `x` with channels dropped, and True where they stayed."""
        x = as_floats(self.name, x)
        kept = keras.ops.broadcast_to(_kept_channels(x, self.keep_prob), keras.ops.shape(x))
        return _scaled(x, kept, self.keep_prob), kept


class Dropout3D(Dropout2D):
    """`Dropout2D` for (N, C, D, H, W), with its `keep_prob`. Example: ``ops.Dropout3D(keep_prob=0.8)(x)``.

    Source: MindSpore, `mindspore.ops.Dropout3D`.
    """
