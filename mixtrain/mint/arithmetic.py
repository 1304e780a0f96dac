"""Functions of elements: sums with a factor, limits, comparisons of whole tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from mixtrain import ops
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import bool_
from mixtrain.mint.named import written


def _equal(input: Any, other: Any) -> bool:
    return tuple(input.shape) == tuple(other.shape) and bool(ops.all(ops.equal(input, other)))


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "add": lambda input, other, *, alpha=1: ops.add(input, other if alpha == 1 else ops.mul(other, alpha)),
    "sub": lambda input, other, *, alpha=1: ops.sub(input, other if alpha == 1 else ops.mul(other, alpha)),
    "addcmul": lambda input, tensor1, tensor2, *, value=1: ops.addcmul(input, tensor1, tensor2, value),
    "addcdiv": lambda input, tensor1, tensor2, *, value=1: ops.addcdiv(input, tensor1, tensor2, value),
    "addr_": lambda input, vec1, vec2, beta=1, alpha=1: written(
        input, ops.addr(input, vec1, vec2, beta=beta, alpha=alpha)
    ),
    "allclose": lambda input, other, rtol=1e-05, atol=1e-08, equal_nan=False: bool(
        ops.all(ops.isclose(input, other, rtol, atol, equal_nan))
    ),
    "arccos": lambda input: ops.acos(input),
    "arcsin": lambda x: ops.asin(x),
    "arctan": lambda input: ops.atan(input),
    "arctan2": lambda input, other: ops.atan2(input, other),
    "bitwise_not": lambda input: ops.logical_not(input) if input.dtype == bool_ else ops.invert(input),
    "clamp": lambda input, min=None, max=None: Tensor.clip(input, min, max),
    "clip": lambda input, min=None, max=None: Tensor.clip(input, min, max),
    "clone": lambda input: input.clone(),
    "eq": lambda input, other: ops.equal(input, other),
    "equal": _equal,
    "fix": lambda input: ops.trunc(input),
    "frac": lambda input: ops.frac(input),
    "ge": lambda input, other: ops.greater_equal(input, other),
    "gt": lambda input, other: ops.greater(input, other),
    "isnan": lambda tensor: ops.isnan(tensor),
    "item": lambda input: input.item(),
    "le": lambda input, other: ops.less_equal(input, other),
    "lt": lambda input, other: ops.less(input, other),
    "ne": lambda input, other: ops.not_equal(input, other),
    "negative": lambda input: ops.neg(input),
    "npu_gelu": lambda input, approximate="none": ops.gelu(input, approximate),
    "sqrt": lambda input: ops.sqrt(input),
    "where": lambda condition, input=None, other=None: (
        ops.nonzero(condition, as_tuple=True) if input is None else ops.where(condition, input, other)
    ),
}
