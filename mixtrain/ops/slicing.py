"""Slices, diagonals, flips, scattered updates and segment reductions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.dtype import as_dtype, int32, int64, is_complex, is_float
from mixtrain.ops.elementwise import named, renamed
from mixtrain.ops.indexing import check_places, flat_positions, get_item, scatter_flat, set_item
from mixtrain.ops.inputs import axis_of, rank_of, tensor, tensor_dtype
from mixtrain.ops.joining import concat, known_size
from mixtrain.ops.labels import check_range
from mixtrain.ops.ordering import index_dtype
from mixtrain.ops.primitive import Primitive, primitives
from mixtrain.ops.promotion import promoted
from mixtrain.ops.writes import write
from mixtrain.typing import Tensor, TensorLike


def _along(axis: int, index: Any) -> tuple[Any, ...]:
    """Return the full index that applies `index` to one axis."""
    return (*(slice(None),) * axis, index)


def narrow(input: TensorLike, axis: int, start: int, length: int) -> Tensor:
    """The slice of `length` from `start` on along `axis` of `input`."""
    x = tensor("ops.narrow", input)
    axis = axis_of("ops.narrow", axis, rank_of(x))
    size = x.shape[axis]
    if start < 0:
        raise checks.fail_value("ops.narrow", "start must be at least 0", start, "start=0")
    if size is not None and start + length > size:
        raise checks.fail_value("ops.narrow", f"start + length must be at most {size}", start + length, "length=1")
    return get_item(x, _along(axis, slice(start, start + length)))


def diagonal(input: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of `input` in the plane of `dim1` and `dim2`, `offset` above the main one."""
    return _diagonal(tensor("ops.diagonal", input), offset, dim1, dim2)


