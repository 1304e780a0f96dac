"""Parts of tensors cut out, turned and written: slices, diagonals, scattered updates and segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.ops.indexing import places, read, scattered, written
from mixtrain.ops.inputs import axis_of, rank_of, tensor
from mixtrain.ops.joining import concat, known_size
from mixtrain.ops.ordering import unique
from mixtrain.ops.primitive import Primitive, primitive
from mixtrain.ops.state import assign


def at(axis: int, part: Any) -> tuple[Any, ...]:
    """Return the index of a part along an axis."""
    return (*(slice(None),) * axis, part)


def narrow(input: Any, axis: int, start: int, length: int) -> Any:
    """The slice of `length` from `start` on along `axis` of `input`. Source: MindSpore, `mindspore.ops.narrow`."""
    x = tensor("ops.narrow", input)
    number = axis_of("ops.narrow", axis, rank_of(x))
    return read(x, at(number, slice(start, start + length)))


def diagonal(input: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """The diagonal of `input` in the plane of `dim1` and `dim2`, `offset` places up.

    Source: MindSpore, `mindspore.ops.diagonal`.
    """
    return keras.ops.diagonal(tensor("ops.diagonal", input), offset, dim1, dim2)


def diagonal_scatter(input: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    """`input` with `src` on that `diagonal`: of `offset`, `dim1`, `dim2`.

    Source: MindSpore, `mindspore.ops.diagonal_scatter`.
    """
    x = tensor("ops.diagonal_scatter", input)
    return scattered(x, keras.ops.diagonal(places(x), offset, dim1, dim2), keras.ops.cast(tensor("", src), x.dtype))


def diagflat(input: Any, offset: int = 0) -> Any:
    """A matrix with the elements of `input` on the diagonal `offset` places up.

    Source: MindSpore, `mindspore.ops.diagflat`.
    """
    return keras.ops.diagflat(tensor("ops.diagflat", input), offset)


def diag_embed(input: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Matrices on `dim1`, `dim2` with vectors of `input` on their diagonals `offset` places up.

    Source: MindSpore, `mindspore.ops.diag_embed`.
    """
    x = tensor("ops.diag_embed", input)
    size = x.shape[-1] + abs(offset)
    spread = x[..., :, None] * keras.ops.eye(x.shape[-1], dtype=x.dtype)
    ahead = (max(-offset, 0), max(offset, 0))
    edges = [(before, size - before - x.shape[-1]) for before in ahead]
    return keras.ops.moveaxis(keras.ops.pad(spread, [(0, 0)] * (rank_of(x) - 1) + edges), (-2, -1), (dim1, dim2))


