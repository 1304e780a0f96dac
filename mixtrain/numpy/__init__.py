"""NumPy's functions with MindSpore's names and dtypes: `mixtrain.numpy`.

Python floats and NumPy's float64 become float32, Python ints int32; a Tensor keeps its dtype. Most functions are those
of `keras.ops` or composed of them: they have gradients and can be compiled. Those of `_ON_HOST` are NumPy's, computed
from values: of indexes, counts and sets; so are the functions that an older Keras lacks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend, checks, ops
from mixtrain.boundary import to_backend_tensors
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import (  # noqa: F401
    DType,
    as_dtype,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from mixtrain.numpy.arrays import as_array, as_input, narrow
from mixtrain.numpy.composed import COMPOSED, PADDED_BY, padded_by
from mixtrain.numpy.extended import EXTENDED
from mixtrain.numpy.signatures import bound, names_of
from mixtrain.ops.operator import operator
from mixtrain.typing import BackendTensor, DTypeLike, TensorLike, Tree

_Function = Callable[..., Any]
float_, int_ = float32, int32
pi, e, euler_gamma, inf, nan, newaxis = np.pi, np.e, np.euler_gamma, np.inf, np.nan, None

# Functions of `keras.ops` whose first argument is a sequence of arrays.
_OF_SEQUENCES: Final = ("stack", "hstack", "dstack")
# The number of leading array arguments of the functions that `keras.ops` has under the same name.
_OF_KERAS: Final = {
    **dict.fromkeys((
        "abs", "absolute", "all", "any", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
        "argmax", "argmin", "cbrt", "ceil", "copy", "corrcoef", "cos", "cosh", "count_nonzero", "cumprod", "cumsum",
        "deg2rad", "diagflat", "diagonal", "diff", "exp", "exp2", "expand_dims", "expm1", "flip", "fliplr",
        "flipud", "floor", "full_like", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "log", "log10",
        "log1p", "log2", "logical_not", "mean", "median", "moveaxis", "nancumsum", "nanmax", "nanmean",
        "nanmin", "nanstd", "nansum", "nanvar", "negative", "nonzero", "ones_like", "prod", "ptp", "rad2deg",
        "ravel", "reciprocal", "repeat", "reshape", "average", "sign", "signbit", "sin", "sinc", "sinh", "sqrt",
        "square", "squeeze", "std", "sum", "swapaxes", "tan", "tanh", "tile", "trace", "transpose", "tril",
        "triu", "trunc", "vander", "var", "zeros_like", "empty_like", "broadcast_to", "bitwise_not", "nan_to_num",
        "split", "array_split", "hsplit", "vsplit", "dsplit",
    ), 1),
    **dict.fromkeys((
        "add", "append", "arctan2", "copysign", "float_power", "bitwise_and", "bitwise_or", "bitwise_xor",
        "cross", "digitize", "divide", "dot", "equal", "floor_divide", "fmod", "gcd", "greater", "greater_equal",
        "heaviside", "hypot", "inner", "isin", "kron", "lcm", "less", "less_equal", "logaddexp", "logaddexp2",
        "logical_and", "logical_or", "logical_xor", "matmul", "maximum", "minimum", "mod", "multiply", "not_equal",
        "outer", "power", "subtract", "take", "tensordot", "true_divide", "take_along_axis", "ldexp",
    ), 2),
    "where": 3,
}
# Functions that `keras.ops` has under another name.
_RENAMED: Final = {
    "fabs": "absolute", "invert": "bitwise_not", "radians": "deg2rad", "sometrue": "any", "remainder": "mod",
    "rint": "round",
}
_ON_HOST: Final = (
    "array_equal", "array_equiv", "array_str", "bincount", "diag_indices", "histogram2d", "histogram_bin_edges",
    "histogramdd", "indices", "intersect1d", "isscalar", "ix_", "ravel_multi_index", "setdiff1d", "tril_indices",
    "tril_indices_from", "triu_indices", "triu_indices_from", "unique", "unravel_index", "argwhere", "bartlett",
    "blackman", "hamming", "hanning", "size", "in1d",
)


def _function(name: str, compute: _Function) -> _Function:
    """Return a public function of tensors with a name and docstring."""
    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = (
        f"NumPy's `{name}`, of Tensors or of `arrays` of them, with MindSpore's arguments. "
        f"Example: ``mixtrain.numpy.{name}(...)``."
    )
    return operator(name, compute, owner="numpy")


def _cast(value: BackendTensor, dtype: DTypeLike | None) -> BackendTensor:
    return value if dtype is None else keras.ops.cast(value, as_dtype(dtype))


def _of_keras(name: str, arrays: int, source: str) -> _Function:
    function = EXTENDED.get(name) or getattr(keras.ops, source, None)
    if function is None:
        return _on_host(name)

    def compute(*args: Any, **kwargs: Any) -> BackendTensor | tuple[BackendTensor, ...]:
        args, kwargs = bound(name, args, kwargs, function, arrays)
        dtype = None if name.endswith("_like") else kwargs.pop("dtype", None)
        inputs = [as_input(value) for value in args[:arrays]]
        if inputs and not backend.is_tensor(inputs[0]):
            inputs[0] = as_array(name, inputs[0])
        kwargs = {key: as_input(value) if isinstance(value, np.ndarray) else value for key, value in kwargs.items()}
        result = function(*inputs, *args[arrays:], **kwargs)
        return tuple(result) if isinstance(result, list) else _cast(result, dtype)

    return _function(name, compute)


def _of_sequences(name: str) -> _Function:
    function = getattr(keras.ops, name, None)
    if function is None:
        return _on_host(name)

    def compute(*args: Any, **kwargs: Any) -> BackendTensor:
        (arrays, *settings), kwargs = bound(name, args, kwargs, function, 1)
        return function([as_array(name, value) for value in arrays], *settings, **kwargs)

    return _function(name, compute)


def _composed(name: str, function: _Function) -> _Function:
    def compute(*args: Any, **kwargs: Any) -> Tree:
        args, kwargs = bound(name, args, kwargs, function, 0)
        dtype = kwargs.pop("dtype", None)
        return keras.tree.map_structure(lambda value: _cast(value, dtype), function(*args, **kwargs))

    return _function(name, compute)


def _to_numpy(value: Any) -> Any:
    return backend.to_numpy(value) if backend.is_tensor(value) else value


def _to_tensors(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(map(_to_tensors, value))
    if isinstance(value, (np.ndarray, np.number, np.bool_)):
        return Tensor(narrow(np.asarray(value)))
    return value


def _on_host(name: str) -> _Function:
    function: Any = np.isin if name == "in1d" else getattr(np, name)

    def compute(*args: Any, **kwargs: Any) -> Tree:
        args, kwargs = bound(name, args, kwargs, function, 0)
        args, kwargs = keras.tree.map_structure(_to_numpy, to_backend_tensors((args, kwargs)))
        dtype = kwargs.pop("dtype", None)
        if dtype is not None and "dtype" in names_of(function):
            kwargs["dtype"], dtype = as_dtype(dtype).name, None
        result = function(*args, **kwargs)
        result = result if dtype is None else result.astype(as_dtype(dtype).name)
        if name == "argwhere":
            return Tensor(result)  # Not narrowed: int64.
        if name == "unique" and isinstance(result, tuple):  # MindSpore's indexes have one axis.
            result = (result[0], *(np.ravel(indexes) for indexes in result[1:]))
        if name in ("bincount", "ravel_multi_index"):
            result = np.asarray(result, np.float32)
        return _to_tensors(list(result) if name == "indices" else result)

    compute.__name__ = compute.__qualname__ = name
    compute.__doc__ = (
        f"NumPy's `{name}`, computed from values. Example: ``mixtrain.numpy.{name}(...)``."
    )
    return compute


def _extreme(name: str, function: _Function) -> _Function:
    def compute(*args: Any, **kwargs: Any) -> BackendTensor:
        args, kwargs = bound(name, args, kwargs, function, 1)
        where = kwargs.pop("where", True)
        where = None if where is True else as_input(where)
        return function(as_input(args[0]), *args[1:], where=where, **kwargs)

    return _function(name, compute)


def array(obj: TensorLike, dtype: DTypeLike | None = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A Tensor of `obj`, in `dtype`, with at least `ndmin` axes; without `copy`, `obj` itself if it is such a one.

    Example:
        >>> import mixtrain.numpy as np
        >>> print(np.array([1, 2, 3]) + 0.5)
        [1.5 2.5 3.5]
    """
    if not copy and isinstance(obj, Tensor) and obj.ndim >= ndmin and dtype in (None, obj.dtype):
        return obj
    value = as_array("array", obj)
    missing = ndmin - len(value.shape)
    value = keras.ops.reshape(value, (1,) * missing + tuple(value.shape)) if missing > 0 else value
    return Tensor(_cast(value, dtype))


def asarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A Tensor of `a` in `dtype`; `a` itself if it is one."""
    return array(a, dtype, copy=False)


def asfarray(a: TensorLike, dtype: DTypeLike = float32) -> Tensor:
    """A Tensor of `a` in the float `dtype`."""
    return array(a, dtype)


def _as_shape(name: str, shape: TensorLike) -> tuple[int, ...]:
    """Return the shape that the function `name` was given: an int, or several in any structure of ints."""
    sizes = np.reshape(np.asarray(_to_numpy(to_backend_tensors(shape))), (-1,))
    return tuple(checks.integer(f"numpy.{name}", "shape", size, at_least=0) for size in sizes.tolist())


def zeros(shape: TensorLike, dtype: DTypeLike = float32) -> Tensor:
    """Zeros of `shape` and `dtype`."""
    return Tensor(keras.ops.zeros(_as_shape("zeros", shape), as_dtype(dtype)))


def ones(shape: TensorLike, dtype: DTypeLike = float32) -> Tensor:
    """Ones of `shape` and `dtype`."""
    return Tensor(keras.ops.ones(_as_shape("ones", shape), as_dtype(dtype)))


def empty(shape: TensorLike, dtype: DTypeLike = float32) -> Tensor:
    """Zeros of `shape` and `dtype`: memory is never left uninitialized."""
    return zeros(shape, dtype)


def full(shape: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """`fill_value` everywhere in a Tensor of `shape` and `dtype`."""
    value = as_array("full", fill_value)
    return Tensor(_cast(keras.ops.broadcast_to(value, _as_shape("full", shape)), dtype))


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float32) -> Tensor:
    """Ones on the diagonal `k` of `N` rows and `M` columns of `dtype`."""
    return Tensor(np.eye(N, M, k), as_dtype(dtype))


def identity(n: int, dtype: DTypeLike = float32) -> Tensor:
    """The identity matrix of `n` rows, of `dtype`."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = float32) -> Tensor:
    """Ones at and below the diagonal `k` of `N` rows and `M` columns of `dtype`."""
    return Tensor(np.tri(N, M, k), as_dtype(dtype))


