"""Indexing of tensors, read and write: NumPy's basic and advanced forms, on every backend."""

from __future__ import annotations

import math
import numbers
import operator
from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.boundary import settled
from mixtrain.dtype import is_float
from mixtrain.ops.inputs import is_number, tensor

_Key = tuple[Any, ...]


def read(x: Any, index: Any) -> Any:
    """Return ``x[index]`` of a backend tensor.

    Args:
        x: Backend tensor.
        index: Ints, slices, None, Ellipsis, bools, integer or bool tensors, lists and NumPy arrays, or a tuple of them.

    Raises:
        IndexError: There are too many indices, one is out of range, or of a kind that is no index.
        TypeError: `x` has no axes, or an index is of floats.
        ValueError: A slice has step 0.
    """
    key = _parsed(x, index)
    if not any(_is_array(part) or isinstance(part, _Flag) for part in key):
        return x[key]
    return _gathered(x, key)


def written(x: Any, index: Any, value: Any) -> Any:
    """Return a backend tensor with other values at ``x[index]``.

    Args:
        x: Backend tensor.
        index: As for `read`.
        value: A number, array or tensor that broadcasts to ``x[index]``; cast to the dtype of `x`.

    Raises:
        IndexError: As for `read`.
        ValueError: `value` does not broadcast.
    """
    dtype = keras.backend.standardize_dtype(x.dtype)
    if isinstance(value, (list, tuple)) and len({len(row) for row in value if isinstance(row, (list, tuple))}) > 1:
        raise ValueError("Tensor: expected rows of one length to assign; got rows of several. Write a full array.")
    if is_number(value) and is_float(dtype):
        value = float(value)
    value = keras.ops.cast(tensor("Tensor", settled(value)), dtype)
    mask = settled(index)
    if backend.is_tensor(mask) and keras.backend.standardize_dtype(mask.dtype) == "bool" and mask.shape == x.shape \
            and len(value.shape) == 0:
        return keras.ops.where(mask, value, x)
    chosen = read(places(x), index)
    wanted = tuple(chosen.shape)
    given = tuple(value.shape)
    while len(given) > len(wanted) and given[0] == 1:
        value, given = keras.ops.squeeze(value, 0), given[1:]
    try:
        if np.broadcast_shapes(given, wanted) != wanted:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"Tensor: expected a value that broadcasts to shape {wanted}, that of x[index]; got shape {given}. "
            f"Write value.reshape({wanted})."
        ) from None
    return scattered(x, chosen, keras.ops.broadcast_to(value, wanted)) if 0 not in wanted else x


def places(x: Any) -> Any:
    """Return an int32 tensor of the shape of `x`: the place of each element in the flat tensor."""
    sizes = tuple(_size(x, axis) for axis in range(len(x.shape)))
    return keras.ops.reshape(keras.ops.arange(math.prod(sizes), dtype="int32"), sizes)


def scattered(x: Any, chosen: Any, values: Any) -> Any:
    """Return `x` with other values at places of the flat tensor."""
    sizes = tuple(_size(x, axis) for axis in range(len(x.shape)))
    flat = keras.ops.reshape(x, (-1,))
    at = keras.ops.reshape(chosen, (-1, 1))
    return keras.ops.reshape(keras.ops.scatter_update(flat, at, keras.ops.reshape(values, (-1,))), sizes)


def _is_array(part: Any) -> bool:
    return backend.is_tensor(part) or isinstance(part, np.ndarray)


def _parsed(x: Any, index: Any) -> _Key:
    """Return an index as a tuple of ints, slices, None and integer arrays, one for each axis and None for new ones."""
    if isinstance(index, list) and any(isinstance(part, (list, tuple, slice)) for part in index):
        index = tuple(index)  # As in NumPy of old: a list of lists is a tuple of them.
    parts = index if isinstance(index, tuple) else (index,)
    found: list[Any] = []
    for part in map(settled, parts):
        found.extend(_part(part))
    used = sum(part is not None and part is not Ellipsis and not isinstance(part, _Flag) for part in found)
    rank = len(x.shape)
    if used and not rank:
        raise TypeError("Tensor: expected a tensor with axes to index; got one without. Write x.item() or x[...].")
    if used > rank:
        raise IndexError(
            f"Tensor: expected at most {rank} indices, one for each axis; got {used}. Write x[...] with fewer."
        )
    if not any(part is Ellipsis for part in found):
        found.append(Ellipsis)
    place = next(number for number, part in enumerate(found) if part is Ellipsis)
    if any(part is Ellipsis for part in found[place + 1:]):
        raise IndexError("Tensor: expected one Ellipsis; got several. Write ':' for the other axes.")
    found[place : place + 1] = [slice(None)] * (rank - used)
    return tuple(_checked(x, found))


def _part(part: Any) -> list[Any]:
    """Return one part of an index as ints, slices, None, Ellipsis and integer arrays."""
    if part is None or part is Ellipsis:
        return [part]
    if isinstance(part, slice):
        bounds = [_bound(bound) for bound in (part.start, part.stop, part.step)]
        if isinstance(bounds[2], int) and bounds[2] == 0:
            raise ValueError("Tensor: expected a step of a slice other than 0; got 0. Write x[::1].")
        return [slice(*bounds)]
    if isinstance(part, (bool, np.bool_)):
        return [_Flag(bool(part))]
    if isinstance(part, numbers.Integral):
        return [int(part)]
    if isinstance(part, (list, tuple, range)):
        part = backend.to_tensor(keras.ops.stack([backend.to_tensor(settled(item)) for item in part])) if any(
            backend.is_tensor(settled(item)) for item in part
        ) else np.asarray(part if len(part) else np.zeros(0, np.int32))
    if isinstance(part, keras.Variable):
        part = backend.to_tensor(part)
    if not _is_array(part):
        raise IndexError(
            f"Tensor: expected ints, slices, None, Ellipsis, bools, integer arrays or tensors as an index; got "
            f"{type(part).__name__}. Write x[0], x[1:] or x[mask]."
        )
    name = part.dtype.name if isinstance(part, np.ndarray) else keras.backend.standardize_dtype(part.dtype)
    if name == "bool":
        if not len(part.shape):
            return [_Flag(bool(part))]
        places = np.nonzero(part) if isinstance(part, np.ndarray) else keras.ops.nonzero(part)
        return [_Places(place, size, axis) for axis, (place, size) in enumerate(zip(places, part.shape, strict=True))]
    if "int" not in name:
        raise TypeError(f"Tensor: expected integers or bools as an index; got {name}. Write index.astype(int).")
    return [part]


