"""Functions along axes: sums, extremes, cumulative functions and orders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mixtrain import checks, ops
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import int64, is_float
from mixtrain.typing import TensorLike, Tree


def _with_long_indices(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return (values, indices) with int64 indices, as PyTorch has them."""
    return pair[0], ops.cast(pair[1], int64)


def _picked(input: Any, dim: int, indices: Any, keepdim: bool = True) -> tuple[Any, Any]:
    """Return the elements at indices, to which alone their gradients go, and the indices."""
    pair = ops.gather_elements(input, dim, indices), ops.cast(indices, int64)
    return pair if keepdim else (ops.squeeze(pair[0], dim), ops.squeeze(pair[1], dim))


def _extreme(name: str) -> Callable[..., Tree]:
    reduce, index_of, of_pairs = (getattr(ops, each) for each in (f"a{name}", f"arg{name}", f"{name}imum"))

    def along(input: Any, dim: int, keepdim: bool = False) -> Tree:
        if not input.ndim:
            return input, ops.cast(ops.zeros_like(input), int64)
        return _picked(input, dim, index_of(input, dim, True), keepdim)

    def extreme(input: TensorLike, *args: Any, **kwargs: Any) -> Tree:
        if not args and not kwargs:
            return reduce(input)
        of_two = "other" in kwargs or (args and not isinstance(args[0], (int, str)))
        return (of_pairs if of_two else along)(input, *args, **kwargs)

    return extreme


def _index(name: str) -> Callable[..., Tree]:
    index_of = getattr(ops, f"arg{name}")

    def index(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        found = ops.cast(index_of(input, dim, keepdim), int64)
        return ops.reshape(found, (1,) * input.ndim) if dim is None and keepdim else found

    return index


def _moment(name: str) -> Callable[..., Tree]:
    function = getattr(ops, name)

    def moment(input: Any, dim: Any = None, *, correction: int = 1, keepdim: bool = False) -> Tree:
        if not is_float(input.dtype):
            raise checks.fail_type(f"mint.{name}", "the tensor must be floating point", input, "x.float()")
        return function(input, dim, correction, keepdim)

    return moment


def _kthvalue(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, Any]:
    values, indices = ops.sort(input, dim)
    size = input.shape[dim] if input.ndim else 1
    checks.number("mint.kthvalue", "k", k, at_least=1, at_most=size, example=1)
    pair = [ops.narrow(part, dim, k - 1, 1) for part in (values, indices)]
    values, indices = pair if keepdim else [ops.squeeze(part, dim) for part in pair]
    return _with_long_indices((values, indices))


def _summed(input: Any) -> Any:
    """Return the dtype of a sum: int64 of integers."""
    return input.dtype if is_float(input.dtype) or ops.is_complex(input) else int64


def _median(input: Any, dim: int | None = None, keepdim: bool = False) -> Tree:
    if dim is None:
        return ops.median(ops.ravel(input), -1)[0]
    return _with_long_indices(ops.median(input, dim, keepdim))


def _unique(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tree:
    if dim is not None:
        raise NotImplementedError(
            f"mint.unique: expected dim=None; got {dim}. Write numpy.unique(input.asnumpy(), axis={dim}), or flatten."
        )
    values, counts = ops.unique_consecutive(ops.sort(ops.cast(ops.ravel(input), input.dtype))[0], False, True)
    parts = [values]
    if return_inverse:
        parts.append(ops.searchsorted(values, input))
    if return_counts:
        parts.append(ops.cast(counts, int64))
    return tuple(parts) if len(parts) > 1 else values


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "trace": lambda input: ops.cast(ops.trace(input), _summed(input)),
    "all": lambda input, dim=None, keepdim=False: ops.all(input, dim, keepdim),
    "amax": lambda input, dim=(), keepdim=False: ops.amax(input, None if dim == () else dim, keepdim),
    "amin": lambda input, dim=(), keepdim=False: ops.amin(input, None if dim == () else dim, keepdim),
    "any": lambda input, dim=None, keepdim=False: ops.any(input, dim, keepdim),
    "argmax": _index("max"),
    "argmin": _index("min"),
    "argsort": lambda input, dim=-1, descending=False, stable=False: ops.cast(
        ops.argsort(input, dim, descending), int64
    ),
    "count_nonzero": lambda input, dim=None: ops.count_nonzero(input, () if dim is None else dim, False, int64),
    "cummax": lambda input, dim: _picked(input, dim, ops.cummax(input, dim)[1]),
    "cummin": lambda input, dim: _picked(input, dim, ops.cummin(input, dim)[1]),
    "cumsum": lambda input, dim, dtype=None: ops.cumsum(input, dim, dtype or _summed(input)),
    "diff": lambda input, n=1, dim=-1, prepend=None, append=None: ops.diff_ext(input, n, dim, prepend, append),
    "kthvalue": _kthvalue,
    "max": _extreme("max"),
    "mean": lambda input, dim=None, keepdim=False, *, dtype=None: Tensor.mean(input, dim, keepdim, dtype=dtype),
    "median": _median,
    "min": _extreme("min"),
    "nansum": lambda input, dim=None, keepdim=False, *, dtype=None: ops.nansum(input, dim, keepdim, dtype=dtype),
    "prod": lambda input, dim=None, keepdim=False, *, dtype=None: ops.prod(input, dim, keepdim, dtype),
    "sort": lambda input, *, dim=-1, descending=False, stable=False: _with_long_indices(
        ops.sort(input, dim, descending)
    ),
    **{name: _moment(name) for name in ("std", "std_mean", "var", "var_mean")},
    "topk": lambda input, k, dim=-1, largest=True, sorted=True: _with_long_indices(
        ops.topk(input, k, dim, largest, sorted)
    ),
    "unique": _unique,
}
