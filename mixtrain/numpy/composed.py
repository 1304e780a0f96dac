"""Functions of NumPy that Keras lacks, composed of those it has: they have gradients and can be compiled."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import keras
import numpy as np

from mixtrain import checks, ops
from mixtrain.boundary import in_mode, to_backend_tensors, to_tensors
from mixtrain.dtype import float32, is_float
from mixtrain.numpy.arrays import as_array
from mixtrain.ops.inputs import tensor_dtype
from mixtrain.typing import BackendTensor, TensorLike

_k = keras.ops
_Function = Callable[..., Any]
_Mode = Literal["full", "same", "valid"]


def _is_floating(array: BackendTensor) -> bool:
    return is_float(tensor_dtype(array))


def _as_float(array: BackendTensor) -> BackendTensor:
    return array if _is_floating(array) else _k.cast(array, float32)


# ---- Shapes -------------------------------------------------------------------------------------------------------
def _at_least(name: Literal["atleast_1d", "atleast_2d", "atleast_3d"]) -> _Function:
    def compute(*arys: TensorLike) -> BackendTensor | list[BackendTensor]:
        arrays = [as_array(name, value) for value in arys]
        shapes = [getattr(np, name)(np.broadcast_to(0, array.shape)).shape for array in arrays]
        results = [_k.reshape(array, shape) for array, shape in zip(arrays, shapes, strict=True)]
        return results[0] if len(results) == 1 else results

    return compute


def _broadcast_arrays(*args: TensorLike) -> list[BackendTensor]:
    arrays = [as_array("broadcast_arrays", value) for value in args]
    shape = np.broadcast_shapes(*(tuple(array.shape) for array in arrays))
    return [_k.broadcast_to(array, shape) for array in arrays]


def _column_stack(tup: Sequence[TensorLike]) -> BackendTensor:
    arrays = [as_array("column_stack", value) for value in tup]
    return _k.concatenate([_k.reshape(array, (-1, 1)) if len(array.shape) < 2 else array for array in arrays], axis=1)


def _concatenate(arrays: Sequence[TensorLike], axis: int | None = 0) -> BackendTensor:
    parts = [as_array("concatenate", value) for value in arrays]
    return _k.concatenate([_k.ravel(part) for part in parts]) if axis is None else _k.concatenate(parts, axis)


def _diag(v: TensorLike, k: int = 0) -> BackendTensor:
    array = as_array("diag", v)
    if len(array.shape) == 2 and not -array.shape[0] < k < array.shape[1]:
        return _k.zeros((0,), array.dtype)
    return _k.diag(array, k)


def _meshgrid(*xi: TensorLike, sparse: bool = False, indexing: Literal["xy", "ij"] = "xy") -> list[BackendTensor]:
    checks.one_of("numpy.meshgrid", "indexing", indexing, ("xy", "ij"))
    arrays = [_k.ravel(as_array("meshgrid", value)) for value in xi]
    axes = [*range(len(arrays))]
    if indexing == "xy":
        axes[:2] = axes[1::-1]
    shapes = [[-1 if at == axis else 1 for at in range(len(arrays))] for axis in axes]
    grids = [_k.reshape(array, shape) for array, shape in zip(arrays, shapes, strict=True)]
    return grids if sparse else _broadcast_arrays(*grids)


def _roll(a: TensorLike, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> BackendTensor:
    array = as_array("roll", a)
    if axis is None:
        return _k.roll(array, shift)
    for steps, along in np.broadcast(shift, axis):
        array = _k.roll(array, int(steps), int(along))
    return array


def _rollaxis(x: TensorLike, axis: int, start: int = 0) -> BackendTensor:
    array = as_array("rollaxis", x)
    axes = len(array.shape)
    axis, start = axis % axes, start + axes if start < 0 else start
    return _k.moveaxis(array, axis, start - (start > axis))


# What is reduced to the number that an axis is padded with.
PADDED_BY: Final[dict[Any, _Function]] = {
    "maximum": _k.max, "minimum": _k.min, "mean": _k.mean, "median": _k.median, "linear_ramp": _k.mean,
}


def padded_by(
    mode: str, array: BackendTensor, widths: np.ndarray, stat_length: TensorLike | None = None,
    end_values: TensorLike = 0,
) -> BackendTensor:
    """Pad each axis by what the first or last `stat_length` values have, or in a ramp from the last to `end_values`."""
    axes = len(array.shape)
    ends = np.broadcast_to(np.asarray(end_values, np.float64), (axes, 2))
    lengths = np.broadcast_to(np.asarray(1 if mode == "linear_ramp" else stat_length), (axes, 2))
    for axis, size in enumerate(array.shape):
        sides = []
        for side, width in enumerate(map(int, widths[axis])):
            length = size if lengths[axis, side] is None else min(int(lengths[axis, side]), size)
            part = _k.take(array, np.arange(length) + (size - length) * side, axis)
            number = PADDED_BY[mode](part, axis=axis, keepdims=True)
            if mode == "linear_ramp":
                steps = np.arange(width).reshape([width if at == axis else 1 for at in range(axes)]) / max(width, 1)
                end = float(ends[axis, side])
                number = end + (number - end) * _k.cast(np.flip(steps, axis) if side else steps, number.dtype)
            if not _is_floating(array):
                number = _k.floor(number) if mode == "linear_ramp" else _k.round(number)
            shape = [*array.shape[:axis], width, *array.shape[axis + 1 :]]
            sides.append(_k.cast(_k.broadcast_to(number, shape), array.dtype))
        array = _k.concatenate([sides[0], array, sides[1]], axis)
    return array


# ---- Functions of rows --------------------------------------------------------------------------------------------
def _called(name: str, function: _Function, *args: Any, **kwargs: Any) -> BackendTensor:
    """Call a function that a script gave to the function `name`, with Tensors; return its result as an array."""
    with in_mode("tensors"):
        return as_array(name, function(*to_tensors(args), **to_tensors(kwargs)))


def _apply_along_axis(func1d: _Function, axis: int, arr: TensorLike, *args: Any, **kwargs: Any) -> BackendTensor:
    array = as_array("apply_along_axis", arr)
    axis %= len(array.shape)
    moved = _k.moveaxis(array, axis, -1)
    rows = _k.reshape(moved, (-1, moved.shape[-1]))
    results = [_called("apply_along_axis", func1d, rows[index], *args, **kwargs) for index in range(rows.shape[0])]
    result = _k.reshape(_k.stack(results), (*moved.shape[:-1], *results[0].shape))
    added, axes = len(results[0].shape), len(result.shape)
    return _k.moveaxis(result, [*range(axes - added, axes)], [*range(axis, axis + added)])


def _apply_over_axes(func: _Function, a: TensorLike, axes: int | Sequence[int]) -> BackendTensor:
    array = as_array("apply_over_axes", a)
    for axis in (axes,) if isinstance(axes, int) else axes:
        result = _called("apply_over_axes", func, array, axis)
        array = result if len(result.shape) == len(array.shape) else _k.expand_dims(result, axis)
    return array


def _select(condlist: Iterable[TensorLike], choicelist: Sequence[TensorLike], default: TensorLike = 0) -> BackendTensor:
    conditions = [as_array("select", value) for value in condlist]
    result = as_array("select", default)
    if len(conditions) != len(choicelist):
        raise checks.fail_value(
            "numpy.select", f"choicelist must have {len(conditions)} arrays, one a condition", len(choicelist), "[x, y]"
        )
    for condition, choice in zip(reversed(conditions), reversed(choicelist), strict=True):
        result = _k.where(condition, as_array("select", choice), result)
    return result


def _piecewise(
    x: TensorLike, condlist: TensorLike, funclist: Sequence[Any], *args: Any, **kw: Any
) -> BackendTensor:
    array = as_array("piecewise", x)
    listed = isinstance(condlist, (list, tuple)) and len(condlist) and not isinstance(condlist[0], bool)
    conditions = [*condlist] if listed else [condlist]
    values = [_called("piecewise", item, array, *args, **kw) if callable(item) else item for item in funclist]
    default = values.pop() if len(values) == len(conditions) + 1 else 0
    return _k.broadcast_to(_select(conditions, values, default), array.shape)


def _choose(
    a: TensorLike, choices: Sequence[TensorLike], mode: Literal["clip", "wrap", "raise"] = "clip"
) -> BackendTensor:
    checks.one_of("numpy.choose", "mode", mode, ("clip", "wrap", "raise"))
    index, *arrays = _broadcast_arrays(a, *choices)
    if mode == "raise" and bool(_k.any((index < 0) | (index >= len(arrays)))):
        raise IndexError(f"numpy.choose: an index is not between 0 and {len(arrays) - 1}. Write mode='clip'.")
    index = _k.mod(index, len(arrays)) if mode == "wrap" else _k.clip(index, 0, len(arrays) - 1)
    return _k.take_along_axis(_k.stack(arrays), _k.cast(index, "int32")[None], axis=0)[0]


# ---- Sliding sums and polynomials ---------------------------------------------------------------------------------
def _products(long: BackendTensor, short: BackendTensor, mode: _Mode) -> BackendTensor:
    """Return the sums of products of `short` with each window of `long`."""
    checks.one_of("numpy.correlate", "mode", mode, ("full", "same", "valid"))
    count = short.shape[0]
    before, after = {
        "full": (count - 1, count - 1), "same": (count // 2, count - 1 - count // 2), "valid": (0, 0),
    }[mode]
    padded = _k.pad(long, [[before, after]])
    starts = np.arange(before + after + long.shape[0] - count + 1)
    return _k.sum(_k.take(padded, starts[:, None] + np.arange(count)) * short, axis=1)


def _correlate(a: TensorLike, v: TensorLike, mode: _Mode = "valid") -> BackendTensor:
    first, second = as_array("correlate", a), as_array("correlate", v)
    if first.shape[0] < second.shape[0]:
        return _k.flip(_products(second, first, mode))
    return _products(first, second, mode)


def _convolve(a: TensorLike, v: TensorLike, mode: _Mode = "full") -> BackendTensor:
    short, long = sorted((as_array("convolve", value) for value in (v, a)), key=lambda array: array.shape[0])
    return _products(long, _k.flip(short), mode)


def _coefficients(value: TensorLike) -> BackendTensor:
    return _k.ravel(as_array("polyval", value))


def _polyadd(a1: TensorLike, a2: TensorLike, sign: int = 1) -> BackendTensor:
    first, second = _coefficients(a1), _coefficients(a2)
    length = max(first.shape[0], second.shape[0])
    first, second = (_k.pad(array, [[length - array.shape[0], 0]]) for array in (first, second))
    return first + second if sign > 0 else first - second


def _polyder(p: TensorLike, m: int = 1) -> BackendTensor:
    result = _coefficients(p)
    for _ in range(m):
        powers = _k.cast(np.arange(result.shape[0] - 1, 0, -1), result.dtype)
        result = result[:-1] * powers
    return result


def _polyint(p: TensorLike, m: int = 1, k: TensorLike | None = None) -> BackendTensor:
    result = _as_float(_coefficients(p))
    constants = np.broadcast_to(0 if k is None else np.asarray(k), (m,))
    for constant in constants:
        powers = _k.cast(np.arange(result.shape[0], 0, -1), result.dtype)
        result = _k.concatenate([result / powers, _k.cast([float(constant)], result.dtype)])
    return result


def _polyval(p: TensorLike, x: TensorLike) -> BackendTensor:
    coefficients, at = _as_float(_coefficients(p)), _as_float(as_array("polyval", x))
    result = _k.zeros_like(at)
    for index in range(coefficients.shape[0]):
        result = result * at + coefficients[index]
    return result


# ---- Differences, angles and statistics ---------------------------------------------------------------------------
def _ediff1d(ary: TensorLike, to_end: TensorLike | None = None, to_begin: TensorLike | None = None) -> BackendTensor:
    array = _k.ravel(as_array("ediff1d", ary))
    first, last = (
        [] if end is None else [_k.cast(_k.ravel(as_array("ediff1d", end)), array.dtype)] for end in (to_begin, to_end)
    )
    return _k.concatenate([*first, array[1:] - array[:-1], *last])


def _gradient(
    f: TensorLike, *varargs: TensorLike, axis: int | Sequence[int] | None = None, edge_order: int = 1
) -> BackendTensor | list[BackendTensor]:
    array = _as_float(as_array("gradient", f))
    axes = [*range(len(array.shape))] if axis is None else [axis] if isinstance(axis, int) else [*axis]
    steps = varargs or (1.0,)
    steps = steps * len(axes) if len(steps) == 1 else steps
    if len(steps) != len(axes) or edge_order != 1:
        raise checks.fail_value(
            "numpy.gradient", f"the spacing must be one or {len(axes)}, and edge_order 1", (len(steps), edge_order),
            "numpy.gradient(f, 0.5)",
        )
    results = []
    for along, step in zip(axes, steps, strict=True):
        moved, distance = _k.moveaxis(array, along, -1), _k.cast(as_array("gradient", step), array.dtype)
        widths = _k.diff(distance) if len(distance.shape) else _k.broadcast_to(distance, (moved.shape[-1] - 1,))
        slopes, before, after = _k.diff(moved) / widths, widths[:-1], widths[1:]
        inner = (slopes[..., :-1] * after + slopes[..., 1:] * before) / (before + after)
        results.append(_k.moveaxis(_k.concatenate([slopes[..., :1], inner, slopes[..., -1:]], axis=-1), -1, along))
    return results[0] if len(results) == 1 else results


def _unwrap(p: TensorLike, discont: float = math.pi, axis: int = -1) -> BackendTensor:
    angles = _k.moveaxis(_as_float(as_array("unwrap", p)), axis, -1)
    steps = _k.stop_gradient(_k.diff(angles))
    inside = _k.mod(steps + math.pi, 2 * math.pi) - math.pi
    inside = _k.where((inside == -math.pi) & (steps > 0), math.pi, inside)
    turns = _k.where(_k.abs(steps) < discont, 0.0, inside - steps)
    turned = angles[..., 1:] + _k.cumsum(turns, axis=-1)
    return _k.moveaxis(_k.concatenate([angles[..., :1], turned], axis=-1), -1, axis)


def _interp(
    x: TensorLike, xp: TensorLike, fp: TensorLike, left: TensorLike | None = None, right: TensorLike | None = None
) -> BackendTensor:
    at, points, values = (_as_float(as_array("interp", value)) for value in (x, xp, fp))
    last = points.shape[0] - 1
    if not last:
        between = _k.broadcast_to(values[0], at.shape)
    else:
        above = _k.clip(to_backend_tensors(ops.searchsorted(points, at, out_int32=True)), 1, last)
        (x0, x1), (y0, y1) = ((_k.take(array, above - 1), _k.take(array, above)) for array in (points, values))
        between = y0 + (y1 - y0) * ((at - x0) / (x1 - x0))
    below = values[0] if left is None else _k.cast(as_array("interp", left), values.dtype)
    beyond = values[last] if right is None else _k.cast(as_array("interp", right), values.dtype)
    return _k.where(at < points[0], below, _k.where(at > points[last], beyond, between))


def _cov(
    m: TensorLike, y: TensorLike | None = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None,
    fweights: TensorLike | None = None, aweights: TensorLike | None = None,
) -> BackendTensor:
    arrays = [_as_float(as_array("cov", value)) for value in (m, y) if value is not None]
    arrays = [_k.reshape(array, (1, -1)) if len(array.shape) < 2 else array for array in arrays]
    rows = _k.concatenate([array if rowvar or array.shape[0] == 1 else _k.transpose(array) for array in arrays])
    ddof = (0 if bias else 1) if ddof is None else ddof
    given = [_k.cast(as_array("cov", each), rows.dtype) for each in (fweights, aweights) if each is not None]
    weights = functools.reduce(_k.multiply, given, _k.ones(rows.shape[1:], rows.dtype))
    total = _k.sum(weights)
    centred = rows - _k.sum(rows * weights, axis=1, keepdims=True) / total
    lost = ddof if aweights is None else ddof * _k.sum(weights * given[-1]) / total
    return _k.squeeze(_k.matmul(centred * weights, _k.transpose(centred)) / (total - lost))


def _divmod(x1: TensorLike, x2: TensorLike) -> tuple[BackendTensor, BackendTensor]:
    first, second = as_array("divmod", x1), as_array("divmod", x2)
    return _k.floor_divide(first, second), _k.mod(first, second)


def _matrix_power(a: TensorLike, n: int) -> BackendTensor:
    matrix = as_array("matrix_power", a)
    matrix = _k.inv(matrix) if n < 0 else matrix
    identity = _k.broadcast_to(_k.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)
    return functools.reduce(_k.matmul, [matrix] * abs(n)) if n else identity


COMPOSED: Final[dict[str, _Function]] = {
    "atleast_1d": _at_least("atleast_1d"), "atleast_2d": _at_least("atleast_2d"), "atleast_3d": _at_least("atleast_3d"),
    "broadcast_arrays": _broadcast_arrays, "column_stack": _column_stack, "concatenate": _concatenate, "diag": _diag,
    "meshgrid": _meshgrid, "roll": _roll, "rollaxis": _rollaxis, "apply_along_axis": _apply_along_axis,
    "apply_over_axes": _apply_over_axes, "select": _select, "piecewise": _piecewise, "choose": _choose,
    "correlate": _correlate, "convolve": _convolve, "polyadd": _polyadd,
    "polysub": functools.partial(_polyadd, sign=-1), "polymul": _convolve, "polyder": _polyder, "polyint": _polyint,
    "polyval": _polyval, "ediff1d": _ediff1d, "gradient": _gradient, "unwrap": _unwrap, "interp": _interp, "cov": _cov,
    "divmod": _divmod, "matrix_power": _matrix_power, "fix": lambda x: _k.trunc(_as_float(as_array("fix", x))),
    "positive": lambda a: as_array("positive", a),
}
