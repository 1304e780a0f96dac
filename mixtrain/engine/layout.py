"""Channels-last twins: the same tensor in the layout that convolutions compute in, kept between neighbouring cells.

Networks here are channels first, the libraries' convolutions channels last, and a transpose into and out of every cell
costs half a step again. So while a function is compiled, what a cell gives back is a channels-first view that
remembers the channels-last tensor it was made from, its twin. The next cell computes on the twin; a view that nobody
else reads is pruned from the program. Eager tensors have no twins: nothing would be pruned there.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

# Where the axes N, C, H and W lie in a twin.
_PLACES: Final = (0, 3, 1, 2)


class Layout(abc.ABC):
    """What is done on twins; an engine says how a view remembers its twin."""

    @abc.abstractmethod
    def twin_of(self, tensor: Any) -> Any:
        """Return the channels-last tensor that a channels-first view was made from, or None."""

    @abc.abstractmethod
    def forget_twin(self, tensor: Any) -> None:
        """Make the view itself be what later cells read, so that gradients with respect to it are seen."""

    @abc.abstractmethod
    def remember(self, view: Any, twin: Any) -> None:
        """Let a view remember its twin, if it is a value of a compiled function."""

    @abc.abstractmethod
    def transposed(self, tensor: Any, axes: tuple[int, ...]) -> Any:
        """Return a tensor with its axes in another order."""

    @abc.abstractmethod
    def rank(self, tensor: Any) -> int | None:
        """Return how many axes a tensor has; None for anything else, and where nobody knows."""

    def to_channels_last(self, tensor: Any) -> Any:
        """Return a tensor (N, C, H, W) as (N, H, W, C): its twin, or else a transpose."""
        twin = self.twin_of(tensor)
        return self.transposed(tensor, (0, 2, 3, 1)) if twin is None else twin

    def from_channels_last(self, tensor: Any) -> Any:
        """Return a tensor (N, H, W, C) as (N, C, H, W); inside a compiled function the result remembers its twin."""
        view = self.transposed(tensor, (0, 3, 1, 2))
        self.remember(view, tensor)
        return view

    def elementwise(self, function: Callable[..., Any], *tensors: Any) -> Any:
        """Apply a function that treats every element alike, on the twins where they can stand for all tensors."""
        twins = [self.twin_of(tensor) for tensor in tensors]
        if any(twin is not None for twin in twins):
            pairs = zip(tensors, twins, strict=True)
            twins = [self._beside_twins(tensor) if twin is None else twin for tensor, twin in pairs]
        if any(twin is None for twin in twins):
            return function(*tensors)
        return self.from_channels_last(function(*twins))

    def _beside_twins(self, tensor: Any) -> Any:
        """Return a scalar, or one number for each channel (N, C, 1, 1), as it broadcasts to twins; None for others."""
        rank = self.rank(tensor)
        if rank == 0:
            return tensor
        return self.to_channels_last(tensor) if rank == 4 and tuple(tensor.shape[2:]) == (1, 1) else None

    def reduce_axes(self, function: Callable[..., Any], tensor: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        """Apply ``function(tensor, axis=axes, keepdims=keepdims)``, for which the order of elements is no matter.

        Args:
            function: A reduction such as `keras.ops.mean`.
            tensor: Any tensor.
            axes: Axes counted from the front.
            keepdims: Whether they stay, with size 1.
        """
        twin = self.twin_of(tensor)
        kept = [axis for axis in (0, 2, 3, 1) if axis not in axes]
        if twin is None or not (keepdims or kept == sorted(kept)):
            return function(tensor, axis=axes, keepdims=keepdims)
        reduced = function(twin, axis=tuple(sorted(_PLACES[axis] for axis in axes)), keepdims=keepdims)
        return self.from_channels_last(reduced) if keepdims else reduced

    def join_along(self, function: Callable[..., Any], tensors: Sequence[Any], axis: int) -> Any:
        """Apply ``function(tensors, axis=axis)``, which joins tensors, on the twins where all have them."""
        twins = [self.twin_of(tensor) for tensor in tensors]
        if any(twin is None for twin in twins):
            return function(tensors, axis=axis)
        return self.from_channels_last(function(twins, axis=_PLACES[axis]))

    def cast_keeping_layout(self, tensor: Any, dtype: str) -> Any:
        """Cast a tensor, and its twin with it."""
        return tensor if tensor.dtype == dtype else self.elementwise(lambda x: keras.ops.cast(x, dtype), tensor)
