"""Tiling, broadcasting, grids and padding, with their primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import keras
import numpy as np

from mixtrain import checks
from mixtrain.ops.elementwise import renamed
from mixtrain.ops.inputs import axis_of, is_number, rank_of, sizes_of, tensor, values_of
from mixtrain.ops.primitive import REQUIRED, Primitive, as_primitive, configured, primitive
from mixtrain.typing import Tensor, TensorLike


def tile(input: TensorLike, dims: int | Sequence[int]) -> Tensor:
    """`dims` copies of `input` along each axis; missing axes come first. Example: ``ops.tile(x, (2, 2))``."""
    return keras.ops.tile(tensor("ops.tile", input), sizes_of("ops.tile", dims, name="dims"))


def broadcast_to(input: TensorLike, shape: int | Sequence[int] | Tensor) -> Tensor:
    """`input` broadcast to `shape`; -1 keeps an axis as it is. Example: ``ops.broadcast_to(x, (2, 3))``."""
    x = tensor("ops.broadcast_to", input)
    sizes = list(sizes_of("ops.broadcast_to", shape))
    known = keras.ops.shape(x)
    new_axes = len(sizes) - len(known)
    fits = new_axes >= 0
    for axis, size in enumerate(sizes):
        if isinstance(size, int) and size == -1 and axis >= new_axes:
            sizes[axis] = known[axis - new_axes]
        elif fits and axis >= new_axes and isinstance(known[axis - new_axes], int) and isinstance(size, int):
            fits = known[axis - new_axes] in (1, size)
    if not fits or any(isinstance(size, int) and size < 0 for size in sizes):
        raise ValueError(
            f"ops.broadcast_to: expected a shape that {tuple(x.shape)} broadcasts to; got "
            f"{checks.short_repr(tuple(sizes))}. Write the size of each axis from the last on, another one only where "
            "it is 1."
        )
    return keras.ops.broadcast_to(x, sizes)


def repeat_interleave(input: TensorLike, repeats: TensorLike, axis: int | None = None) -> Tensor:
    """Repeat each element of `input` along `axis` (None: flat), with its copies next to it.

    `repeats`: an int, or one for each element. Example: ``ops.repeat_interleave(Tensor([1, 2]), 2)`` is
    ``[1, 1, 2, 2]``.
    """
    x = tensor("ops.repeat_interleave", input)
    axis = None if axis is None else axis_of("ops.repeat_interleave", axis, rank_of(x))
    if not is_number(repeats):
        repeats = values_of("ops.repeat_interleave", repeats).reshape(-1).astype(np.int32)
    return keras.ops.repeat(x, repeats, axis=axis)


def repeat_elements(x: TensorLike, rep: int, axis: int = 0) -> Tensor:
    """Repeat each element of `x` `rep` times along `axis`."""
    return repeat_interleave(x, checks.integer("ops.repeat_elements", "rep", rep, at_least=1, example=2), axis)


def meshgrid(*inputs: TensorLike, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of a grid, a tensor of its shape for each of the vectors `inputs`.

    `indexing`: "xy" for the first vector along the columns, "ij" along the rows. Example:
    ``ops.meshgrid(Tensor([1, 2]), Tensor([3, 4]))`` is ``([[1, 2], [1, 2]], [[3, 3], [4, 4]])``.
    """
    checks.one_of("ops.meshgrid", "indexing", indexing, ("xy", "ij"))
    vectors = inputs[0] if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs
    return tuple(keras.ops.meshgrid(*[tensor("ops.meshgrid", vector) for vector in vectors], indexing=indexing))


PadMode = Literal["constant", "reflect", "replicate", "circular"]


def _source_indices(size: int, before: int, after: int, mode: str) -> np.ndarray:
    """Return the index of the source of each element of the padded axis."""
    indices = np.arange(-before, size + after)
    if mode == "replicate":
        return np.clip(indices, 0, size - 1)
    if mode == "circular":  # Of what a negative padding leaves.
        first, left = max(0, -before), size + min(0, before) + min(0, after)
        return (indices - first) % left + first
    # Reflection repeats after going there and back.
    period = max(2 * (size - 1), 1)
    indices = indices % period
    return np.minimum(indices, period - indices)


