"""Read and write indexing of tensors: NumPy's basic and advanced forms, on every backend."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.boundary import to_backend_tensors
from mixtrain.dtype import is_float
from mixtrain.ops.inputs import is_number, tensor
from mixtrain.typing import Tensor, TensorLike

_Key = tuple[Any, ...]


def get_item(x: TensorLike, index: Any) -> Tensor:
    """Return ``x[index]`` of a backend tensor.

    `index`: ints, slices, None, Ellipsis, bools, integer or bool tensors, lists and NumPy arrays, or a tuple of them.
    """
    key = _parse(x, index)
    if not any(_is_array(part) or isinstance(part, _Flag) for part in key):
        return x[key]
    return _gather(x, key)


def set_item(x: TensorLike, index: Any, value: TensorLike) -> Tensor:
    """Return a copy of a backend tensor with `value`, cast to its dtype, at ``x[index]``."""
    dtype = keras.backend.standardize_dtype(x.dtype)
    if isinstance(value, (list, tuple)) and len({len(row) for row in value if isinstance(row, (list, tuple))}) > 1:
        raise ValueError("Tensor: expected rows of one length to assign; got rows of several. Write a full array.")
    if is_number(value) and is_float(dtype):
        value = float(value)
    value = keras.ops.cast(tensor("Tensor", to_backend_tensors(value)), dtype)
    mask = to_backend_tensors(index)
    if backend.is_tensor(mask) and keras.backend.standardize_dtype(mask.dtype) == "bool" and mask.shape == x.shape \
            and len(value.shape) == 0:
        return keras.ops.where(mask, value, x)
    # Indexing the flat positions of the elements turns every form of index into one scatter.
    positions = get_item(flat_positions(x), index)
    expected = tuple(positions.shape)
    shape = tuple(value.shape)
    while len(shape) > len(expected) and shape[0] == 1:
        value, shape = keras.ops.squeeze(value, 0), shape[1:]
    try:
        if np.broadcast_shapes(shape, expected) != expected:
            raise ValueError
    except ValueError:
        raise ValueError(
            f"Tensor: expected a value that broadcasts to shape {expected}, that of x[index]; got shape {shape}. "
            f"Write value.reshape({expected})."
        ) from None
    return scatter_flat(x, positions, keras.ops.broadcast_to(value, expected)) if 0 not in expected else x


def flat_positions(x: TensorLike) -> Tensor:
    """Return an int32 tensor of the shape of `x` with the position of each element in the flat tensor."""
    sizes = tuple(_size(x, axis) for axis in range(len(x.shape)))
    return keras.ops.reshape(keras.ops.arange(math.prod(sizes), dtype="int32"), sizes)


def scatter_flat(x: TensorLike, positions: TensorLike, values: TensorLike) -> Tensor:
    """Return `x` with `values` at `positions` of the flat tensor."""
    sizes = tuple(_size(x, axis) for axis in range(len(x.shape)))
    flat = keras.ops.reshape(x, (-1,))
    indices = keras.ops.reshape(positions, (-1, 1))
    return keras.ops.reshape(keras.ops.scatter_update(flat, indices, keras.ops.reshape(values, (-1,))), sizes)


def _is_array(part: Any) -> bool:
    return backend.is_tensor(part) or isinstance(part, np.ndarray)


def _parse(x: Tensor, index: Any) -> _Key:
    """Return an index as a tuple of ints, slices and integer arrays, one for each axis, and None for new axes."""
    if isinstance(index, list) and not all(isinstance(part, (numbers.Number, np.bool_)) for part in index):
        index = tuple(index)  # A list of anything but numbers is a tuple, as in NumPy before 1.23.
    key: list[Any] = []
    for part in map(to_backend_tensors, index if isinstance(index, tuple) else (index,)):
        key.extend(_parse_part(part))
    used = sum(part is not None and part is not Ellipsis and not isinstance(part, _Flag) for part in key)
    rank = len(x.shape)
    if used and not rank:
        raise TypeError("Tensor: expected a tensor with axes to index; got one without. Write x.item() or x[...].")
    if used > rank:
        raise IndexError(
            f"Tensor: expected at most {rank} indices, one for each axis; got {used}. Write x[...] with fewer."
        )
    # Parts may be arrays, which `list.index` would compare element by element.
    if not any(part is Ellipsis for part in key):
        key.append(Ellipsis)
    position = next(index for index, part in enumerate(key) if part is Ellipsis)
    if any(part is Ellipsis for part in key[position + 1:]):
        raise IndexError("Tensor: expected one Ellipsis; got several. Write ':' for the other axes.")
    key[position : position + 1] = [slice(None)] * (rank - used)
    return tuple(_check_key(x, key))


def _parse_part(part: TensorLike) -> list[Any]:
    """Return one part of an index as ints, slices, None, Ellipsis, flags, masks and integer arrays."""
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
        items = [to_backend_tensors(item) for item in part]
        if any(map(backend.is_tensor, items)):
            part = backend.to_tensor(keras.ops.stack([backend.to_tensor(item) for item in items]))
        else:
            part = np.asarray(part if len(part) else np.zeros(0, np.int32))
    if isinstance(part, keras.Variable):
        part = backend.to_tensor(part)
    if not _is_array(part):
        raise IndexError(
            f"Tensor: expected ints, slices, None, Ellipsis, bools, integer arrays or tensors as an index; got "
            f"{type(part).__name__}. Write x[0], x[1:] or x[mask]."
        )
    dtype = part.dtype.name if isinstance(part, np.ndarray) else keras.backend.standardize_dtype(part.dtype)
    if dtype == "bool":
        if not len(part.shape):
            return [_Flag(bool(part))]
        indices = np.nonzero(part) if isinstance(part, np.ndarray) else keras.ops.nonzero(part)
        return [_Mask(along_axis, size) for along_axis, size in zip(indices, part.shape, strict=True)]
    if "int" not in dtype:
        raise TypeError(f"Tensor: expected integers or bools as an index; got {dtype}. Write index.astype(int).")
    return [part]


class _Flag:
    """A single bool as an index: a new axis of size 1 or 0."""

    def __init__(self, value: bool) -> None:
        self.value = value


class _Mask:
    """The indices of the True elements of a mask along one of its axes, and the size of that axis."""

    def __init__(self, indices: Tensor, size: int) -> None:
        self.indices, self.size = indices, size


def _bound(value: Tensor) -> Any:
    value = to_backend_tensors(value)
    if backend.is_tensor(value) or isinstance(value, np.ndarray):
        known = backend.known_value(value) if backend.is_tensor(value) else value
        return value if known is None else operator.index(known)
    return value


def _check_key(x: Tensor, parts: list[Any]) -> list[Any]:
    """Return the parts with masks as indices; raise an IndexError where one does not fit its axis."""
    key: list[Any] = []
    axis = 0
    for part in parts:
        if part is None or isinstance(part, _Flag):
            key.append(part)
            continue
        size = x.shape[axis]
        if isinstance(part, int) and size is not None and not -size <= part < size:
            raise IndexError(
                f"Tensor: expected an index from {-size} to {size - 1} for axis {axis}; got {part}. "
                f"Write x[{size - 1}]."
            )
        if isinstance(part, _Mask):
            if size is not None and part.size != size:
                raise IndexError(
                    f"Tensor: expected a mask of size {size} for axis {axis}; got {part.size}. "
                    "Write a mask of x's shape."
                )
            part = part.indices
        elif _is_array(part):
            _check_range(part, size, axis)
        key.append(part)
        axis += 1
    return key


def _check_range(part: Tensor | np.ndarray, size: int | None, axis: int) -> None:
    known = part if isinstance(part, np.ndarray) else backend.known_value(part)
    if known is None or size is None or not known.size:
        return
    low, high = int(known.min()), int(known.max())
    if low < -size or high >= size:
        raise IndexError(
            f"Tensor: expected indices from {-size} to {size - 1} for axis {axis}; got {low if low < -size else high}. "
            f"Write indices below {size}."
        )


def check_places(
    where: str, indices: Tensor, sizes: Sequence[int | None], too_large: type[Exception] = RuntimeError
) -> None:
    """Check that known indices of several axes, the last of `indices`, are at least 0 and below the sizes.

    Raises: RuntimeError, as MindSpore; for one that is too large `too_large`.
    """
    known = backend.known_value(indices)
    if known is None or None in sizes or not known.size or known.shape[-1] != len(sizes):
        return
    if known.min() >= 0 and np.all(known < sizes):
        return
    raise (RuntimeError if known.min() < 0 else too_large)(
        f"{where}: indices must be at least 0 and below {tuple(sizes)}; got {known.min()} to {known.max()}. "
        "Write ops.clip(indices, 0, size - 1), or x[indices] to count from the end."
    )


def _gather(x: Tensor, key: _Key) -> Tensor:
    """Return ``x[key]`` where the key has arrays: their broadcast shape takes the place of their axes."""
    # Slices and new axes come first. Then the axes with arrays or ints are merged, and one `take` reads from them.
    basic: list[Any] = []
    advanced: list[tuple[int, Any]] = []  # (axis after the basic indexing, indices along it)
    for axis, part in enumerate(key):
        if isinstance(part, (int, np.integer)) or _is_array(part):
            basic.append(slice(None))
            advanced.append((axis, part))
        elif isinstance(part, _Flag):
            basic.append(None)
            advanced.append((axis, np.zeros(int(part.value), np.int32)))
        else:
            basic.append(part)
    x = x[tuple(basic)]
    axes = [axis for axis, _ in advanced]
    sizes = [_size(x, axis) for axis in axes]
    indices = _broadcast([_non_negative(part, size) for (_, part), size in zip(advanced, sizes, strict=True)])
    other_axes = [axis for axis in range(len(x.shape)) if axis not in axes]
    flat_index: Tensor = indices[0]
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        flat_index = flat_index * size + index
    transposed = keras.ops.transpose(x, (*axes, *other_axes))
    merged_size = math.prod(sizes) if all(isinstance(size, int) for size in sizes) else -1
    merged = keras.ops.reshape(transposed, (merged_size, *(_size(x, axis) for axis in other_axes)))
    result = keras.ops.take(merged, flat_index, axis=0)
    # As in NumPy, the axes of the arrays come first in the result unless the arrays are neighbors in the key.
    first = axes[0]
    if first == 0 or axes != list(range(first, first + len(axes))):
        return result
    rank = len(flat_index.shape)
    order = (*range(rank, rank + first), *range(rank), *range(rank + first, rank + len(other_axes)))
    return keras.ops.transpose(result, order)


def _size(x: Tensor, axis: int) -> int | Tensor:
    size = x.shape[axis]
    return keras.ops.shape(x)[axis] if size is None else size


def _non_negative(part: int | Tensor | np.ndarray, size: int | Tensor) -> Tensor:
    """Return indices counted from the front, as an int32 tensor."""
    if isinstance(part, (int, np.integer)):
        return backend.to_tensor(np.asarray(part + size if part < 0 else part, np.int32))
    index = keras.ops.cast(backend.to_tensor(part), "int32")
    return keras.ops.where(index < 0, index + size, index)


def _broadcast(indices: list[Tensor]) -> list[Tensor]:
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
