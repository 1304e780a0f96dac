"""NumPy's functions with MindSpore's names and dtypes: `mixtrain.numpy`.

Python floats and NumPy's float64 are float32 here, Python ints int32; a Tensor keeps its dtype. Most functions are
those of `keras.ops`, which differentiate and compile. Those of `_ON_HOST` are NumPy's own, computed from values: they
have no gradients and cannot be part of a compiled function; with an older Keras that holds for what it lacks, too.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.boundary import settled
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import (  # noqa: F401
    as_dtype, bool_, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
)
from mixtrain.ops import comparison, extremes, random, statistics
from mixtrain.ops.inputs import tensor
from mixtrain.ops.operator import operator

_Function = Callable[..., Any]
float_, int_ = float32, int32
pi, e, euler_gamma, inf, nan, newaxis = np.pi, np.e, np.euler_gamma, np.inf, np.nan, None

# The first argument is a sequence of arrays.
_OF_SEQUENCES: Final = ("concatenate", "stack", "hstack", "dstack")
# The results are a tuple of arrays.
_SPLITS: Final = ("split", "array_split", "hsplit", "vsplit", "dsplit")
# How many leading arguments are arrays, of the functions that keras.ops has under the same name.
_OF_KERAS: Final = {
    **dict.fromkeys((
        "abs", "absolute", "all", "any", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
        "argmax", "argmin", "cbrt", "ceil", "copy", "corrcoef", "cos", "cosh", "count_nonzero", "cumprod", "cumsum",
        "deg2rad", "diag", "diagflat", "diagonal", "diff", "exp", "exp2", "expand_dims", "expm1", "flip", "fliplr",
        "flipud", "floor", "full_like", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "log", "log10",
        "log1p", "log2", "logical_not", "max", "mean", "median", "min", "moveaxis", "nancumsum", "nanmax", "nanmean",
        "nanmin", "nanstd", "nansum", "nanvar", "negative", "nonzero", "ones_like", "prod", "ptp", "rad2deg",
        "ravel", "reciprocal", "repeat", "reshape", "roll", "rot90", "sign", "signbit", "sin", "sinc", "sinh", "sqrt",
        "square", "squeeze", "std", "sum", "swapaxes", "tan", "tanh", "tile", "trace", "transpose", "tril",
        "triu", "trunc", "vander", "var", "zeros_like", "empty_like", "broadcast_to", "bitwise_not", "nan_to_num",
        *_SPLITS,
    ), 1),
    **dict.fromkeys((
        "add", "append", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "correlate", "cross", "digitize",
        "divide", "dot", "equal", "floor_divide", "fmod", "gcd", "greater", "greater_equal", "heaviside", "hypot",
        "inner", "isin", "kron", "lcm", "less", "less_equal", "logaddexp", "logaddexp2", "logical_and",
        "logical_or", "logical_xor", "matmul", "maximum", "minimum", "mod", "multiply", "not_equal", "outer", "power",
        "subtract", "take", "tensordot", "true_divide", "take_along_axis", "ldexp",
    ), 2),
    "where": 3, "clip": 1,
}
_RENAMED: Final = {
    "fabs": "absolute", "invert": "bitwise_not", "radians": "deg2rad", "sometrue": "any", "remainder": "mod",
    "rint": "round",
}
_ON_HOST: Final = (
    "apply_along_axis", "apply_over_axes", "array_equal", "array_equiv", "array_str", "average", "bincount",
    "broadcast_arrays", "column_stack", "convolve", "copysign", "cov", "diag_indices", "divmod", "ediff1d", "fix",
    "float_power", "gradient", "histogram2d", "histogram_bin_edges", "histogramdd", "indices", "interp",
    "intersect1d", "isscalar", "ix_", "piecewise", "polyadd", "polyder", "polyint", "polymul", "polysub", "polyval",
    "ravel_multi_index", "rollaxis", "select", "setdiff1d", "tril_indices", "tril_indices_from", "triu_indices",
    "triu_indices_from", "unique", "unravel_index", "unwrap", "argwhere", "choose", "bartlett", "blackman", "hamming",
    "hanning", "size", "in1d", "matrix_power", "atleast_1d", "atleast_2d", "atleast_3d", "positive", "meshgrid",
)
# Several arrays come in a list.
_IN_LISTS: Final = ("atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "indices")
_NARROWED: Final = {np.dtype("float64"): np.float32, np.dtype("int64"): np.int32}


def _read(value: Any) -> Any:
    """Return an array argument as a backend tensor: float64 of Python and NumPy is float32, int64 int32."""
    if backend.is_tensor(value) or isinstance(value, keras.Variable) or value is None:
        return value
    if isinstance(value, (list, tuple)) and builtins.any(map(backend.is_tensor, keras.tree.flatten(value))):
        return keras.ops.stack([_read(one) for one in value])
    if isinstance(value, (bool, int, float)):
        return value
    return backend.to_tensor(_narrow(np.asarray(value)))


def _narrow(array: np.ndarray) -> np.ndarray:
    return array.astype(_NARROWED.get(array.dtype, array.dtype))


def _named(name: str, compute: _Function) -> _Function:
    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = (
        f"NumPy's `{name}`, of Tensors or of `arrays` of them; `dtype` is that of the result. "
        f"Example: ``mixtrain.numpy.{name}(...)``. "
        f"Source: NumPy; MindSpore, `mindspore.numpy.{name}`."
    )
    return operator(name, compute)


def _cast(value: Any, dtype: Any) -> Any:
    return value if dtype is None else keras.ops.cast(value, as_dtype(dtype))


def _of_keras(name: str, arrays: int, source: str) -> _Function:
    function = getattr(keras.ops, source, None)
    if function is None:
        return _on_host(name)

    def compute(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        found = [_read(value) for value in args[:arrays]]
        if found and not backend.is_tensor(found[0]):
            found[0] = tensor(f"numpy.{name}", found[0])
        named = {key: _read(value) if isinstance(value, np.ndarray) else value for key, value in kwargs.items()}
        settings = args[arrays:]
        if name == "repeat" and settings:  # Not every backend takes a list of counts.
            settings = (np.asarray(settings[0]), *settings[1:])
        result = function(*found, *settings, **named)
        return tuple(result) if isinstance(result, list) else _cast(result, dtype)

    return _named(name, compute)


def _of_sequences(name: str) -> _Function:
    function = getattr(keras.ops, name, None)
    if function is None:
        return _on_host(name)

    def compute(arrays: Any, *args: Any, **kwargs: Any) -> Any:
        parts = [tensor(f"numpy.{name}", _read(one)) for one in arrays]
        return function(parts, *args, **kwargs)

    return _named(name, compute)


def _known(value: Any) -> Any:
    return backend.to_numpy(value) if backend.is_tensor(value) else value


def _tensors(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(_tensors, value))
    if isinstance(value, (np.ndarray, np.number, np.bool_)):
        return Tensor(_narrow(np.asarray(value)))
    return value


def _on_host(name: str) -> _Function:
    elsewhere: dict[str, Any] = {"fix": np.trunc, "in1d": np.isin, "matrix_power": np.linalg.matrix_power}
    function = elsewhere.get(name) or getattr(np, name)

    def compute(*args: Any, **kwargs: Any) -> Any:
        known, named = keras.tree.map_structure(_known, settled((args, kwargs)))
        found = function(*known, **named)
        several = isinstance(found, (tuple, list)) or name == "indices"
        if name == "argwhere":
            return Tensor(found)
        return _tensors(list(found) if several and name in _IN_LISTS else found)

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = (
        f"NumPy's `{name}`, computed from values. Example: ``mixtrain.numpy.{name}(...)``. "
        f"Source: NumPy; MindSpore, `mindspore.numpy.{name}`."
    )
    return compute


def _largest(name: str, compute: _Function) -> _Function:
    def extreme(*arrays: Any, dtype: Any = None, **kwargs: Any) -> Any:
        where = kwargs.pop("where", True)
        counted = None if where is True else _read(where)
        return _cast(compute(_read(arrays[0]), *arrays[1:], where=counted, **kwargs), dtype)

    return _named(name, extreme)


def array(obj: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Any:
    """A Tensor of `obj`, in `dtype`, with at least `ndmin` axes; `copy` is accepted.

    Example:
        >>> import mixtrain.numpy as np
        >>> print(np.array([1, 2, 3]) + 0.5)
        [1.5 2.5 3.5]

    Source: MindSpore, `mindspore.numpy.array`.
    """
    value = tensor("numpy.array", _read(settled(obj)))
    missing = ndmin - len(value.shape)
    value = keras.ops.reshape(value, (1,) * missing + tuple(value.shape)) if missing > 0 else value
    return Tensor(_cast(value, dtype))


def asarray(a: Any, dtype: Any = None) -> Any:
    """A Tensor of `a` in `dtype`. Source: MindSpore, `mindspore.numpy.asarray`."""
    return array(a, dtype)


def asfarray(a: Any, dtype: Any = float32) -> Any:
    """A Tensor of `a` in the float `dtype`. Source: MindSpore, `mindspore.numpy.asfarray`."""
    return array(a, dtype)


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in np.reshape(np.asarray(_known(settled(shape))), (-1,)))


def zeros(shape: Any, dtype: Any = float32) -> Any:
    """Zeros of `shape` and `dtype`. Source: MindSpore, `mindspore.numpy.zeros`."""
    return Tensor(keras.ops.zeros(_sizes(shape), as_dtype(dtype)))


def ones(shape: Any, dtype: Any = float32) -> Any:
    """Ones of `shape` and `dtype`. Source: MindSpore, `mindspore.numpy.ones`."""
    return Tensor(keras.ops.ones(_sizes(shape), as_dtype(dtype)))


def empty(shape: Any, dtype: Any = float32) -> Any:
    """Zeros of `shape` and `dtype`: no memory is left as it was. Source: MindSpore, `mindspore.numpy.empty`."""
    return zeros(shape, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """`fill_value` everywhere in a Tensor of `shape` and `dtype`. Source: MindSpore, `mindspore.numpy.full`."""
    value = tensor("numpy.full", _read(settled(fill_value)))
    return Tensor(_cast(keras.ops.broadcast_to(value, _sizes(shape)), dtype))


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float32) -> Any:
    """Ones on the diagonal `k` of `N` rows and `M` columns of `dtype`. Source: MindSpore, `mindspore.numpy.eye`."""
    return Tensor(np.eye(N, M, k), as_dtype(dtype))


def identity(n: int, dtype: Any = float32) -> Any:
    """The identity matrix of `n` rows, of `dtype`. Source: MindSpore, `mindspore.numpy.identity`."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float32) -> Any:
    """Ones at and below the diagonal `k` of `N` rows and `M` columns of `dtype`. Source: MindSpore, `numpy.tri`."""
    return Tensor(np.tri(N, M, k), as_dtype(dtype))


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    """Numbers from `start` (or 0) to `stop` by `step`, in `dtype`. Source: MindSpore, `mindspore.numpy.arange`."""
    first, last = (0, start) if stop is None else (start, stop)
    given: Any = [_known(settled(value)) for value in (first, last, 1 if step is None else step)]
    found = _narrow(np.arange(*given))
    return Tensor(found if dtype is None else found.astype(as_dtype(dtype)))