def pad(
    input_x: TensorLike, padding: int | Sequence[int] | Tensor, mode: PadMode = "constant", value: float | None = None
) -> Tensor:
    """Pad `input_x` by `padding`: (before, after) of the last axis, then of the one before it, and so on, in one tuple.

    `mode`: "constant" pads with `value` (None: 0), "reflect" mirrors without the edge, "replicate" repeats the edge,
    "circular" continues from the other side. Example: ``ops.pad(Tensor([[1, 2]]), (1, 2))`` is ``[[0, 1, 2, 0, 0]]``.
    """
    checks.one_of("ops.pad", "mode", mode, ("constant", "reflect", "replicate", "circular"))
    x = tensor("ops.pad", input_x)
    flat = sizes_of("ops.pad", padding, name="padding")
    if len(flat) % 2 or len(flat) > 2 * rank_of(x):
        raise checks.fail_value(
            "ops.pad", f"padding must hold pairs, at most {rank_of(x)} of them", flat, "padding=(1, 1)"
        )
    pairs = [(0, 0)] * (rank_of(x) - len(flat) // 2)
    pairs += [(flat[index], flat[index + 1]) for index in range(len(flat) - 2, -2, -2)]
    return _padded(x, pairs, mode, 0 if value is None else value)


def _padded(x: Tensor, pairs: list[tuple[int, int]], mode: str, value: float = 0) -> Tensor:
    if mode == "constant":
        # Negative padding crops.
        crops = tuple(slice(max(0, -before), None if after >= 0 else after) for before, after in pairs)
        pairs = [(max(0, before), max(0, after)) for before, after in pairs]
        return keras.ops.pad(x[crops] if crops else x, pairs, mode="constant", constant_values=value)
    for axis, (before, after) in enumerate(pairs):
        if before or after:
            x = keras.ops.take(x, _source_indices(x.shape[axis], before, after, mode), axis=axis)
    return x


class Pad(Primitive):
    """Pad with zeros by `paddings`, one pair for each axis. Example: ``ops.Pad(((0, 0), (1, 0)))(x)``."""

    def __init__(self, paddings: Sequence[Sequence[int]]) -> None:
        super().__init__()
        if not isinstance(paddings, (tuple, list)):
            raise checks.fail_type("Pad", "paddings must be a tuple of pairs", paddings, "((0, 0), (1, 1))")
        for pair in paddings:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2 or any(item < 0 for item in pair):
                raise checks.fail_value("Pad", "paddings must hold pairs of sizes", pair, "((0, 0), (1, 1))")
        self.paddings = tuple((before, after) for before, after in paddings)

    def __call__(self, input_x: TensorLike) -> Tensor:
        return _padded_by_axis("Pad", tensor("ops.Pad", input_x), self.paddings, "constant")


@as_primitive
def MirrorPad(input_x: TensorLike, paddings: TensorLike, *, mode: str = "REFLECT") -> Tensor:
    """Mirror the elements at the edges; with `mode` "REFLECT" without the edge itself, with "SYMMETRIC" including it.

    Example: ``ops.MirrorPad()(x, ((1, 1), (2, 2)))``.
    """
    pairs = [tuple(int(item) for item in pair) for pair in values_of("ops.MirrorPad", paddings)]
    return _padded_by_axis("MirrorPad", tensor("ops.MirrorPad", input_x), pairs, mode.lower())


def _padded_by_axis(where: str, x: Tensor, pairs: Any, mode: str) -> Tensor:
    if len(pairs) != rank_of(x):
        raise checks.fail_value(where, f"paddings must hold {rank_of(x)} pairs", pairs, "((0, 0), (1, 1))")
    return keras.ops.pad(x, pairs, mode=mode)


BroadcastTo = configured("BroadcastTo", broadcast_to, shape=REQUIRED)


@as_primitive
def Meshgrid(inputs: Sequence[TensorLike], *, indexing: str = "xy") -> tuple[Tensor, ...]:
    """`meshgrid` of a tuple of vectors with a fixed `indexing`. Example: ``ops.Meshgrid()((x, y))``."""
    return meshgrid(*inputs, indexing=indexing)


expand = renamed(broadcast_to, "expand", input_x="input", size="shape")
Tile = primitive("Tile", tile)
