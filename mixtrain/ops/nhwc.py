"""Channels-last views: results in the layout in which convolutions compute, kept between neighboring cells.

Networks here are channels first, the libraries' convolutions channels last, and a transpose into and out of every cell
makes a step half as long again. So in a trace a convolution returns a `ChannelsFirstView`: it has the channels-last
result, on which the next cell computes, besides the channels-first tensor. A transpose that is not used is pruned from
the program. Eager tensors have no views: nothing would be pruned there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

from mixtrain import backend
from mixtrain.backend import backend_value, nhwc_of
from mixtrain.typing import BackendTensor, Tensor

# The axes of N, C, H and W in a channels-last tensor.
_POSITIONS: Final = (0, 3, 1, 2)


class ChannelsFirstView(backend.LayoutView):
    """A tensor (N, C, H, W) that also has the channels-last tensor (N, H, W, C) it was made of.

    Other attributes are those of the backend tensor.

    `nhwc`: The channels-last backend tensor.
    """

    __slots__ = ("_nchw", "_nhwc")

    def __init__(self, nhwc: BackendTensor) -> None:
        self._nhwc = nhwc
        # Not on first use, which may be inside a branch or loop, whose tensors must not leak.
        self._nchw = keras.ops.transpose(nhwc, (0, 3, 1, 2))

    def backend_tensor(self) -> BackendTensor:
        """Return the channels-first backend tensor."""
        return self._nchw

    @property
    def nhwc(self) -> Tensor:
        """The channels-last backend tensor."""
        return self._nhwc

    @property
    def dtype(self) -> Any:
        """The backend's dtype."""
        return self._nhwc.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape (N, C, H, W)."""
        return tuple(self._nchw.shape)

    @property
    def ndim(self) -> int:
        """4."""
        return 4

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nchw, name)

    def __getitem__(self, index: Any) -> BackendTensor:
        return self._nchw[index]

    def __len__(self) -> int:
        return len(self._nchw)

    def __neg__(self) -> Tensor:
        return elementwise(operator.neg, self)

    def __abs__(self) -> Tensor:
        return elementwise(operator.abs, self)

    def __matmul__(self, other: Any) -> Tensor:
        return self._nchw @ other

    def __rmatmul__(self, other: Any) -> Tensor:
        return other @ self._nchw


def _binary(compute: Callable[[BackendTensor, Any], BackendTensor]) -> Callable[[Any, Any], BackendTensor]:
    def apply(self: Any, other: Any) -> Tensor:
        if isinstance(other, (bool, int, float)):
            return elementwise(lambda value: compute(value, other), self)
        return elementwise(compute, self, _value_of(other))

    return apply


def _reflected(compute: Callable[[Any, BackendTensor], BackendTensor]) -> Callable[[Any, Any], BackendTensor]:
    return _binary(lambda value, other: compute(other, value))


def _value_of(value: Any) -> Any:
    return value.value if isinstance(value, keras.Variable) else value


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(ChannelsFirstView, f"__{_name}__", _binary(getattr(operator, _name)))
    setattr(ChannelsFirstView, f"__r{_name}__", _reflected(getattr(operator, _name)))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(ChannelsFirstView, f"__{_name}__", _binary(getattr(operator, _name)))
ChannelsFirstView.__hash__ = object.__hash__  # type: ignore[method-assign]


def to_channels_last(tensor: Tensor) -> Tensor:
    """Return a tensor (N, C, ...) as (N, ..., C): the tensor that it is a view of, or a transpose."""
    nhwc = nhwc_of(tensor)
    return keras.ops.moveaxis(tensor, 1, -1) if nhwc is None else nhwc


def from_channels_last(tensor: Tensor) -> Tensor:
    """Return a tensor (N, ..., C) as (N, C, ...); images in a trace, as a view that keeps the channels-last tensor."""
    viewed = len(tensor.shape) == 4 and backend.prunes(tensor)
    return ChannelsFirstView(tensor) if viewed else keras.ops.moveaxis(tensor, -1, 1)


def elementwise(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Apply an elementwise function, to the channels-last tensors if all arguments have or broadcast to them."""
    for tensor in tensors:
        if isinstance(tensor, backend.TensorBase):
            break
    else:
        return function(*tensors)
    views = [nhwc_of(tensor) for tensor in tensors]
    if any(view is not None for view in views):
        pairs = zip(tensors, views, strict=True)
        views = [_channels_last_operand(tensor) if view is None else view for tensor, view in pairs]
        if all(view is not None for view in views):
            return ChannelsFirstView(function(*views))
    return function(*map(backend_value, tensors))


def _channels_last_operand(tensor: Tensor) -> Tensor:
    """Return a scalar, or (N, C, 1, 1) as (N, 1, 1, C), to broadcast with channels-last tensors; None for others."""
    shape = getattr(tensor, "shape", None)
    # TensorFlow has tensors of unknown rank.
    if shape is None or getattr(shape, "rank", 0) is None:
        return None
    if len(shape) == 0:
        return tensor
    return to_channels_last(tensor) if len(shape) == 4 and tuple(shape[2:]) == (1, 1) else None


def reduce_axes(function: Callable[..., Tensor], tensor: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """Apply a reduction ``function(tensor, axis=axes, keepdims=keepdims)``, on the channels-last tensor of a view.

    `function`: A reduction such as `keras.ops.mean`, for which the order of elements does not matter. `tensor`: Any
    tensor. `axes`: Axes counted from the front. `keepdims`: Whether to keep the axes, with size 1.
    """
    nhwc = nhwc_of(tensor)
    remaining = [axis for axis in (0, 2, 3, 1) if axis not in axes]
    # Without the reduced axes the channels-last result must have the order of the channels-first one.
    if nhwc is None or not (keepdims or remaining == sorted(remaining)):
        value = backend_value(tensor)
        return function(value, axis=None if len(axes) == len(value.shape) else axes, keepdims=keepdims)
    reduced = function(nhwc, axis=tuple(sorted(_POSITIONS[axis] for axis in axes)), keepdims=keepdims)
    return ChannelsFirstView(reduced) if keepdims else reduced


def join_along(function: Callable[..., Tensor], tensors: Sequence[Tensor], axis: int) -> Tensor:
    """Apply ``function(tensors, axis=axis)``, which joins tensors, to the channels-last tensors if all are views."""
    views = [nhwc_of(tensor) for tensor in tensors]
    if any(view is None for view in views):
        return function([*map(backend_value, tensors)], axis=axis)
    return ChannelsFirstView(function(views, axis=_POSITIONS[axis]))


backend.make_views_with(ChannelsFirstView)