def _diagonal(x: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Return a diagonal; beyond the corners it has no elements, where TensorFlow raises."""
    rows, columns = x.shape[dim1], x.shape[dim2]
    if offset == 0 or None in (rows, columns) or -rows < offset < columns:
        return keras.ops.diagonal(x, offset, dim1, dim2)
    return keras.ops.diagonal(x, 0, dim1, dim2)[..., :0]


def diagonal_scatter(input: TensorLike, src: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`input` with `src` on the diagonal that `diagonal` returns for `offset`, `dim1` and `dim2`."""
    x = tensor("ops.diagonal_scatter", input)
    positions = _diagonal(flat_positions(x), offset, dim1, dim2)
    return scatter_flat(x, positions, keras.ops.cast(tensor("ops.diagonal_scatter", src), x.dtype))


def diagflat(input: TensorLike, offset: int = 0) -> Tensor:
    """A matrix with the elements of `input` on the diagonal `offset` above the main one."""
    return keras.ops.diagflat(tensor("ops.diagflat", input), offset)


def diag_embed(input: TensorLike, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices in `dim1`, `dim2` with vectors of `input` on the diagonal `offset` above the main one."""
    x = tensor("ops.diag_embed", input)
    matrices = x[..., :, None] * keras.ops.eye(x.shape[-1], dtype=x.dtype)
    down, right = max(-offset, 0), max(offset, 0)
    widths = [(0, 0)] * (rank_of(x) - 1) + [(down, right), (right, down)]
    return keras.ops.moveaxis(keras.ops.pad(matrices, widths), (-2, -1), (dim1, dim2))


def diff(
    x: TensorLike, n: int = 1, axis: int = -1, prepend: TensorLike | None = None, append: TensorLike | None = None
) -> Tensor:
    """Differences of neighbors along `axis` of `x`, `n` times; `prepend` and `append` are concatenated first."""
    parts = [part for part in (prepend, x, append) if part is not None]
    return keras.ops.diff(concat(parts, axis) if len(parts) > 1 else tensor("ops.diff", x), n, axis)


def fliplr(input: TensorLike) -> Tensor:
    """`input` flipped along its second axis."""
    return keras.ops.flip(tensor("ops.fliplr", input), 1)


def flipud(input: TensorLike) -> Tensor:
    """`input` flipped along its first axis."""
    return keras.ops.flip(tensor("ops.flipud", input), 0)


def rot90(input: TensorLike, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """`input` rotated by `k` right angles in the plane of `dims`."""
    x = tensor("ops.rot90", input)
    if k % 4 == 2:  # Keras on TensorFlow turns by half only what is square.
        return keras.ops.flip(keras.ops.flip(x, dims[0]), dims[1])
    return keras.ops.rot90(x, k, tuple(dims))


def reverse_sequence(x: TensorLike, seq_lengths: TensorLike, seq_dim: int, batch_dim: int = 0) -> Tensor:
    """`x` with the first `seq_lengths` elements along `seq_dim` reversed, for each index along `batch_dim`."""
    x = tensor("ops.reverse_sequence", x)
    rows = keras.ops.moveaxis(x, (batch_dim, seq_dim), (0, 1))
    lengths = keras.ops.cast(tensor("ops.reverse_sequence", seq_lengths), "int32")[:, None]
    order = keras.ops.arange(rows.shape[1], dtype="int32")[None]
    order = keras.ops.where(order < lengths, lengths - 1 - order, order)
    order = keras.ops.reshape(order, (*order.shape, *(1,) * (rank_of(rows) - 2)))
    reversed_rows = keras.ops.take_along_axis(rows, keras.ops.broadcast_to(order, rows.shape), axis=1)
    return keras.ops.moveaxis(reversed_rows, (0, 1), (batch_dim, seq_dim))


def tensor_split(input: TensorLike, indices_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Split `input` along `axis` into a number of sections, or at the indices `indices_or_sections`."""
    sections = indices_or_sections if isinstance(indices_or_sections, int) else list(indices_or_sections)
    x = tensor("ops.tensor_split", input)
    axis = axis_of("ops.tensor_split", axis, rank_of(x))
    size = known_size("ops.tensor_split", x, axis)
    if isinstance(sections, int):
        # The first sections are one longer where the size does not divide evenly.
        widths = [size // sections + (section < size % sections) for section in range(sections)]
        sections = np.cumsum(widths)[:-1].tolist()
    bounds = zip([0, *sections], [*sections, size], strict=True)
    return tuple(get_item(x, _along(axis, slice(start, end))) for start, end in bounds)


def vsplit(input: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` of `input` by `indices_or_sections` along the first axis."""
    return tensor_split(input, indices_or_sections, 0)


def hsplit(input: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` of `input` by `indices_or_sections` along the second axis."""
    return tensor_split(input, indices_or_sections, 1)


def dsplit(input: TensorLike, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
    """`tensor_split` of `input` by `indices_or_sections` along the third axis."""
    return tensor_split(input, indices_or_sections, 2)


def index_add(
    x: TensorLike, indices: TensorLike, y: TensorLike, axis: int, use_lock: bool = True, check_index_bound: bool = True
) -> Tensor:
    """`x`, also updated if it is a Parameter, with the slices of `y` added at `indices` along `axis`.

    `use_lock` and `check_index_bound` are accepted. An index that is not in ``[0, size)`` is a ValueError; in a
    compiled function it adds nothing.
    """
    return write(x, add_slices("ops.index_add", x, axis, indices, y))


def add_slices(
    where: str, x: TensorLike, axis: int, indices: TensorLike, updates: TensorLike, scale: float = 1
) -> Tensor:
    """Return `x` with `updates`, times `scale`, added at `indices` along `axis`."""
    value, index = tensor(where, x), keras.ops.cast(tensor(where, indices), "int32")
    axis = axis_of(where, axis, rank_of(value))
    rows = keras.ops.moveaxis(value, axis, 0)
    check_range(where, "each index", index, 0, known_size(where, rows, 0) - 1)
    slices = keras.ops.moveaxis(keras.ops.cast(tensor(where, updates), value.dtype), axis, 0) * scale
    total = rows + keras.ops.segment_sum(slices, index, num_segments=rows.shape[0])
    return keras.ops.moveaxis(total, 0, axis)


def index_fill(x: TensorLike, axis: int, index: TensorLike, value: TensorLike) -> Tensor:
    """`x` with `value` in the slices `index` along `axis`."""
    x = tensor("ops.index_fill", x)
    return set_item(x, _along(axis_of("ops.index_fill", axis, rank_of(x)), index), value)


def select_scatter(input: TensorLike, src: TensorLike, axis: int, index: int) -> Tensor:
    """`input` with `src` as its slice `index` along `axis`."""
    return _with_slice("ops.select_scatter", input, src, axis, index)


def slice_scatter(
    input: TensorLike, src: TensorLike, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """`input` with `src` in its slice from `start` to `end` by `step` along `axis`."""
    return _with_slice("ops.slice_scatter", input, src, axis, slice(start, end, step))


def _with_slice(where: str, input: TensorLike, src: TensorLike, axis: int, index: Any) -> Tensor:
    """Return `input` with `src`, which must have its shape, as what an index along `axis` chooses."""
    x, part = tensor(where, input), tensor(where, src)
    place = _along(axis_of(where, axis, rank_of(x)), index)
    shape = tuple(get_item(x, place).shape)
    if tuple(part.shape) != shape:
        raise checks.fail_value(
            where, f"src must have the shape of the slice {shape}", tuple(part.shape), f"ops.broadcast_to(src, {shape})"
        )
    return set_item(x, place, part)


def scatter_combine(x: TensorLike, chosen: Any, values: TensorLike, how: str) -> Tensor:
    """Return `x` with its elements at flat indices `chosen` combined with `values` by `how`."""
    size = int(np.prod(x.shape))
    indices = keras.ops.reshape(chosen, (-1,))
    updates = keras.ops.cast(keras.ops.reshape(values, (-1,)), x.dtype)
    flat = keras.ops.reshape(x, (-1,))
    if how in ("add", "sub"):
        total = keras.ops.segment_sum(updates, indices, num_segments=size)
        return keras.ops.reshape(flat + total if how == "add" else flat - total, x.shape)
    combine = {
        "mul": keras.ops.multiply, "div": _divide, "max": keras.ops.maximum, "min": keras.ops.minimum,
    }[how]
    # One update at a time, so that an index that occurs twice combines both of its updates.
    for index, update in zip(keras.ops.unstack(indices), keras.ops.unstack(updates), strict=True):
        new = combine(keras.ops.take(flat, index), update)
        flat = keras.ops.scatter_update(flat, keras.ops.reshape(index, (1, 1)), keras.ops.reshape(new, (1,)))
    return keras.ops.reshape(flat, x.shape)


def _divide(x: Tensor, y: Tensor) -> Tensor:
    """Return the quotient, of integers rounded towards zero."""
    if is_float(x.dtype) or is_complex(x.dtype):
        return keras.ops.divide(x, y)
    quotient = keras.ops.floor_divide(keras.ops.abs(x), keras.ops.abs(y))
    return quotient if tensor_dtype(x).startswith("uint") else quotient * keras.ops.sign(x) * keras.ops.sign(y)


def scatter_along(input: TensorLike, axis: int, index: TensorLike, src: TensorLike, how: str = "none") -> Tensor:
    """Write elements of `src` to the indices `index` along `axis`; `how` combines them with the old ones."""
    x = tensor("ops.scatter", input)
    index = keras.ops.cast(tensor("ops.scatter", index), "int32")
    axis = axis_of("ops.scatter", axis, rank_of(x))
    block = tuple(slice(size) if other != axis else slice(None) for other, size in enumerate(index.shape))
    chosen = keras.ops.take_along_axis(flat_positions(x)[block], index, axis=axis)
    values = tensor("ops.scatter", src)
    values = values[tuple(slice(size) for size in index.shape)] if rank_of(values) else values
    values = keras.ops.cast(keras.ops.broadcast_to(values, index.shape), x.dtype)
    return scatter_flat(x, chosen, values) if how == "none" else scatter_combine(x, chosen, values, how)


def scatter(input: TensorLike, axis: int, index: TensorLike, src: TensorLike) -> Tensor:
    """`input` with the elements of `src` written to the indices `index` along `axis`."""
    return scatter_along(input, axis, index, src)


def tensor_scatter_elements(
    input_x: TensorLike, indices: TensorLike, updates: TensorLike, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """`scatter` of `updates` at `indices` along `axis` into `input_x`; `reduction` "add" adds them."""
    return scatter_along(input_x, axis, indices, updates, reduction)


def _updated(where: str, input: TensorLike, indices: TensorLike, updates: TensorLike, how: str) -> Tensor:
    """Combine `updates` with the slices at the rows of `indices`; `how` is "update", "add" and so on."""
    x, places, values = (tensor(where, value) for value in (input, indices, updates))
    _check_update(where, x, places, values, how)
    # What is written to a Parameter is cast to its dtype, if it fits.
    dtype = as_dtype(getattr(input, "stored_dtype", tensor_dtype(x)))
    fits = promoted(tensor_dtype(values), dtype) if isinstance(input, keras.Variable) else tensor_dtype(values)
    if fits != dtype:
        raise checks.fail_type(where, f"updates must fit {dtype.name}", values, f"updates.astype(mixtrain.{dtype})")
    chosen = get_item(flat_positions(x), tuple(keras.ops.unstack(keras.ops.moveaxis(places, -1, 0))))
    values = keras.ops.cast(values, x.dtype)
    return scatter_flat(x, chosen, values) if how == "update" else scatter_combine(x, chosen, values, how)


def _check_update(where: str, x: Tensor, indices: Tensor, updates: Tensor, how: str) -> None:
    """Check what MindSpore checks: updates are not broadcast, and indices not counted from the end."""
    if tensor_dtype(indices) not in (int32, int64):
        raise checks.fail_type(where, "indices must be int32 or int64", indices, "indices.astype(mixtrain.int32)")
    depth = indices.shape[-1] if rank_of(indices) else 0
    if not 0 < depth <= rank_of(x):
        raise checks.fail_value(
            where, f"the last axis of indices must have 1 to {rank_of(x)} elements, one for each axis of {x.shape}",
            tuple(indices.shape), "indices of shape (..., 1)",
        )
    sizes = *indices.shape[:-1], *x.shape[depth:]
    if len(sizes) != rank_of(updates) or any(
        None not in pair and pair[0] != pair[1] for pair in zip(sizes, updates.shape, strict=True)
    ):
        raise checks.fail_value(
            where, f"updates must have shape {sizes}, that of the slices", tuple(updates.shape),
            f"ops.broadcast_to(updates, {sizes})",
        )
    check_places(where, indices, x.shape[:depth], too_large=ValueError if how == "update" else RuntimeError)


# How updates are combined with the old values, as the docstrings say it.
_COMBINED: Final = {
    "add": "added to the old values", "sub": "subtracted from the old values", "mul": "multiplied by the old values",
    "div": "dividing the old values", "max": "where they are larger", "min": "where they are smaller",
    "update": "replacing the old values",
}


def _named_update(
    function: Callable[..., Tensor], name: str, how: str, x: str = "input_x", updates: str = "`updates`",
    arguments: str = "x, indices, updates",
) -> Callable[..., Tensor]:
    doc = f"`{x}` with {updates} at `indices`, {_COMBINED[how]}. Example: ``ops.{name}({arguments})``."
    return named(function, name, doc)


def _tensor_scatter(how: str) -> Callable[..., Tensor]:
    def update(input_x: Tensor, indices: TensorLike, updates: Tensor) -> Tensor:
        return _updated(f"ops.tensor_scatter_{how}", input_x, indices, updates, how)

    return _named_update(update, f"tensor_scatter_{how}", how)


def _scatter(how: str) -> Callable[..., Tensor]:
    """Return the function whose `indices` are of slices along the first axis; a Parameter is updated."""

    def update(input_x: Tensor, indices: TensorLike, updates: Tensor) -> Tensor:
        where = f"ops.scatter_{how}"
        rows = keras.ops.expand_dims(tensor(where, indices), -1)
        return write(input_x, _updated(where, input_x, rows, updates, how))

    return _named_update(update, f"scatter_{how}", how)


def _scatter_nd(how: str) -> Callable[..., Tensor]:
    """Return the function whose `indices` hold multi-dimensional indices; a Parameter is updated."""

    def update(input_x: Tensor, indices: TensorLike, updates: Tensor, use_locking: bool = False) -> Tensor:
        return write(input_x, _updated(f"ops.scatter_nd_{how}", input_x, indices, updates, how))

    function = _named_update(update, f"scatter_nd_{how}", how)
    function.__doc__ = f"{function.__doc__} `use_locking` is accepted."
    return function


(
    tensor_scatter_add, tensor_scatter_sub, tensor_scatter_mul, tensor_scatter_div, tensor_scatter_max,
    tensor_scatter_min, tensor_scatter_update,
) = map(_tensor_scatter, _COMBINED)
scatter_add, scatter_sub, scatter_mul, scatter_div, scatter_max, scatter_min, scatter_update = map(_scatter, _COMBINED)
(
    scatter_nd_add, scatter_nd_sub, scatter_nd_mul, scatter_nd_div, scatter_nd_max, scatter_nd_min, scatter_nd_update,
) = map(_scatter_nd, _COMBINED)


def _in_place(how: str) -> Callable[..., Tensor]:
    def update(x: Tensor, v: Tensor, indices: TensorLike) -> Tensor:
        return _updated(f"ops.inplace_{how}", x, np.reshape(np.asarray(indices, np.int32), (-1, 1)), v, how)

    return _named_update(update, f"inplace_{how}", how, "x", "the rows `v`", "x, v, (0,)")


inplace_add, inplace_sub, inplace_update = map(_in_place, ("add", "sub", "update"))


def unique_consecutive(
    input: TensorLike, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """The elements of `input`, or with `dim` its slices, without consecutive duplicates.

    `return_inverse` adds the index of each among them, `return_counts` the length of each run.
    """
    x = tensor("ops.unique_consecutive", input)
    x = keras.ops.reshape(x, (-1,)) if dim is None else keras.ops.moveaxis(x, dim, 0)
    changed = keras.ops.any(
        keras.ops.reshape(x[1:] != x[:-1], (x.shape[0] - 1, -1)), axis=1
    ) if x.shape[0] > 1 else keras.ops.zeros((0,), dtype="bool")
    changed = keras.ops.concatenate([keras.ops.ones((min(1, x.shape[0]),), dtype="bool"), changed])
    starts = keras.ops.reshape(keras.ops.nonzero(changed)[0], (-1,))
    values = keras.ops.take(x, starts, axis=0)
    outputs = [values if dim is None else keras.ops.moveaxis(values, 0, dim)]
    int64 = backend.canonical_dtype("int64")
    if return_inverse:
        inverse = keras.ops.cumsum(keras.ops.cast(changed, "int32")) - 1
        outputs.append(keras.ops.cast(inverse, int64))
    if return_counts:
        ends = keras.ops.concatenate([starts[1:], keras.ops.full((1,), x.shape[0], dtype=starts.dtype)])
        outputs.append(keras.ops.cast(ends - starts, int64))
    return tuple(outputs) if len(outputs) > 1 else outputs[0]


def unique_with_pad(x: TensorLike, pad_num: TensorLike) -> tuple[Tensor, Tensor]:
    """The unique elements of `x`, padded with `pad_num` to its size, and the index of each element among them."""
    x = tensor("ops.unique_with_pad", x)
    if rank_of(x) != 1:
        raise checks.fail_value("ops.unique_with_pad", "x must have one axis", tuple(x.shape), "ops.reshape(x, (-1,))")
    order = keras.ops.argsort(x)
    # For each element the first that equals it. Sizes do not depend on values, so that all of it compiles.
    first = keras.ops.take(order, keras.ops.searchsorted(keras.ops.take(x, order), x))
    is_first = keras.ops.equal(first, keras.ops.arange(x.shape[0], dtype=first.dtype))
    counted = keras.ops.cast(is_first, "int32")
    number = keras.ops.cumsum(counted)
    leading = keras.ops.argsort(keras.ops.where(is_first, number, x.shape[0] + 1))
    padding = keras.ops.cast(pad_num, x.dtype)
    known = keras.ops.arange(x.shape[0]) < keras.ops.sum(counted)
    values = keras.ops.where(known, keras.ops.take(x, leading), padding)
    return values, keras.ops.cast(keras.ops.take(number, first) - 1, index_dtype(x))


def _initial(how: str, x: Tensor) -> Tensor:
    """Return the value of an empty segment."""
    if how == "prod":
        return 1
    dtype = keras.backend.standardize_dtype(x.dtype)
    # NumPy has no finfo of bfloat16, whose range is that of float32.
    limits = np.finfo("float32" if dtype == "bfloat16" else dtype) if "float" in dtype else np.iinfo(dtype)
    return limits.min if how == "max" else limits.max


def _unsorted_segment(how: str, description: str) -> Callable[..., Tensor]:
    def reduce_segments(x: TensorLike, segment_ids: TensorLike, num_segments: int) -> Tensor:
        where = f"ops.unsorted_segment_{how}"
        value, ids = tensor(where, x), keras.ops.cast(tensor(where, segment_ids), "int32")
        rows = keras.ops.reshape(value, (-1, *value.shape[rank_of(ids):]))
        flat_ids = keras.ops.reshape(ids, (-1,))
        check_range(where, "each segment id", flat_ids, -(2**31), int(num_segments) - 1)  # Negative ids are dropped.
        if how == "sum":
            return keras.ops.segment_sum(rows, flat_ids, num_segments=int(num_segments))
        # Keras has no segment minimum or product, and its segment_max of no elements depends on the backend.
        reduce = {"max": keras.ops.max, "min": keras.ops.min, "prod": keras.ops.prod}[how]
        outputs = []
        for segment in range(int(num_segments)):
            inside = keras.ops.reshape(flat_ids == segment, (-1, *(1,) * (rank_of(rows) - 1)))
            initial = keras.ops.cast(_initial(how, value), value.dtype)
            outputs.append(reduce(keras.ops.where(inside, rows, initial), axis=0))
        return keras.ops.stack(outputs)

    name = f"unsorted_segment_{how}"
    return named(reduce_segments, name, (
        f"The {description} of the slices of `x` in each of `num_segments` segments, by their `segment_ids`. Example: "
        f"``ops.{name}(x, ids, 3)``."
    ))


unsorted_segment_max = _unsorted_segment("max", "largest element")
unsorted_segment_min = _unsorted_segment("min", "smallest element")
unsorted_segment_prod = _unsorted_segment("prod", "product")
unsorted_segment_sum = _unsorted_segment("sum", "sum")


def sparse_segment_mean(x: TensorLike, indices: TensorLike, segment_ids: TensorLike) -> Tensor:
    """The means of the rows of `x` at `indices` over each segment of the sorted `segment_ids`; zeros for no rows.

    Example: ``ops.sparse_segment_mean(x, indices, segment_ids)``.
    """
    where = "ops.sparse_segment_mean"
    ids = keras.ops.cast(tensor(where, segment_ids), "int32")
    count = int(backend.to_numpy(ids)[-1]) + 1 if ids.shape[0] else 0
    rows = keras.ops.take(tensor(where, x), keras.ops.cast(tensor(where, indices), "int32"), axis=0)
    total = keras.ops.segment_sum(rows, ids, num_segments=count)
    sizes = keras.ops.segment_sum(keras.ops.ones(ids.shape, rows.dtype), ids, num_segments=count)
    return total / keras.ops.reshape(keras.ops.maximum(sizes, 1), (count, *(1,) * (rank_of(rows) - 1)))


def _locking(**functions: Callable[..., Any]) -> list[type[Primitive]]:
    """Return the classes of primitives that accept `use_locking`, which has no effect."""

    def __init__(self: Any, use_locking: bool = False) -> None:
        Primitive.__init__(self)

    return [
        type(base.__name__, (base,), {
            "__init__": __init__, "__doc__": f"{base.__doc__} `use_locking` is accepted.", "__module__": __name__,
        })
        for base in primitives(**functions)
    ]


diff_ext = renamed(diff, "diff_ext", input="x", dim="axis")
(
    TensorScatterAdd, TensorScatterSub, TensorScatterMul, TensorScatterDiv, TensorScatterMax, TensorScatterMin,
    TensorScatterUpdate,
) = primitives(
    TensorScatterAdd=tensor_scatter_add, TensorScatterSub=tensor_scatter_sub, TensorScatterMul=tensor_scatter_mul,
    TensorScatterDiv=tensor_scatter_div, TensorScatterMax=tensor_scatter_max, TensorScatterMin=tensor_scatter_min,
    TensorScatterUpdate=tensor_scatter_update,
)
ScatterAdd, ScatterSub, ScatterMul, ScatterDiv, ScatterMax, ScatterMin, ScatterUpdate = _locking(
    ScatterAdd=scatter_add, ScatterSub=scatter_sub, ScatterMul=scatter_mul, ScatterDiv=scatter_div,
    ScatterMax=scatter_max, ScatterMin=scatter_min, ScatterUpdate=scatter_update,
)
ScatterNdAdd, ScatterNdSub, ScatterNdMul, ScatterNdDiv, ScatterNdMax, ScatterNdMin, ScatterNdUpdate = _locking(
    ScatterNdAdd=scatter_nd_add, ScatterNdSub=scatter_nd_sub, ScatterNdMul=scatter_nd_mul, ScatterNdDiv=scatter_nd_div,
    ScatterNdMax=scatter_nd_max, ScatterNdMin=scatter_nd_min, ScatterNdUpdate=scatter_nd_update,
)
UnsortedSegmentMax, UnsortedSegmentMin, UnsortedSegmentProd, UnsortedSegmentSum, UniqueWithPad = primitives(
    UnsortedSegmentMax=unsorted_segment_max, UnsortedSegmentMin=unsorted_segment_min,
    UnsortedSegmentProd=unsorted_segment_prod, UnsortedSegmentSum=unsorted_segment_sum, UniqueWithPad=unique_with_pad,
)