def diff(x: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbors along `axis` of `x`, `n` times; `prepend` and `append` are put around it first.

    Source: MindSpore, `mindspore.ops.diff`.
    """
    parts = [part for part in (prepend, x, append) if part is not None]
    return keras.ops.diff(concat(parts, axis) if len(parts) > 1 else tensor("ops.diff", x), n, axis)


def fliplr(input: Any) -> Any:
    """`input` turned along its second axis. Source: MindSpore, `mindspore.ops.fliplr`."""
    return keras.ops.flip(tensor("ops.fliplr", input), 1)


def flipud(input: Any) -> Any:
    """`input` turned along its first axis. Source: MindSpore, `mindspore.ops.flipud`."""
    return keras.ops.flip(tensor("ops.flipud", input), 0)


def rot90(input: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """`input` turned by `k` right angles in the plane of `dims`. Source: MindSpore, `mindspore.ops.rot90`."""
    return keras.ops.rot90(tensor("ops.rot90", input), k, tuple(dims))


def reverse_sequence(x: Any, seq_lengths: Any, seq_dim: int, batch_dim: int = 0) -> Any:
    """`x` with the first `seq_lengths` elements along `seq_dim` turned, for each place along `batch_dim`.

    Source: MindSpore, `mindspore.ops.reverse_sequence`.
    """
    x = tensor("ops.reverse_sequence", x)
    rows = keras.ops.moveaxis(x, (batch_dim, seq_dim), (0, 1))
    lengths = keras.ops.cast(tensor("ops.reverse_sequence", seq_lengths), "int32")[:, None]
    order = keras.ops.arange(rows.shape[1], dtype="int32")[None]
    order = keras.ops.where(order < lengths, lengths - 1 - order, order)
    order = keras.ops.reshape(order, (*order.shape, *(1,) * (rank_of(rows) - 2)))
    turned = keras.ops.take_along_axis(rows, keras.ops.broadcast_to(order, rows.shape), axis=1)
    return keras.ops.moveaxis(turned, (0, 1), (batch_dim, seq_dim))


def tensor_split(input: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Any, ...]:
    """The parts of `input` along `axis`: so many, or cut at the places `indices_or_sections`.

    Source: MindSpore, `mindspore.ops.tensor_split`.
    """
    sections = indices_or_sections if isinstance(indices_or_sections, int) else list(indices_or_sections)
    x = tensor("ops.tensor_split", input)
    number = axis_of("ops.tensor_split", axis, rank_of(x))
    size = known_size("ops.tensor_split", x, number)
    if isinstance(sections, int):
        widths = [size // sections + (place < size % sections) for place in range(sections)]
        sections = np.cumsum(widths)[:-1].tolist()
    ends = [*sections, size]
    return tuple(
        read(x, at(number, slice(start, end))) for start, end in zip([0, *sections], ends, strict=True)
    )


def vsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """`tensor_split` of `input` by `indices_or_sections` along the first axis.

    Source: MindSpore, `mindspore.ops.vsplit`.
    """
    return tensor_split(input, indices_or_sections, 0)


def hsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """`tensor_split` of `input` by `indices_or_sections` along the second axis.

    Source: MindSpore, `mindspore.ops.hsplit`.
    """
    return tensor_split(input, indices_or_sections, 1)


def dsplit(input: Any, indices_or_sections: Any) -> tuple[Any, ...]:
    """`tensor_split` of `input` by `indices_or_sections` along the third axis.

    Source: MindSpore, `mindspore.ops.dsplit`.
    """
    return tensor_split(input, indices_or_sections, 2)


def index_add(
    x: Any, indices: Any, y: Any, axis: int, use_lock: bool = True, check_index_bound: bool = True
) -> Any:
    """`x` with the slices of `y` added at the places `indices` along `axis`.

    Args:
        x: Tensor; a Parameter is written too.
        indices: Vector of integers.
        y: As many slices.
        axis: The axis.
        use_lock: Accepted; without effect.
        check_index_bound: Accepted; without effect.

    Source: MindSpore, `mindspore.ops.index_add`.
    """
    value = tensor("ops.index_add", x)
    rows = keras.ops.moveaxis(value, axis_of("ops.index_add", axis, rank_of(value)), 0)
    more = keras.ops.moveaxis(keras.ops.cast(tensor("ops.index_add", y), value.dtype), axis, 0)
    index = keras.ops.cast(tensor("ops.index_add", indices), "int32")
    added = rows + keras.ops.segment_sum(more, index, num_segments=rows.shape[0])
    return _stored(x, keras.ops.moveaxis(added, 0, axis))


def index_fill(x: Any, axis: int, index: Any, value: Any) -> Any:
    """`x` with `value` in the slices `index` along `axis`. Source: MindSpore, `mindspore.ops.index_fill`."""
    held = tensor("ops.index_fill", x)
    return written(held, at(axis_of("ops.index_fill", axis, rank_of(held)), index), value)


def select_scatter(input: Any, src: Any, axis: int, index: int) -> Any:
    """`input` with `src` as its slice `index` along `axis`. Source: MindSpore, `mindspore.ops.select_scatter`."""
    x = tensor("ops.select_scatter", input)
    return written(x, at(axis_of("ops.select_scatter", axis, rank_of(x)), index), src)


def slice_scatter(
    input: Any, src: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """`input` with `src` in its slice from `start` to `end` by `step` along `axis`.

    Source: MindSpore, `mindspore.ops.slice_scatter`.
    """
    x = tensor("ops.slice_scatter", input)
    return written(x, at(axis_of("ops.slice_scatter", axis, rank_of(x)), slice(start, end, step)), src)


def combined(x: Any, chosen: Any, values: Any, how: str) -> Any:
    """Return `x` with values added to, or taken as extremes with, those at places of the flat tensor."""
    size = int(np.prod(x.shape))
    at = keras.ops.reshape(chosen, (-1,))
    more = keras.ops.cast(keras.ops.reshape(values, (-1,)), x.dtype)
    flat = keras.ops.reshape(x, (-1,))
    if how in ("add", "sub"):
        total = keras.ops.segment_sum(more, at, num_segments=size)
        return keras.ops.reshape(flat + total if how == "add" else flat - total, x.shape)
    for place, value in zip(keras.ops.unstack(at), keras.ops.unstack(more), strict=True):
        old = keras.ops.take(flat, place)
        new = {
            "mul": keras.ops.multiply, "div": keras.ops.divide, "max": keras.ops.maximum, "min": keras.ops.minimum,
        }[how](old, value)
        flat = keras.ops.scatter_update(flat, keras.ops.reshape(place, (1, 1)), keras.ops.reshape(new, (1,)))
    return keras.ops.reshape(flat, x.shape)


def scatter_along(input: Any, axis: int, index: Any, src: Any, how: str = "none") -> Any:
    """Write single elements, whose number along `axis` is that of `index`; `how` combines them with the old ones."""
    x = tensor("ops.scatter", input)
    index = keras.ops.cast(tensor("ops.scatter", index), "int32")
    number = axis_of("ops.scatter", axis, rank_of(x))
    cut = tuple(slice(size) if place != number else slice(None) for place, size in enumerate(index.shape))
    chosen = keras.ops.take_along_axis(places(x)[cut], index, axis=number)
    values = tensor("ops.scatter", src)
    values = values[tuple(slice(size) for size in index.shape)] if rank_of(values) else values
    values = keras.ops.cast(keras.ops.broadcast_to(values, index.shape), x.dtype)
    return scattered(x, chosen, values) if how == "none" else combined(x, chosen, values, how)


def scatter(input: Any, axis: int, index: Any, src: Any) -> Any:
    """`input` with an element of `src` for each of `index`, whose number counts along `axis`.

    Source: MindSpore, `mindspore.ops.scatter`.
    """
    return scatter_along(input, axis, index, src)


def tensor_scatter_elements(
    input_x: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "none"
) -> Any:
    """`scatter` of `updates` at `indices` along `axis` into `input_x`; `reduction` "add" adds them.

    Source: MindSpore, `mindspore.ops.tensor_scatter_elements`.
    """
    return scatter_along(input_x, axis, indices, updates, reduction)


def updated(input: Any, indices: Any, updates: Any, how: str) -> Any:
    """Combine slices with those at the places that the rows of `indices` name; `how` is "update", "add" and so on."""
    x = tensor("ops.tensor_scatter", input)
    rows = keras.ops.moveaxis(tensor("ops.tensor_scatter", indices), -1, 0)
    chosen = read(places(x), tuple(keras.ops.unstack(rows)))
    values = keras.ops.broadcast_to(keras.ops.cast(tensor("ops.tensor_scatter", updates), x.dtype), chosen.shape)
    return scattered(x, chosen, values) if how == "update" else combined(x, chosen, values, how)


def _stored(x: Any, value: Any) -> Any:
    """Return a value, which a Parameter holds from then on."""
    return assign(x, value) if isinstance(x, keras.Variable) else value


# How old and new values are combined, and in which words.
_WAYS: Final = {
    "add": "added to the old ones", "sub": "taken from the old ones", "mul": "times the old ones",
    "div": "dividing the old ones", "max": "where they are larger", "min": "where they are smaller",
    "update": "in place of the old ones",
}


def _row(name: str, how: str, function: Callable[..., Any]) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"`input_x` with `updates` at the places `indices`, {_WAYS[how]}. "
        f"Example: ``ops.{name}(x, indices, updates)``. "
        f"Source: MindSpore, `mindspore.ops.{name}`."
    )
    return function


def _tensor_scatter(how: str) -> Callable[..., Any]:
    def of_rows(input_x: Any, indices: Any, updates: Any) -> Any:
        return updated(input_x, indices, updates, how)

    return _row(f"tensor_scatter_{how}", how, of_rows)


def _scatter(how: str) -> Callable[..., Any]:
    """Return the function whose `indices` count slices along the first axis; a Parameter is written."""

    def of_slices(input_x: Any, indices: Any, updates: Any) -> Any:
        rows = keras.ops.expand_dims(tensor(f"ops.scatter_{how}", indices), -1)
        return _stored(input_x, updated(input_x, rows, updates, how))

    return _row(f"scatter_{how}", how, of_slices)


def _scatter_nd(how: str) -> Callable[..., Any]:
    """Return the function whose `indices` hold places in their last axis; a Parameter is written."""

    def of_places(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Any:
        return _stored(input_x, updated(input_x, indices, updates, how))

    made = _row(f"scatter_nd_{how}", how, of_places)
    made.__doc__ = f"{made.__doc__} `use_locking` is accepted."
    return made


tensor_scatter_add: Final = _tensor_scatter("add")
tensor_scatter_sub: Final = _tensor_scatter("sub")
tensor_scatter_mul: Final = _tensor_scatter("mul")
tensor_scatter_div: Final = _tensor_scatter("div")
tensor_scatter_max: Final = _tensor_scatter("max")
tensor_scatter_min: Final = _tensor_scatter("min")
tensor_scatter_update: Final = _tensor_scatter("update")
scatter_add: Final = _scatter("add")
scatter_sub: Final = _scatter("sub")
scatter_mul: Final = _scatter("mul")
scatter_div: Final = _scatter("div")
scatter_max: Final = _scatter("max")
scatter_min: Final = _scatter("min")
scatter_update: Final = _scatter("update")
scatter_nd_add: Final = _scatter_nd("add")
scatter_nd_sub: Final = _scatter_nd("sub")
scatter_nd_mul: Final = _scatter_nd("mul")
scatter_nd_div: Final = _scatter_nd("div")
scatter_nd_max: Final = _scatter_nd("max")
scatter_nd_min: Final = _scatter_nd("min")
scatter_nd_update: Final = _scatter_nd("update")


def _in_place(name: str, how: str) -> Callable[..., Any]:
    def of_rows(x: Any, v: Any, indices: Any) -> Any:
        at_rows = np.reshape(np.asarray(indices, np.int32), (-1, 1))
        return updated(x, at_rows, v, how)

    of_rows.__name__ = of_rows.__qualname__ = name
    of_rows.__doc__ = (
        f"`x` with the rows `v` at the places `indices`, {_WAYS[how]}. Example: ``ops.{name}(x, v, (0,))``. "
        f"Source: MindSpore, `mindspore.ops.{name}`."
    )
    return of_rows


inplace_add: Final = _in_place("inplace_add", "add")
inplace_sub: Final = _in_place("inplace_sub", "sub")
inplace_update: Final = _in_place("inplace_update", "update")


def unique_consecutive(
    input: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements of `input`, or with `dim` its slices, without repetitions that follow each other.

    With `return_inverse` the place of each among them, with `return_counts` how often each came.

    Source: MindSpore, `mindspore.ops.unique_consecutive`.
    """
    x = tensor("ops.unique_consecutive", input)
    x = keras.ops.reshape(x, (-1,)) if dim is None else keras.ops.moveaxis(x, dim, 0)
    changed = keras.ops.any(
        keras.ops.reshape(x[1:] != x[:-1], (x.shape[0] - 1, -1)), axis=1
    ) if x.shape[0] > 1 else keras.ops.zeros((0,), dtype="bool")
    changed = keras.ops.concatenate([keras.ops.ones((min(1, x.shape[0]),), dtype="bool"), changed])
    starts = keras.ops.reshape(keras.ops.nonzero(changed)[0], (-1,))
    kept = keras.ops.take(x, starts, axis=0)
    found = [kept if dim is None else keras.ops.moveaxis(kept, 0, dim)]
    long = backend.held_format("int64")
    inverse = keras.ops.cumsum(keras.ops.cast(changed, "int32")) - 1
    if return_inverse:
        found.append(keras.ops.cast(inverse, long))
    if return_counts:
        ends = keras.ops.concatenate([starts[1:], keras.ops.full((1,), x.shape[0], dtype=starts.dtype)])
        found.append(keras.ops.cast(ends - starts, long))
    return tuple(found) if len(found) > 1 else found[0]


def unique_with_pad(x: Any, pad_num: Any) -> tuple[Any, Any]:
    """(different elements of `x`, filled up with `pad_num`; the place of each element among them).

    Source: MindSpore, `mindspore.ops.unique_with_pad`.
    """
    found, places_in = unique(x)
    x = tensor("ops.unique_with_pad", x)
    padding = keras.ops.full((x.shape[0] - found.shape[0],), pad_num, dtype=found.dtype)
    return keras.ops.concatenate([found, padding]), keras.ops.cast(places_in, "int32")


def _identity_of(reduce: Any, x: Any) -> Any:
    if reduce is np.multiply:
        return 1
    dtype = keras.backend.standardize_dtype(x.dtype)
    limits = np.finfo("float32" if dtype == "bfloat16" else dtype) if "float" in dtype else np.iinfo(dtype)
    return limits.min if reduce is np.maximum else limits.max


def _segments(how: str) -> Callable[..., Any]:
    reduce = {"max": np.maximum, "min": np.minimum, "prod": np.multiply, "sum": np.add}[how]
    fold = {"max": keras.ops.max, "min": keras.ops.min, "prod": keras.ops.prod, "sum": keras.ops.sum}[how]

    def of_segments(x: Any, segment_ids: Any, num_segments: int) -> Any:
        where = f"ops.unsorted_segment_{how}"
        value, ids = tensor(where, x), keras.ops.cast(tensor(where, segment_ids), "int32")
        rows = keras.ops.reshape(value, (-1, *value.shape[rank_of(ids):]))
        flat = keras.ops.reshape(ids, (-1,))
        if how == "sum":
            return keras.ops.segment_sum(rows, flat, num_segments=int(num_segments))
        found = []
        for number in range(int(num_segments)):
            inside = keras.ops.reshape(flat == number, (-1, *(1,) * (rank_of(rows) - 1)))
            nothing = keras.ops.cast(_identity_of(reduce, value), value.dtype)
            found.append(fold(keras.ops.where(inside, rows, nothing), axis=0))
        return keras.ops.stack(found)

    words = {"max": "largest element", "min": "smallest element", "prod": "product", "sum": "sum"}[how]
    of_segments.__name__ = of_segments.__qualname__ = f"unsorted_segment_{how}"
    of_segments.__doc__ = (
        f"The {words} of the slices of `x` that have each of `num_segments` numbers in `segment_ids`. Example: "
        f"``ops.unsorted_segment_{how}(x, ids, 3)``. Source: MindSpore, `mindspore.ops.unsorted_segment_{how}`."
    )
    return of_segments


unsorted_segment_max: Final = _segments("max")
unsorted_segment_min: Final = _segments("min")
unsorted_segment_prod: Final = _segments("prod")
unsorted_segment_sum: Final = _segments("sum")


def sparse_segment_mean(x: Any, indices: Any, segment_ids: Any) -> Any:
    """The means of those rows of `x` at `indices` that have each number, from 0 to the last, in the `segment_ids`.

    A number that is not among them has a row of zeros.

    Example: ``ops.sparse_segment_mean(x, indices, segment_ids)``.
    Source: MindSpore, `mindspore.ops.sparse_segment_mean`.
    """
    where = "ops.sparse_segment_mean"
    ids = keras.ops.cast(tensor(where, segment_ids), "int32")
    count = int(backend.to_numpy(ids)[-1]) + 1 if ids.shape[0] else 0
    rows = keras.ops.take(tensor(where, x), keras.ops.cast(tensor(where, indices), "int32"), axis=0)
    total = keras.ops.segment_sum(rows, ids, num_segments=count)
    each = keras.ops.segment_sum(keras.ops.ones(ids.shape, rows.dtype), ids, num_segments=count)
    return total / keras.ops.reshape(keras.ops.maximum(each, 1), (count, *(1,) * (rank_of(rows) - 1)))


def _locking(name: str, function: Callable[..., Any]) -> type[Primitive]:
    """Return the class of a primitive that takes `use_locking`, which has no effect."""

    def start(self: Any, use_locking: bool = False) -> None:
        Primitive.__init__(self)

    made = primitive(name, function)
    return type(name, (made,), {
        "__init__": start, "__doc__": f"{made.__doc__} `use_locking` is accepted.", "__module__": __name__,
    })


TensorScatterAdd: Final = primitive("TensorScatterAdd", tensor_scatter_add)
ScatterAdd: Final = _locking("ScatterAdd", scatter_add)
ScatterNdAdd: Final = _locking("ScatterNdAdd", scatter_nd_add)
TensorScatterSub: Final = primitive("TensorScatterSub", tensor_scatter_sub)
ScatterSub: Final = _locking("ScatterSub", scatter_sub)
ScatterNdSub: Final = _locking("ScatterNdSub", scatter_nd_sub)
TensorScatterMul: Final = primitive("TensorScatterMul", tensor_scatter_mul)
ScatterMul: Final = _locking("ScatterMul", scatter_mul)
ScatterNdMul: Final = _locking("ScatterNdMul", scatter_nd_mul)
TensorScatterDiv: Final = primitive("TensorScatterDiv", tensor_scatter_div)
ScatterDiv: Final = _locking("ScatterDiv", scatter_div)
ScatterNdDiv: Final = _locking("ScatterNdDiv", scatter_nd_div)
TensorScatterMax: Final = primitive("TensorScatterMax", tensor_scatter_max)
ScatterMax: Final = _locking("ScatterMax", scatter_max)
ScatterNdMax: Final = _locking("ScatterNdMax", scatter_nd_max)
TensorScatterMin: Final = primitive("TensorScatterMin", tensor_scatter_min)
ScatterMin: Final = _locking("ScatterMin", scatter_min)
ScatterNdMin: Final = _locking("ScatterNdMin", scatter_nd_min)
TensorScatterUpdate: Final = primitive("TensorScatterUpdate", tensor_scatter_update)
ScatterUpdate: Final = _locking("ScatterUpdate", scatter_update)
ScatterNdUpdate: Final = _locking("ScatterNdUpdate", scatter_nd_update)
UnsortedSegmentMax: Final = primitive("UnsortedSegmentMax", unsorted_segment_max)
UnsortedSegmentMin: Final = primitive("UnsortedSegmentMin", unsorted_segment_min)
UnsortedSegmentProd: Final = primitive("UnsortedSegmentProd", unsorted_segment_prod)
UnsortedSegmentSum: Final = primitive("UnsortedSegmentSum", unsorted_segment_sum)
UniqueWithPad: Final = primitive("UniqueWithPad", unique_with_pad)