def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """Numbers from `start` (or 0) to `stop` by `step`, in `dtype`."""
    start, stop = (0, start) if stop is None else (start, stop)
    bounds: Any = [_to_numpy(to_backend_tensors(value)) for value in (start, stop, 1 if step is None else step)]
    values = narrow(np.arange(*bounds))
    if not values.size:  # As in MindSpore, whose tensors of ranges are not empty.
        raise checks.fail_value("numpy.arange", "stop must lie beyond start", stop, "arange(0, 3)")
    return Tensor(values if dtype is None else values.astype(as_dtype(dtype)))


def linspace(
    start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
    dtype: DTypeLike | None = None, axis: int = 0,
) -> Tensor | tuple[Tensor, Tensor]:
    """`num` numbers from `start` to `stop` (with `endpoint`), along `axis`, in `dtype`; `retstep`: their step too."""
    result = _spaced("linspace", start, stop, num=num, endpoint=endpoint, axis=axis, retstep=retstep)
    values, *steps = result if retstep else (result,)
    values = Tensor(_cast(as_array("linspace", values), dtype or float32))
    return (values, Tensor(as_array("linspace", steps[0]))) if retstep else values


def logspace(
    start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True, base: float = 10.0,
    dtype: DTypeLike | None = None, axis: int = 0,
) -> Tensor:
    """`base` to the power of `num` numbers from `start` to `stop` (with `endpoint`), along `axis`, in `dtype`."""
    values = _spaced("logspace", start, stop, num=num, endpoint=endpoint, base=base, axis=axis)
    return Tensor(_cast(as_array("logspace", values), dtype or float32))


