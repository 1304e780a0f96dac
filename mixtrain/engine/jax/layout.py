"""Channels-last twins: the same tensor in the layout that convolutions compute in, kept between neighbouring cells.

Networks here are channels first; XLA on CPU computes convolutions channels last. So while a function is traced, what a
cell gives back is a channels-first view that remembers the channels-last tensor it was made from, its twin. The next
cell computes on the twin; a view that nobody else reads is pruned. Values outside of traces have no twins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import keras

from mixtrain.engine.jax.attached import Attached

_twins: Final = Attached()
# Where the axes N, C, H and W lie in a twin.
_PLACES: Final = (0, 3, 1, 2)


def twin_of(tensor: Any) -> Any:
    """Return the channels-last tensor that a channels-first view was made from, or None."""
    return _twins.get(tensor)


def forget_twin(tensor: Any) -> None:
    """Make the view itself be what later cells read, so that gradients with respect to it are seen."""
    _twins.remove(tensor)


def to_channels_last(tensor: Any) -> Any:
    """Return a tensor (N, C, H, W) as (N, H, W, C): its twin, or else a transpose."""
    twin = twin_of(tensor)
    return jnp.transpose(tensor, (0, 2, 3, 1)) if twin is None else twin


def from_channels_last(tensor: Any) -> Any:
    """Return a tensor (N, H, W, C) as (N, C, H, W); inside a traced function the result remembers its twin."""
    view = jnp.transpose(tensor, (0, 3, 1, 2))
    if isinstance(view, jax.core.Tracer):
        _twins.put(view, tensor)
    return view


def elementwise(function: Callable[..., Any], *tensors: Any) -> Any:
    """Apply a function that treats every element alike, on the twins where they can stand for all tensors."""
    twins = [twin_of(tensor) for tensor in tensors]
    if any(twin is not None for twin in twins):
        pairs = zip(tensors, twins, strict=True)
        twins = [_beside_twins(tensor) if twin is None else twin for tensor, twin in pairs]
    if any(twin is None for twin in twins):
        return function(*tensors)
    return from_channels_last(function(*twins))


def _beside_twins(tensor: Any) -> Any:
    """Return a scalar, or one number for each channel (N, C, 1, 1), as it broadcasts to twins; None for others."""
    if not isinstance(tensor, jax.Array) or tensor.ndim not in (0, 4):
        return None
    if tensor.ndim == 0:
        return tensor
    return to_channels_last(tensor) if tuple(tensor.shape[2:]) == (1, 1) else None


def reduce_axes(function: Callable[..., Any], tensor: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Apply ``function(tensor, axis=axes, keepdims=keepdims)``, for which the order of elements is no matter.

    Args:
        function: A reduction such as `keras.ops.mean`.
        tensor: Any tensor.
        axes: Axes counted from the front.
        keepdims: Whether they stay, with size 1.
    """
    twin = twin_of(tensor)
    kept = [axis for axis in (0, 2, 3, 1) if axis not in axes]
    if twin is None or not (keepdims or kept == sorted(kept)):
        return function(tensor, axis=axes, keepdims=keepdims)
    reduced = function(twin, axis=tuple(sorted(_PLACES[axis] for axis in axes)), keepdims=keepdims)
    return from_channels_last(reduced) if keepdims else reduced


def join_along(function: Callable[..., Any], tensors: Sequence[Any], axis: int) -> Any:
    """Apply ``function(tensors, axis=axis)``, which puts tensors one after the other, on twins where all have them."""
    twins = [twin_of(tensor) for tensor in tensors]
    if any(twin is None for twin in twins):
        return function(tensors, axis=axis)
    return from_channels_last(function(twins, axis=_PLACES[axis]))


def cast_keeping_layout(tensor: Any, dtype: str) -> Any:
    """Cast a tensor, and its twin with it."""
    return tensor if tensor.dtype == dtype else elementwise(lambda value: keras.ops.cast(value, dtype), tensor)