class _Flag:
    """A single bool as an index: a new axis of size 1 or 0."""

    def __init__(self, kept: bool) -> None:
        self.kept = kept


class _Places:
    """Where a mask holds, along one of its axes."""

    def __init__(self, places: Any, size: int, axis: int) -> None:
        self.places, self.size, self.axis = places, size, axis


def _bound(value: Any) -> Any:
    value = settled(value)
    if backend.is_tensor(value) or isinstance(value, np.ndarray):
        known = backend.known_value(value) if backend.is_tensor(value) else value
        return value if known is None else operator.index(known)
    return value


def _checked(x: Any, parts: list[Any]) -> list[Any]:
    """Return the parts with ints within their axes, and masks of the sizes of theirs."""
    found: list[Any] = []
    axis = 0
    for part in parts:
        if part is None or isinstance(part, _Flag):
            found.append(part)
            continue
        size = x.shape[axis]
        if isinstance(part, int) and size is not None and not -size <= part < size:
            raise IndexError(
                f"Tensor: expected an index from {-size} to {size - 1} for axis {axis}; got {part}. "
                f"Write x[{size - 1}]."
            )
        if isinstance(part, _Places):
            if size is not None and part.size != size:
                raise IndexError(
                    f"Tensor: expected a mask of size {size} for axis {axis}; got {part.size}. "
                    "Write a mask of x's shape."
                )
            part = part.places
        elif _is_array(part):
            _check_range(part, size, axis)
        found.append(part)
        axis += 1
    return found


def _check_range(part: Any, size: Any, axis: int) -> None:
    known = part if isinstance(part, np.ndarray) else backend.known_value(part)
    if known is None or size is None or not known.size:
        return
    low, high = int(known.min()), int(known.max())
    if low < -size or high >= size:
        raise IndexError(
            f"Tensor: expected indices from {-size} to {size - 1} for axis {axis}; got {low if low < -size else high}. "
            f"Write indices below {size}."
        )


def _gathered(x: Any, key: _Key) -> Any:
    """Return ``x[key]`` where the key has arrays: what they choose together stands for their axes."""
    basic: list[Any] = []  # What is done first: slices, new axes; axes that arrays choose from stay whole.
    chosen: list[tuple[int, Any]] = []  # Axis of what is done first, and indices along it.
    positions: list[int] = []  # Where in the key the arrays and ints stand.
    axis = 0
    for number, part in enumerate(key):
        if isinstance(part, (int, np.integer)) or _is_array(part):
            basic.append(slice(None))
            chosen.append((axis, part))
            positions.append(number)
        elif isinstance(part, _Flag):
            basic.append(None)
            chosen.append((axis, np.zeros(int(part.kept), np.int32)))
            positions.append(number)
        else:
            basic.append(part)
        axis += 1
    x = x[tuple(basic)]
    axes = [place for place, _ in chosen]
    sizes = [_size(x, place) for place in axes]
    indices = [_positive(part, size) for (_, part), size in zip(chosen, sizes, strict=True)]
    together = _broadcast(indices)
    others = [place for place in range(len(x.shape)) if place not in axes]
    linear: Any = together[0]
    for index, size in zip(together[1:], sizes[1:], strict=True):
        linear = linear * size + index
    turned = keras.ops.transpose(x, (*axes, *others))
    rest = [_size(x, place) for place in others]
    merged = keras.ops.reshape(turned, (math.prod(sizes) if all(isinstance(n, int) for n in sizes) else -1, *rest))
    result = keras.ops.take(merged, linear, axis=0)
    adjacent = positions == list(range(positions[0], positions[0] + len(positions)))
    if not adjacent or axes[0] == 0:
        return result
    rank = len(linear.shape)
    before = axes[0]
    order = (*range(rank, rank + before), *range(rank), *range(rank + before, rank + len(others)))
    return keras.ops.transpose(result, order)


def _size(x: Any, axis: int) -> Any:
    size = x.shape[axis]
    return keras.ops.shape(x)[axis] if size is None else size


def _positive(part: Any, size: Any) -> Any:
    """Return indices counted from the front, as an int32 tensor."""
    if isinstance(part, (int, np.integer)):
        return backend.to_tensor(np.asarray(part + size if part < 0 else part, np.int32))
    index = keras.ops.cast(backend.to_tensor(part), "int32")
    return keras.ops.where(index < 0, index + size, index)


def _broadcast(indices: list[Any]) -> list[Any]:
    if len(indices) == 1:
        return indices
    try:
        shape = np.broadcast_shapes(*(tuple(index.shape) for index in indices))
    except (ValueError, TypeError):
        if any(None in tuple(index.shape) for index in indices):
            return indices
        raise IndexError(
            "Tensor: expected index arrays that broadcast; got shapes "
            f"{', '.join(str(tuple(index.shape)) for index in indices)}. Write arrays of one shape."
        ) from None
    return [keras.ops.broadcast_to(index, shape) for index in indices]