def geomspace(
    start: TensorLike, stop: TensorLike, num: int = 50, endpoint: bool = True, dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """`num` numbers from `start` to `stop` (with `endpoint`) of one ratio, along `axis`, in `dtype`."""
    values = _spaced("geomspace", start, stop, num=num, endpoint=endpoint, axis=axis)
    return Tensor(_cast(as_array("geomspace", values), dtype or float32))


def _spaced(name: str, start: TensorLike, stop: TensorLike, **options: Any) -> Any:
    """Return NumPy's numbers in float64; those between tensors are Keras's, which have gradients."""
    start, stop = to_backend_tensors(start), to_backend_tensors(stop)
    if not backend.is_tensor(start) and not backend.is_tensor(stop):
        return getattr(np, name)(start, stop, **options)
    ends = [keras.ops.cast(as_array(name, end), float32) for end in (start, stop)]
    if name == "geomspace":
        powers = [keras.ops.log10(keras.ops.abs(end)) for end in ends]
        signs = keras.ops.broadcast_to(keras.ops.sign(ends[0]), np.broadcast_shapes(*(end.shape for end in ends)))
        return keras.ops.expand_dims(signs, options["axis"]) * keras.ops.logspace(*powers, **options)
    return getattr(keras.ops, name)(*ends, **options)


def vstack(tup: Sequence[TensorLike]) -> Tensor:
    """Stack the arrays of `tup` vertically, vectors as rows."""
    rows = [as_array("vstack", value) for value in tup]
    rows = [keras.ops.reshape(row, (1, -1)) if len(row.shape) < 2 else row for row in rows]
    return Tensor(keras.ops.concatenate(rows, axis=0))


def rot90(a: TensorLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Tensor:
    """`a` rotated by `k` right angles in the plane of `axes`. Example: ``mixtrain.numpy.rot90([[1, 2]])``."""
    return Tensor(ops.rot90(a, k, axes))


def searchsorted(a: TensorLike, v: TensorLike, side: str = "left", sorter: TensorLike | None = None) -> Tensor:
    """Indices at which `v` keeps `a` sorted (by `sorter`): before equal elements, or after them for `side` "right"."""
    a, v = as_input(to_backend_tensors(a)), as_input(to_backend_tensors(v))
    return Tensor(ops.searchsorted(a, v, out_int32=True, side=side, sorter=sorter))


def clip(
    x: TensorLike, xmin: TensorLike | None, xmax: TensorLike | None, dtype: DTypeLike | None = None
) -> Tensor:
    """Limit `x` to at least `xmin` and at most `xmax`, in the dtype they promote to, or in `dtype`."""
    values = as_array("clip", x)
    for end, limit in ((xmin, ops.maximum), (xmax, ops.minimum)):
        if end is not None:
            values = limit(values, as_input(to_backend_tensors(end)))
    return Tensor(_cast(to_backend_tensors(values), dtype))


def around(a: TensorLike, decimals: int = 0) -> Tensor:
    """Round `a` to `decimals`."""
    return Tensor(keras.ops.round(as_array("around", a), decimals))


round: Final = around


def pad(arr: TensorLike, pad_width: TensorLike, mode: str | Callable[..., Any] = "constant", **kwargs: Any) -> Tensor:
    """Pad `arr` by `pad_width` as NumPy does in each `mode`, whose options are the other arguments.

    A function as `mode`, and `reflect_type`, are computed from values, without gradients.

    Example:
        >>> import mixtrain.numpy as np
        >>> print(np.pad(np.array([1.0, 2.0]), (1, 2), mode="wrap"))
        [2. 1. 2. 1. 2.]
    """
    value = as_array("pad", arr)
    if callable(mode) or "reflect_type" in kwargs:
        return _to_tensors(np.pad(backend.to_numpy(value), pad_width, mode, **kwargs))  # type: ignore[call-overload]
    widths = np.broadcast_to(np.asarray(pad_width), (len(value.shape), 2))
    if mode in PADDED_BY:
        return Tensor(padded_by(mode, value, widths, **kwargs))
    if mode == "constant":
        options = {name: _to_numpy(to_backend_tensors(option)) for name, option in kwargs.items()}
        # NumPy pads a mask and the border values; only the inside has gradients.
        inside = np.pad(np.ones(value.shape, bool), pad_width)
        border = np.pad(np.zeros(value.shape, np.float64), pad_width, **options)
        padded = keras.ops.pad(value, widths.tolist())
        return Tensor(keras.ops.where(inside, padded, keras.ops.cast(border, value.dtype)))
    for axis, size in enumerate(value.shape):
        indices = np.pad(np.arange(size), tuple(widths[axis]), mode)  # type: ignore[call-overload]
        value = keras.ops.take(value, indices, axis=axis)
    return Tensor(value)


def isclose(a: TensorLike, b: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether `a` and `b` differ by at most `atol + rtol * |b|`; with `equal_nan`, NaN equals NaN."""
    first, second = (as_array("isclose", value) for value in (a, b))
    return Tensor(ops.isclose(first, second, rtol, atol, equal_nan))


def trapz(y: TensorLike, x: TensorLike | None = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """Integrate `y` along `axis` by the trapezoidal rule, at points `x` or with spacing `dx`, in float32."""
    y = as_array("trapz", y)
    value = keras.ops.moveaxis(keras.ops.cast(y, float32), axis, -1)
    width: BackendTensor | float = dx
    if x is not None:
        points = keras.ops.cast(as_array("trapz", x), float32)
        points = points if len(points.shape) == 1 else keras.ops.moveaxis(points, axis, -1)
        width = points[..., 1:] - points[..., :-1]
    return Tensor(keras.ops.sum((value[..., 1:] + value[..., :-1]) / 2 * width, axis=-1))


def histogram(
    a: TensorLike,
    bins: TensorLike = 10,
    range: tuple[float, float] | None = None,
    weights: TensorLike | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Count how many of `a` are in each bin, in float32; return the counts and the edges. Computed from values.

    Args:
        a: The values.
        bins: Number of bins of equal width, or their edges.
        range: Lower and upper edge; None for the range of `a`.
        weights: Weight of each value.
        density: Whether the integral is normalized to 1.

    Example:
        >>> import mixtrain.numpy as np
        >>> print(np.histogram([1, 2, 1], bins=[0, 1, 2, 3])[0])
        [0. 2. 1.]
    """
    a = np.asarray(_to_numpy(to_backend_tensors(a)))
    weights = None if weights is None else np.asarray(_to_numpy(to_backend_tensors(weights)))
    bins = bins if isinstance(bins, int) else np.asarray(_to_numpy(to_backend_tensors(bins)))
    counts, edges = np.histogram(a, bins, range, density=density, weights=weights)
    return Tensor(counts.astype(np.float32)), Tensor(narrow(edges))


def norm(
    x: TensorLike, ord: float | str | None = None, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> Tensor:
    """The norm of order `ord` of `x` along `axis`, kept with `keepdims`."""
    value = keras.ops.cast(as_array("norm", x), float32)
    return Tensor(keras.ops.norm(value, ord=ord, axis=axis, keepdims=keepdims))


def multi_dot(arrays: Sequence[TensorLike]) -> Tensor:
    """The matrix product of all `arrays`."""
    return Tensor(functools.reduce(
        keras.ops.matmul, (as_array("multi_dot", value) for value in arrays)
    ))


def rand(*shape: int, dtype: DTypeLike = float32) -> Tensor:
    """Uniform random numbers in [0, 1) of `shape` and `dtype`."""
    return Tensor(ops.rand(*_as_shape("rand", shape), dtype=as_dtype(dtype)))


def randn(*shape: int, dtype: DTypeLike = float32) -> Tensor:
    """Standard normal random numbers of `shape` and `dtype`."""
    return Tensor(ops.randn(*_as_shape("randn", shape), dtype=as_dtype(dtype)))


def randint(
    minval: int, maxval: int | None = None, shape: TensorLike | None = None, dtype: DTypeLike = int32
) -> Tensor:
    """Random integers in [`minval` or 0, `maxval`), of `shape` and `dtype`."""
    low, high = (0, minval) if maxval is None else (minval, maxval)
    return Tensor(ops.randint(low, high, _as_shape("randint", () if shape is None else shape), dtype=as_dtype(dtype)))


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype that `arrays_and_dtypes` are promoted to."""
    values = map(to_backend_tensors, arrays_and_dtypes)
    dtypes = [value if isinstance(value, type) else getattr(value, "dtype", value) for value in values]
    dtypes = [np.dtype(dtype).name if isinstance(dtype, str) else dtype for dtype in dtypes]
    # `keras.backend.result_type` takes the type of a Python number.
    dtypes = [type(dtype) if isinstance(dtype, (bool, int, float)) else dtype for dtype in dtypes]
    return as_dtype(keras.backend.result_type(*dtypes))


def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """The dtype that `type1` and `type2` are promoted to."""
    return result_type(as_dtype(type1), as_dtype(type2))


class _Grid:
    """NumPy's `mgrid` or `ogrid` of Tensors. Example: ``mixtrain.numpy.mgrid[0:2, 0:3]``."""

    def __init__(self, name: str) -> None:
        self._grid = getattr(np, name)

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Any:
        return _to_tensors(self._grid[key])


mgrid, ogrid = _Grid("mgrid"), _Grid("ogrid")
_GENERATED: Final = {
    **{name: _of_keras(name, arrays, name) for name, arrays in _OF_KERAS.items()},
    **{name: _extreme(name, function) for name, function in (
        ("amax", ops.amax), ("amin", ops.amin), ("max", ops.amax), ("min", ops.amin),
    )},
    **{name: _of_keras(name, 1 if name != "remainder" else 2, source) for name, source in _RENAMED.items()},
    **{name: _of_sequences(name) for name in _OF_SEQUENCES},
    **{name: _composed(name, function) for name, function in COMPOSED.items()},
    **{name: _on_host(name) for name in _ON_HOST},
}
globals().update(_GENERATED)
__all__ = sorted({
    *_GENERATED, "array", "asarray", "asfarray", "zeros", "ones", "empty", "full", "eye", "identity", "tri", "arange",
    "linspace", "logspace", "geomspace", "vstack", "rot90", "searchsorted", "clip", "around", "round",
    "norm", "multi_dot", "rand",
    "randn", "randint", "result_type", "pad", "isclose", "trapz", "histogram", "promote_types",
    "mgrid", "ogrid", "bool_", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "uint32", "uint64", "float_", "int_", "pi", "e", "inf", "nan", "newaxis",
})