def _spaced(name: str) -> _Function:
    def compute(start: Any, stop: Any, num: int = 50, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        found = getattr(np, name)(_known(settled(start)), _known(settled(stop)), num, *args, **kwargs)
        if isinstance(found, tuple):
            return Tensor(_narrow(found[0])), Tensor(np.float32(found[1]))
        return Tensor(found, as_dtype(dtype or float32))

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = (
        f"NumPy's `{name}`: `num` numbers from `start` to `stop`, in `dtype`. "
        f"Example: ``mixtrain.numpy.{name}(0, 1, 5)``. Source: MindSpore, `mindspore.numpy.{name}`."
    )
    return compute


linspace, logspace, geomspace = _spaced("linspace"), _spaced("logspace"), _spaced("geomspace")


def vstack(tup: Sequence[Any]) -> Any:
    """The arrays of `tup` below each other, vectors as rows. Source: MindSpore, `mindspore.numpy.vstack`."""
    rows = [tensor("numpy.vstack", _read(settled(one))) for one in tup]
    rows = [keras.ops.reshape(row, (1, -1)) if len(row.shape) < 2 else row for row in rows]
    return Tensor(keras.ops.concatenate(rows, axis=0))


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where `v` would go into the sorted `a` (by `sorter`): before equal elements or, on the right `side`, after them.

    Source: MindSpore, `mindspore.numpy.searchsorted`.
    """
    found = statistics.searchsorted(_read(settled(a)), _read(settled(v)), out_int32=True, side=side, sorter=sorter)
    return Tensor(found)


def around(a: Any, decimals: int = 0) -> Any:
    """Round `a` to `decimals`. Source: MindSpore, `mindspore.numpy.around`."""
    return Tensor(keras.ops.round(tensor("numpy.around", _read(settled(a))), decimals))


def pad(arr: Any, pad_width: Any, mode: str = "constant", **kwargs: Any) -> Any:
    """NumPy's `pad` of `arr` by `pad_width` in each of its modes, whose settings are the other arguments.

    "constant", "edge", "reflect", "symmetric" and "wrap" have gradients; the others are computed from values.

    Example:
        >>> import mixtrain.numpy as np
        >>> print(np.pad(np.array([1.0, 2.0]), (1, 2), mode="wrap"))
        [2. 1. 2. 1. 2.]

    Source: MindSpore, `mindspore.numpy.pad`.
    """
    value = tensor("numpy.pad", _read(settled(arr)))
    if mode not in ("edge", "reflect", "symmetric", "wrap", "constant") or "reflect_type" in kwargs or callable(mode):
        return _tensors(np.pad(backend.to_numpy(value), pad_width, mode, **kwargs))  # type: ignore[call-overload]
    if mode == "constant":
        settings = {key: _known(settled(one)) for key, one in kwargs.items()}
        inside = np.pad(np.ones(value.shape, bool), pad_width)
        around = np.pad(np.zeros(value.shape, np.float64), pad_width, **settings)
        widths = np.broadcast_to(np.asarray(pad_width), (len(value.shape), 2)).tolist()
        filled = keras.ops.pad(value, widths)
        return Tensor(keras.ops.where(inside, filled, keras.ops.cast(around, value.dtype)))
    widths = np.broadcast_to(np.asarray(pad_width), (len(value.shape), 2))
    for axis, size in enumerate(value.shape):
        places = np.pad(np.arange(size), tuple(widths[axis]), mode)  # type: ignore[call-overload]
        value = keras.ops.take(value, places, axis=axis)
    return Tensor(value)


def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Whether each of `a` is that of `b` within `atol + rtol * |b|`; `equal_nan` makes NaN equal to itself.

    Source: MindSpore, `mindspore.numpy.isclose`.
    """
    first, second = (tensor("numpy.isclose", _read(settled(one))) for one in (a, b))
    return Tensor(comparison.isclose(first, second, rtol, atol, equal_nan))


def trapz(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """The integral of `y` along `axis` by the trapezoidal rule, at the points `x` or `dx` apart, float32.

    Source: MindSpore, `mindspore.numpy.trapz`.
    """
    value = keras.ops.moveaxis(keras.ops.cast(tensor("numpy.trapz", _read(settled(y))), float32), axis, -1)
    width: Any = dx
    if x is not None:
        points = keras.ops.cast(tensor("numpy.trapz", _read(settled(x))), float32)
        points = points if len(points.shape) == 1 else keras.ops.moveaxis(points, axis, -1)
        width = points[..., 1:] - points[..., :-1]
    return Tensor(keras.ops.sum((value[..., 1:] + value[..., :-1]) / 2 * width, axis=-1))


def histogram(a: Any, bins: Any = 10, range: Any = None, weights: Any = None, density: bool = False) -> Any:
    """How many of `a` fall into each of the `bins` over `range`, float32, and the edges; computed from values.

    Args:
        a: The numbers.
        bins: How many bins of one width, or their edges.
        range: The least and the greatest edge; None for those of `a`.
        weights: What each number counts.
        density: Whether the integral is made 1.

    Example:
        >>> import mixtrain.numpy as np
        >>> print(np.histogram([1, 2, 1], bins=[0, 1, 2, 3])[0])
        [0. 2. 1.]

    Source: MindSpore, `mindspore.numpy.histogram`.
    """
    counted = None if weights is None else np.asarray(_known(settled(weights)))
    known = bins if isinstance(bins, int) else np.asarray(_known(settled(bins)))
    counts, edges = np.histogram(np.asarray(_known(settled(a))), known, range, density=density, weights=counted)
    return Tensor(counts.astype(np.float32)), Tensor(_narrow(edges))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of order `ord` of `x` along `axis`; `keepdims` keeps it. Source: MindSpore, `mindspore.numpy.norm`."""
    value = keras.ops.cast(tensor("numpy.norm", _read(settled(x))), float32)
    return Tensor(keras.ops.norm(value, ord=ord, axis=axis, keepdims=keepdims))


def multi_dot(arrays: Sequence[Any]) -> Any:
    """The product of all `arrays`. Source: MindSpore, `mindspore.numpy.multi_dot`."""
    found = tensor("numpy.multi_dot", _read(settled(arrays[0])))
    for one in arrays[1:]:
        found = keras.ops.matmul(found, tensor("numpy.multi_dot", _read(settled(one))))
    return Tensor(found)


def rand(*shape: int, dtype: Any = float32) -> Any:
    """Uniform numbers in [0, 1) of `shape` and `dtype`. Source: MindSpore, `mindspore.numpy.rand`."""
    return Tensor(random.rand(*_sizes(shape), dtype=as_dtype(dtype)))


def randn(*shape: int, dtype: Any = float32) -> Any:
    """Standard normal numbers of `shape` and `dtype`. Source: MindSpore, `mindspore.numpy.randn`."""
    return Tensor(random.randn(*_sizes(shape), dtype=as_dtype(dtype)))


def randint(minval: int, maxval: int | None = None, shape: Any = None, dtype: Any = int32) -> Any:
    """Integers from `minval` (or 0) below `maxval`, of `shape` and `dtype`. Source: MindSpore, `numpy.randint`."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    return Tensor(random.randint(low, high, _sizes(() if shape is None else shape), dtype=as_dtype(dtype)))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype in which `arrays_and_dtypes` meet. Source: MindSpore, `mindspore.numpy.result_type`."""
    given = map(settled, arrays_and_dtypes)
    dtypes = [one if isinstance(one, type) else getattr(one, "dtype", one) for one in given]
    dtypes = [np.dtype(one).name if isinstance(one, str) else one for one in dtypes]
    dtypes = [type(one) if isinstance(one, (bool, int, float)) else one for one in dtypes]
    return as_dtype(keras.backend.result_type(*dtypes))


def promote_types(type1: Any, type2: Any) -> Any:
    """The dtype in which `type1` and `type2` meet. Source: MindSpore, `mindspore.numpy.promote_types`."""
    return result_type(as_dtype(type1), as_dtype(type2))


class _Grid:
    """`mgrid` and `ogrid`: NumPy's, of Tensors. Example: ``mixtrain.numpy.mgrid[0:2, 0:3]``."""

    def __init__(self, name: str) -> None:
        self._grid = getattr(np, name)

    def __getitem__(self, key: Any) -> Any:
        return _tensors(self._grid[key])


mgrid, ogrid = _Grid("mgrid"), _Grid("ogrid")
_MADE: Final = {
    **{name: _of_keras(name, arrays, name) for name, arrays in _OF_KERAS.items()},
    **{name: _largest(name, getattr(extremes, name)) for name in ("amax", "amin")},
    **{name: _of_keras(name, 1 if name != "remainder" else 2, source) for name, source in _RENAMED.items()},
    **{name: _of_sequences(name) for name in _OF_SEQUENCES},
    **{name: _on_host(name) for name in _ON_HOST},
}
globals().update(_MADE)
__all__ = sorted({
    *_MADE, "array", "asarray", "asfarray", "zeros", "ones", "empty", "full", "eye", "identity", "tri", "arange",
    "linspace", "logspace", "geomspace", "vstack", "searchsorted", "around", "norm", "multi_dot", "rand", "randn",
    "randint", "result_type", "pad", "isclose", "trapz", "histogram", "promote_types",
    "mgrid", "ogrid", "bool_", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "float_", "int_", "pi", "e", "inf", "nan", "newaxis",
})
