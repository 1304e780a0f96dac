"""`PlaceMethods`: methods that cut tensors up, turn them, and change some of their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from mixtrain import backend, checks
from mixtrain.common.indexing import places, read, scattered, written
from mixtrain.common.parts import viewing
from mixtrain.dtype import float32
from mixtrain.ops import creation, facts, joining, ordering, random, selection
from mixtrain.ops.inputs import as_floats, axes_of, axis_of, rank_of, tensor
from mixtrain.ops.operator import operator

_Method = Callable[..., Any]


def _at(axis: int, part: Any) -> tuple[Any, ...]:
    """Return the index of a part along an axis."""
    return (*(slice(None),) * axis, part)


def _narrow(self: Any, dim: int, start: int, length: int) -> Any:
    x = tensor("Tensor.narrow", self)
    axis = axis_of("Tensor.narrow", dim, rank_of(x), name="dim")
    return read(x, _at(axis, slice(start, start + length)))


def _diagonal(self: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return keras.ops.diagonal(tensor("Tensor.diagonal", self), offset, axis1, axis2)


def _diagonal_scatter(self: Any, src: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    x = tensor("Tensor.diagonal_scatter", self)
    return scattered(x, keras.ops.diagonal(places(x), offset, dim1, dim2), keras.ops.cast(tensor("", src), x.dtype))


def _fill_diagonal(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    x = tensor("Tensor.fill_diagonal", self)
    chosen = keras.ops.diagonal(places(x))
    return scattered(x, chosen, keras.ops.full(chosen.shape, fill_value, dtype=x.dtype))


def _diff(self: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    parts = [part for part in (prepend, self, append) if part is not None]
    return keras.ops.diff(joining.concat(parts, axis) if len(parts) > 1 else tensor("Tensor.diff", self), n, axis)


def _flipped(axis: int) -> _Method:
    return lambda self: keras.ops.flip(tensor("Tensor.flip", self), axis)


def _rot90(self: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    return keras.ops.rot90(tensor("Tensor.rot90", self), k, tuple(dims))


def _reverse(self: Any, axis: Any) -> Any:
    x = tensor("Tensor.reverse", self)
    return keras.ops.flip(x, axes_of("Tensor.reverse", axis, rank_of(x)))


def _reverse_sequence(self: Any, seq_lengths: Any, seq_dim: int = 0, batch_dim: int = 0) -> Any:
    x = tensor("Tensor.reverse_sequence", self)
    rows = keras.ops.moveaxis(x, (batch_dim, seq_dim), (0, 1))
    lengths = keras.ops.cast(tensor("Tensor.reverse_sequence", seq_lengths), "int32")[:, None]
    order = keras.ops.arange(rows.shape[1], dtype="int32")[None]
    order = keras.ops.where(order < lengths, lengths - 1 - order, order)
    order = keras.ops.reshape(order, (*order.shape, *(1,) * (rank_of(rows) - 2)))
    turned = keras.ops.take_along_axis(rows, keras.ops.broadcast_to(order, rows.shape), axis=1)
    return keras.ops.moveaxis(turned, (0, 1), (batch_dim, seq_dim))


def _tensor_split(self: Any, indices_or_sections: Any, axis: int = 0) -> tuple[Any, ...]:
    sections = indices_or_sections if isinstance(indices_or_sections, int) else list(indices_or_sections)
    x = tensor("Tensor.tensor_split", self)
    number = axis_of("Tensor.tensor_split", axis, rank_of(x))
    size = joining.known_size("Tensor.tensor_split", x, number)
    if isinstance(sections, int):
        widths = [size // sections + (place < size % sections) for place in range(sections)]
        sections = np.cumsum(widths)[:-1].tolist()
    ends = [*sections, size]
    return tuple(
        read(x, _at(number, slice(start, end))) for start, end in zip([0, *sections], ends, strict=True)
    )


def _split_on(axis: int) -> _Method:
    return lambda self, indices_or_sections: _tensor_split(self, indices_or_sections, axis)


def _choose(self: Any, choices: Any, mode: str = "clip") -> Any:
    checks.one_of("Tensor.choose", "mode", mode, ("clip", "wrap", "raise"))
    x = keras.ops.cast(tensor("Tensor.choose", self), "int32")
    stacked = keras.ops.stack([keras.ops.broadcast_to(tensor("", one), x.shape) for one in choices])
    place = keras.ops.mod(x, len(choices)) if mode == "wrap" else keras.ops.clip(x, 0, len(choices) - 1)
    return keras.ops.take_along_axis(stacked, place[None], axis=0)[0]


def _index_add(self: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    x = tensor("Tensor.index_add", self)
    axis = axis_of("Tensor.index_add", dim, rank_of(x), name="dim")
    rows = keras.ops.moveaxis(x, axis, 0)
    more = keras.ops.moveaxis(keras.ops.cast(tensor("Tensor.index_add", source), x.dtype), axis, 0) * alpha
    index = keras.ops.cast(tensor("Tensor.index_add", index), "int32")
    return keras.ops.moveaxis(rows + keras.ops.segment_sum(more, index, num_segments=rows.shape[0]), 0, axis)


def _index_changed(name: str) -> _Method:
    def compute(self: Any, axis: int, index: Any, value: Any) -> Any:
        x = tensor(f"Tensor.{name}", self)
        number = axis_of(f"Tensor.{name}", axis, rank_of(x))
        return written(x, _at(number, index), value)

    return compute


def _index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    x = tensor("Tensor.index_put", self)
    if not accumulate:
        return written(x, tuple(indices), values)
    chosen = read(places(x), tuple(indices))
    return _combined(x, chosen, keras.ops.broadcast_to(tensor("Tensor.index_put", values), chosen.shape), "add")


def _combined(x: Any, chosen: Any, values: Any, how: str) -> Any:
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


def _scatter_along(self: Any, axis: int, index: Any, src: Any, how: str = "none") -> Any:
    x = tensor("Tensor.scatter", self)
    index = keras.ops.cast(tensor("Tensor.scatter", index), "int32")
    number = axis_of("Tensor.scatter", axis, rank_of(x), name="dim")
    cut = tuple(slice(size) if place != number else slice(None) for place, size in enumerate(index.shape))
    chosen = keras.ops.take_along_axis(places(x)[cut], index, axis=number)
    values = tensor("Tensor.scatter", src)
    values = values[tuple(slice(size) for size in index.shape)] if rank_of(values) else values
    values = keras.ops.cast(keras.ops.broadcast_to(values, index.shape), x.dtype)
    return scattered(x, chosen, values) if how == "none" else _combined(x, chosen, values, how)


def _scatter(self: Any, axis: int, index: Any, src: Any) -> Any:
    return _scatter_along(self, axis, index, src)


def _scatter_how(how: str) -> _Method:
    """Return ``scatter_<how>(indices, updates)``, where each row of the indices is that of one slice."""

    def compute(self: Any, indices: Any, updates: Any) -> Any:
        x = tensor(f"Tensor.scatter_{how}", self)
        rows = keras.ops.moveaxis(tensor(f"Tensor.scatter_{how}", indices), -1, 0)
        chosen = read(places(x), tuple(keras.ops.unstack(rows)))
        updates = tensor(f"Tensor.scatter_{how}", updates)
        return _combined(x, chosen, keras.ops.broadcast_to(updates, chosen.shape), how)

    return compute


def _scatter_add(self: Any, *args: Any, **named: Any) -> Any:
    """``scatter_add(indices, updates)``, or ``scatter_add(dim, index, src)`` along one axis."""
    if len(args) + len(named) == 3:
        dim, index, src = (*args, *(named[key] for key in ("dim", "index", "src") if key in named))
        return _scatter_along(self, dim, index, src, "add")
    return _scatter_how("add")(self, *args, **named)


def _select_scatter(self: Any, src: Any, axis: int, index: int) -> Any:
    x = tensor("Tensor.select_scatter", self)
    return written(x, _at(axis_of("Tensor.select_scatter", axis, rank_of(x)), index), src)


def _slice_scatter(
    self: Any, src: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    x = tensor("Tensor.slice_scatter", self)
    return written(x, _at(axis_of("Tensor.slice_scatter", axis, rank_of(x)), slice(start, end, step)), src)


def _masked_scatter(self: Any, mask: Any, tensor_: Any) -> Any:
    x = tensor("Tensor.masked_scatter", self)
    chosen = selection.masked_select(places(x), mask)
    values = keras.ops.cast(keras.ops.reshape(tensor("", tensor_), (-1,)), x.dtype)
    return scattered(x, chosen, values[: keras.ops.shape(chosen)[0]])


def _unique_consecutive(
    self: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    x = tensor("Tensor.unique_consecutive", self)
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


def _segments(how: str) -> _Method:
    reduce = getattr(np, {"max": "maximum", "min": "minimum", "prod": "multiply"}[how])

    def compute(self: Any, segment_ids: Any, num_segments: int) -> Any:
        where = f"Tensor.unsorted_segment_{how}"
        x, ids = tensor(where, self), keras.ops.cast(tensor(where, segment_ids), "int32")
        rows = keras.ops.reshape(x, (-1, *x.shape[rank_of(ids):]))
        flat = keras.ops.reshape(ids, (-1,))
        found = []
        for number in range(num_segments):
            inside = keras.ops.reshape(flat == number, (-1, *(1,) * (rank_of(rows) - 1)))
            nothing = keras.ops.cast(_identity_of(reduce, x), x.dtype)
            found.append(getattr(keras.ops, how)(keras.ops.where(inside, rows, nothing), axis=0))
        return keras.ops.stack(found)

    return compute


def _identity_of(reduce: Any, x: Any) -> Any:
    if reduce is np.multiply:
        return 1
    dtype = keras.backend.standardize_dtype(x.dtype)
    limits = np.finfo("float32" if dtype == "bfloat16" else dtype) if "float" in dtype else np.iinfo(dtype)
    return limits.min if reduce is np.maximum else limits.max


def _stride(self: Any, dim: int | None = None) -> Any:
    sizes, found = tuple(self.shape), [1]
    for size in reversed(sizes[1:]):
        found.insert(0, found[0] * size)
    found = found if sizes else []
    return found if dim is None else found[dim]


def _unfold(self: Any, dimension: int, size: int, step: int) -> Any:
    x = tensor("Tensor.unfold", self)
    axis = axis_of("Tensor.unfold", dimension, rank_of(x), name="dimension")
    starts = np.arange(0, joining.known_size("Tensor.unfold", x, axis) - size + 1, step, dtype=np.int32)
    windows = keras.ops.take(x, starts[:, None] + np.arange(size, dtype=np.int32), axis=axis)
    return keras.ops.moveaxis(windows, axis + 1, -1)


def _new_full(self: Any, size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    return creation.full(size, fill_value, dtype=dtype or facts.dtype(self))


def _unique_with_pad(self: Any, pad_num: Any) -> tuple[Any, Any]:
    found, places_in = ordering.unique(self)
    x = tensor("Tensor.unique_with_pad", self)
    padding = keras.ops.full((x.shape[0] - found.shape[0],), pad_num, dtype=found.dtype)
    return keras.ops.concatenate([found, padding]), keras.ops.cast(places_in, "int32")


def _drawn(name: str, dtype: str) -> _Method:
    """Return a method that draws columns of each row: of weights for `multinomial`, else of logits."""

    def compute(self: Any, num_samples: int, *_: Any, **__: Any) -> Any:
        x = as_floats(f"Tensor.{name}", self)
        logits = keras.ops.log(x) if name == "multinomial" else x
        chance = keras.ops.cast(random.rand(num_samples, *x.shape), x.dtype)
        chosen = keras.ops.argmax(logits - keras.ops.log(-keras.ops.log(chance)), axis=-1)
        return keras.ops.cast(keras.ops.moveaxis(chosen, 0, -1), backend.held_format(dtype))

    return compute


def _uniform(self: Any, from_: float = 0.0, to: float = 1.0, generator: Any = None) -> Any:
    drawn = random.uniform(facts.shape(self), keras.ops.cast(from_, float32), keras.ops.cast(to, float32))
    return keras.ops.cast(drawn, facts.dtype(self))


class PlaceMethods:
    """Methods that cut up, turn and change places."""

    __slots__ = ()

    narrow = viewing(operator("narrow", _narrow))
    diagonal = viewing(operator("diagonal", _diagonal))
    diagonal_scatter = operator("diagonal_scatter", _diagonal_scatter)
    diagflat = operator("diagflat", lambda self, offset=0: keras.ops.diagflat(tensor("Tensor.diagflat", self), offset))
    diff = operator("diff", _diff)
    fill_diagonal = operator("fill_diagonal", _fill_diagonal)
    fills = operator("fills", lambda self, value: creation.full_like(self, value))
    fliplr = operator("fliplr", _flipped(1))
    flipud = operator("flipud", _flipped(0))
    rot90 = operator("rot90", _rot90)
    reverse = operator("reverse", _reverse)
    reverse_sequence = operator("reverse_sequence", _reverse_sequence)
    tensor_split = viewing(operator("tensor_split", _tensor_split))
    vsplit = viewing(operator("vsplit", _split_on(0)))
    hsplit = viewing(operator("hsplit", _split_on(1)))
    dsplit = viewing(operator("dsplit", _split_on(2)))
    choose = operator("choose", _choose)
    index_add = operator("index_add", _index_add)
    index_fill = operator("index_fill", _index_changed("index_fill"))
    index_put = operator("index_put", _index_put)
    scatter = operator("scatter", _scatter)
    scatter_add = operator("scatter_add", _scatter_add)
    scatter_sub = operator("scatter_sub", _scatter_how("sub"))
    scatter_mul = operator("scatter_mul", _scatter_how("mul"))
    scatter_div = operator("scatter_div", _scatter_how("div"))
    scatter_max = operator("scatter_max", _scatter_how("max"))
    scatter_min = operator("scatter_min", _scatter_how("min"))
    select_scatter = operator("select_scatter", _select_scatter)
    slice_scatter = operator("slice_scatter", _slice_scatter)
    masked_scatter = operator("masked_scatter", _masked_scatter)
    unique_consecutive = operator("unique_consecutive", _unique_consecutive)
    unsorted_segment_max = operator("unsorted_segment_max", _segments("max"))
    unsorted_segment_min = operator("unsorted_segment_min", _segments("min"))
    unsorted_segment_prod = operator("unsorted_segment_prod", _segments("prod"))
    unfold = operator("unfold", _unfold)
    new_full = operator("new_full", _new_full)
    new_empty = operator("new_empty", lambda self, size, *, dtype=None: creation.zeros(
        size, dtype or facts.dtype(self)
    ))
    uniform = operator("uniform", _uniform)
    bernoulli = operator("bernoulli", lambda self, p=None: random.bernoulli(self, self if p is None else p))
    multinomial = operator("multinomial", _drawn("multinomial", "int32"))
    random_categorical = operator("random_categorical", _drawn("random_categorical", "int64"))
    unique_with_pad = operator("unique_with_pad", _unique_with_pad)
    byte = operator("byte", lambda self: facts.cast(self, "uint8"))
    short = operator("short", lambda self: facts.cast(self, "int16"))
    stride = _stride
    storage_offset = operator("storage_offset", lambda self: 0)
