"""Functions that join, split, reorder and select elements, and make tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import keras

from mixtrain import ops
from mixtrain.common.generator import Generator
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import DType, bool_, float32, int64
from mixtrain.typing import DTypeLike

_Sizes = int | Sequence[int]
_OF_NUMBERS: Final[Mapping[type, DType]] = {bool: bool_, int: int64, float: float32}


def _sizes(size: tuple[Any, ...]) -> tuple[int, ...]:
    """Return sizes that are given one by one or as one sequence."""
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def _drawn(generator: Generator, kind: str, shape: Any) -> Any:
    """Return float32 numbers of a generator: "random" from 0 to 1, "standard_normal" or "gumbel"."""
    if kind == "standard_normal":
        return Tensor(keras.random.normal(tuple(shape), seed=generator.stream))
    values = Tensor(keras.random.uniform(tuple(shape), seed=generator.stream))
    return values if kind == "random" else -ops.log(-ops.log(values))


def _scatter(input: Any, dim: int, index: Any, src: Any) -> Any:
    # Of a larger source, the elements that the index covers are written.
    part = src[tuple(map(slice, index.shape))] if isinstance(src, Tensor) and src.ndim else ops.full(
        tuple(index.shape), src, dtype=input.dtype
    )
    return ops.scatter(input, dim, index, ops.cast(part, input.dtype))


def _scatter_add(input: Any, dim: int, index: Any, src: Any) -> Any:
    return Tensor.scatter_add(input, dim, index, src[tuple(map(slice, index.shape))])


def _full(size: _Sizes, fill_value: Any, *, dtype: DTypeLike | None = None) -> Any:
    return ops.full(size, fill_value, dtype=_OF_NUMBERS.get(type(fill_value)) if dtype is None else dtype)


def _normal(
    mean: Any = 0.0, std: Any = 1.0, size: Sequence[int] | None = None, generator: Generator | None = None
) -> Any:
    if isinstance(std, (int, float)) and std < 0:
        raise ValueError(f"mint.normal: std must be at least 0; got {std}. Write std=1.0.")
    shape = ops.shape(ops.add(ops.zeros_like(mean), std)) if size is None and isinstance(mean, Tensor) else size
    shape = ops.shape(std) if shape is None and isinstance(std, Tensor) else shape
    return ops.add(mean, ops.mul(_randn(*(shape or ()), generator=generator), std))


def _randint(
    *args: Any, generator: Generator | None = None, dtype: DTypeLike | None = None, device: str | None = None
) -> Any:
    low, high, size = args if len(args) == 3 else (0, *args)
    dtype = int64 if dtype is None else dtype
    if generator is None:
        return ops.randint(low, high, size, dtype=dtype)
    drawn = keras.random.randint(_sizes((size,)), low, high, seed=generator.stream)
    return Tensor(drawn).astype(dtype)


def _randint_like(input: Any, *bounds: int, dtype: DTypeLike | None = None, device: str | None = None) -> Any:
    low, high = bounds if len(bounds) == 2 else (0, *bounds)
    return ops.cast(ops.randint(low, high, ops.shape(input)), input.dtype if dtype is None else dtype)


def _rand(
    *size: Any, generator: Generator | None = None, dtype: DTypeLike | None = None, device: str | None = None
) -> Any:
    return ops.rand(*_sizes(size), dtype=dtype) if generator is None else ops.cast(
        _drawn(generator, "random", _sizes(size)), dtype or float32
    )


def _randn(
    *size: Any, generator: Generator | None = None, dtype: DTypeLike | None = None, device: str | None = None
) -> Any:
    return ops.randn(*_sizes(size), dtype=dtype) if generator is None else ops.cast(
        _drawn(generator, "standard_normal", _sizes(size)), dtype or float32
    )


def _bernoulli(input: Any, *, generator: Generator | None = None) -> Any:
    return ops.cast(ops.less(_rand(*input.shape, generator=generator), input), input.dtype)


def _multinomial(input: Any, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Any:
    if generator is None:
        return ops.cast(ops.multinomial(input, num_samples, replacement), int64)
    # The largest of the log probabilities with Gumbel noise are a sample without replacement, each alone is one with.
    shape = (*input.shape[:-1], num_samples, input.shape[-1]) if replacement else input.shape
    logits = ops.log(ops.unsqueeze(input, -2) if replacement else input)
    noisy = ops.add(logits, _drawn(generator, "gumbel", shape))
    return ops.cast(ops.argmax(noisy, -1) if replacement else ops.topk(noisy, num_samples)[1], int64)


def _randperm(n: int, *, generator: Generator | None = None, dtype: DTypeLike = int64) -> Any:
    return ops.randperm(n, dtype=dtype) if generator is None else ops.cast(
        ops.argsort(_drawn(generator, "random", (n,))), dtype
    )


def _empty(*size: Any, dtype: DTypeLike | None = None, device: str | None = None, pin_memory: bool = False) -> Any:
    return ops.zeros(_sizes(size), dtype)


def _meshgrid(*tensors: Any, indexing: str | None = None) -> Any:
    tensors = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    return ops.meshgrid(*tensors, indexing=indexing or "ij")


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "bincount": lambda input, weights=None, minlength=0: ops.cast(
        ops.bincount(input, weights, minlength), int64 if weights is None else weights.dtype
    ),
    "cat": lambda tensors, dim=0: ops.cat(tensors, dim),
    "chunk": lambda input, chunks, dim=0: ops.chunk(input, chunks, dim),
    "concat": lambda tensors, dim=0: ops.cat(tensors, dim),
    "flatten": lambda input, start_dim=0, end_dim=-1: ops.flatten(input, start_dim=start_dim, end_dim=end_dim),
    "gather": lambda input, dim, index: ops.gather_elements(input, dim, index),
    "index_add": lambda input, dim, index, source, *, alpha=1: Tensor.index_add(input, dim, index, source, alpha=alpha),
    "index_select": lambda input, dim, index: ops.index_select(input, dim, index),
    "meshgrid": _meshgrid,
    "narrow": lambda input, dim, start, length: ops.narrow(
        input, dim, start + ops.shape(input)[dim] if start < 0 else start, length
    ),
    "permute": lambda input, dims: ops.permute(input, dims),
    "repeat_interleave": lambda input, repeats, dim=None, *, output_size=None: ops.repeat_interleave(
        input, repeats, dim
    ),
    "scatter": _scatter,
    "scatter_add": _scatter_add,
    "select": lambda input, dim, index: Tensor.select(input, dim, index),
    "split": lambda tensor, split_size_or_sections, dim=0: ops.split(tensor, split_size_or_sections, dim),
    "squeeze": lambda input, dim: Tensor.squeeze(input, dim),
    "stack": lambda tensors, dim=0: ops.stack(tensors, dim),
    "take": lambda input, index: ops.gather(ops.ravel(input), index, 0),
    "transpose": lambda input, dim0, dim1: ops.swapaxes(input, dim0, dim1),
    # Tensors from sizes and values.
    "empty": _empty,
    "empty_like": lambda input, *, dtype=None, device=None, pin_memory=False: ops.zeros_like(input, dtype=dtype),
    "full": _full,
    "linspace": lambda start, end, steps, *, dtype=None: ops.cast(ops.linspace(start, end, steps), dtype or float32),
    "ones": lambda size, *, dtype=None: ops.ones(size, dtype),
    "zeros": lambda size, *, dtype=None: ops.zeros(size, dtype),
    # Random numbers.
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
    "normal": _normal,
    "rand": _rand,
    "rand_like": lambda input, *, dtype=None, device=None: ops.rand_like(input, dtype=dtype),
    "randint": _randint,
    "randint_like": _randint_like,
    "randn": _randn,
    "randn_like": lambda input, *, dtype=None, device=None: ops.randn_like(input, dtype=dtype),
    "randperm": _randperm,
}
