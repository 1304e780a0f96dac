"""Operators that scripts take from `ops` although MindSpore's documentation has other names for them, or none."""

from __future__ import annotations

import math
import operator as python
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras

from mixtrain import backend, checks, ops
from mixtrain.boundary import UserTensor
from mixtrain.dtype import as_dtype, float32, int32
from mixtrain.lazy_names import serve_names
from mixtrain.ops.control import chosen
from mixtrain.ops.inputs import sizes_of, tensor
from mixtrain.ops.primitive import REQUIRED, Primitive, as_primitive, configured, primitive
from mixtrain.ops.random import stream_for
from mixtrain.ops.updates import step
from mixtrain.typing import DTypeLike, Tensor, TensorLike, Tree

# ---- names of functions and primitives that have another one ------------------------------------------------------
F = P = ops
accumulate_n: Final = ops.addn
arccosh: Final = ops.acosh
arcsinh: Final = ops.asinh
arctanh: Final = ops.atanh
copy: Final = ops.deepcopy
floordiv = tensor_floordiv = ops.floor_divide
floormod = tensor_mod = ops.floor_mod
pows = tensor_pow = ops.pow
row_stack: Final = ops.vstack
soft_shrink: Final = ops.softshrink
tensor_div: Final = ops.div
tensor_exp: Final = ops.exp
tensor_expm1: Final = ops.expm1
tensor_ge: Final = ops.greater_equal
tensor_gt: Final = ops.greater
tensor_le: Final = ops.less_equal
tensor_lt: Final = ops.less
tensor_mul: Final = ops.mul
tensor_range: Final = ops.range
tensor_slice: Final = ops.slice
tensor_sub: Final = ops.sub
top_k: Final = ops.topk
upsample: Final = ops.interpolate
AccumulateNV2: Final = ops.AddN
Conv2DBackpropInput: Final = ops.Conv2DTranspose
GatherV2: Final = ops.Gather
Pack: Final = ops.Stack
Unpack: Final = ops.Unstack


def is_sequence_value_unknown(shape: Sequence[int | None]) -> bool:
    """Whether a dimension of a shape is unknown, as in a compiled function.

    Example:
        >>> is_sequence_value_unknown((2, 3))
        False
    """
    return not all(isinstance(size, int) and size >= 0 for size in shape)


def is_sequence_shape_unknown(shape: Sequence[int | None]) -> bool:
    """Whether the number of dimensions of a shape is unknown, which it never is.

    Example:
        >>> is_sequence_shape_unknown((2, 3))
        False
    """
    return False


def isconstant(value: Any) -> bool:
    """Whether a value is known while a function is compiled, as any but a tensor is.

    Example:
        >>> isconstant(3)
        True
    """
    return not backend.is_tensor(value)


# ---- primitives of functions --------------------------------------------------------------------------------------
AddV2 = primitive("AddV2", ops.add)
CholeskyInverse = configured("CholeskyInverse", ops.cholesky_inverse, upper=False)
Cdist = configured("Cdist", ops.cdist, p=2.0)
CeLU = configured("CeLU", ops.celu, alpha=1.0)
# MindSpore's examples make shapes dynamic with it, which they may be here anyway.
ConvertToDynamic = configured("ConvertToDynamic", lambda x, is_dynamic_rank: x, is_dynamic_rank=False)
Dense = primitive("Dense", ops.dense)
Einsum = configured("Einsum", lambda x, equation: ops.einsum(equation, *x), equation=REQUIRED)
FastGelu = primitive("FastGelu", ops.fast_gelu)
Geqrf = primitive("Geqrf", ops.geqrf)
HShrink = configured("HShrink", ops.hardshrink, lambd=0.5)
IdentityN = primitive("IdentityN", lambda x: tuple(x))
Lerp = primitive("Lerp", ops.lerp)
NanToNum = configured("NanToNum", ops.nan_to_num, nan=None, posinf=None, neginf=None)
Roll = configured("Roll", lambda x, shift, axis: ops.roll(x, shift, axis), shift=REQUIRED, axis=REQUIRED)
Sinc = primitive("Sinc", ops.sinc)
SoftShrink = configured("SoftShrink", ops.softshrink, lambd=0.5)
SumExt = primitive("SumExt", ops.sum)
Trace = primitive("Trace", ops.trace)


def _svd(x: TensorLike, full_matrices: bool, compute_uv: bool) -> tuple[Tensor, ...]:
    values = ops.svd(x, full_matrices, compute_uv)
    # Without vectors there are empty ones in their places.
    return values if isinstance(values, tuple) else (values, ops.zeros((0,)), ops.zeros((0,)))


def _cross_entropy(logits: TensorLike, labels: TensorLike) -> tuple[Tensor, Tensor]:
    loss = ops.cross_entropy(logits, labels, reduction="none")
    classes = ops.one_hot(labels, ops.shape(logits)[1], 1.0, 0.0)
    return loss, ops.sub(ops.softmax(logits, -1), ops.cast(classes, logits.dtype))


SparseSoftmaxCrossEntropyWithLogitsV2 = primitive("SparseSoftmaxCrossEntropyWithLogitsV2", _cross_entropy)


def _truncated(shape: TensorLike, dtype: DTypeLike, seed: int, seed2: int) -> Tensor:
    stream = stream_for("ops.TruncatedNormal", seed * 65537 + seed2)
    return keras.random.truncated_normal(sizes_of("ops.TruncatedNormal", shape), dtype=as_dtype(dtype), seed=stream)


TruncatedNormal = configured("TruncatedNormal", _truncated, dtype=float32, seed=0, seed2=0)


def _uniform_like(x: Tensor, minval: float, maxval: float, seed: int, offset: int) -> Tensor:
    stream = stream_for("ops.Uniform", seed, offset)
    return keras.random.uniform(x.shape, minval, maxval, keras.backend.standardize_dtype(x.dtype), stream)


Uniform = configured("Uniform", _uniform_like, minval=0.0, maxval=1.0, seed=0, offset=0)
Svd = configured("Svd", _svd, full_matrices=False, compute_uv=True)


def _padded_permutation(n: TensorLike, max_length: int, pad: int, dtype: DTypeLike) -> Tensor:
    count = int(tensor("ops.Randperm", n)[0])
    if not 0 <= count <= max_length:
        raise checks.fail_value("ops.Randperm", f"n must be from 0 to max_length, {max_length}", count,
                                f"Randperm(max_length={count})")
    order = ops.randperm(count, dtype=as_dtype(dtype))
    return keras.ops.pad(order, [(0, max_length - count)], constant_values=pad)


Randperm = configured("Randperm", _padded_permutation, max_length=1, pad=-1, dtype=int32)


class identity(Primitive):  # noqa: N801  MindSpore's name.
    """Return the input: ``ops.identity()(x)``."""

    def __call__(self, x: Tree) -> Tree:
        return x


class DropoutGenMask(Primitive):
    """Draw which values `DropoutDoMask` keeps: ``ops.DropoutGenMask()((2, 3), 0.9)``, a bool tensor of that shape.

    `Seed0` and `Seed1` are the seed of a stream of its own.

    Source: MindSpore, `mindspore.ops.operations.DropoutGenMask`, whose masks are bits.
    """

    def __init__(self, Seed0: int = 0, Seed1: int = 0) -> None:
        super().__init__()
        self.uniform = ops.UniformReal(Seed0, Seed1)

    def __call__(self, shape: int | Sequence[int] | Tensor, keep_prob: TensorLike) -> Tensor:
        return self.uniform(shape) < tensor("ops.DropoutGenMask", keep_prob)


@as_primitive
def DropoutDoMask(input_x: TensorLike, mask: TensorLike, keep_prob: TensorLike) -> Tensor:
    """Keep the values of a mask, divided by the probability to keep: ``ops.DropoutDoMask()(x, mask, 0.9)``."""
    x, keep = tensor("ops.DropoutDoMask", input_x), tensor("ops.DropoutDoMask", keep_prob)
    return keras.ops.where(tensor("ops.DropoutDoMask", mask), x / keras.ops.cast(keep, x.dtype), 0)


@step("variable", "accumulation", first_only=True)
def FusedWeightScaleApplyMomentum(
    weight_decay: Tensor, loss_scale: Tensor, variable: Tensor, accumulation: Tensor, learning_rate: Tensor,
    gradient: Tensor, momentum: Tensor,
) -> tuple[Tensor, ...]:
    """`ApplyMomentum` of ``gradient * loss_scale + variable * weight_decay``.

    `loss_scale` is what the gradient is multiplied by: the reciprocal of an optimizer's argument of this name.

    Example: ``opt(weight_decay, loss_scale, variable, accumulation, learning_rate, gradient, momentum)``.
    """
    velocity = accumulation * momentum + gradient * loss_scale + variable * weight_decay
    return variable - learning_rate * velocity, velocity


# ---- Python's values ----------------------------------------------------------------------------------------------
tuple_len = list_len = len
tuple_getitem = list_getitem = dict_getitem = python.getitem
tuple_equal = list_equal = string_eq = bool_eq = python.eq
string_concat: Final = python.add
make_slice: Final = slice
bool_not: Final = python.not_
is_: Final = python.is_
is_not: Final = python.is_not
scalar_ne: Final = python.ne
scalar_uadd: Final = python.pos
scalar_usub: Final = python.neg
scalar_log: Final = math.log
scalar_max: Final = max
scalar_min: Final = min
shape_mul: Final = math.prod
shape_: Final = ops.shape


def switch_layer(index: TensorLike, layers: Sequence[Callable[..., Any]]) -> Callable[..., Any]:
    """Return the one of several functions or cells that `index` chooses, in a graph by its value.

    Example: ``F.switch_layer(Tensor(1), (ops.relu, ops.tanh))(x)`` is ``ops.tanh(x)``.
    """
    position = chosen(index, len(layers))
    if position is None:
        raise IndexError(
            f"ops.switch_layer: expected an index from {-len(layers)} to {len(layers) - 1}; "
            f"got {checks.short_repr(index)}. Write 0 for the first."
        )
    return layers[position]


def switch(condition: TensorLike, first: TensorLike, second: TensorLike) -> Tensor:
    """Return `first` if the one bool `condition` is True, else `second`. Example: ``F.switch(x > 0, x, -x)``."""
    return ops.where(condition, first, second)


def make_tuple(*items: Any) -> tuple[Any, ...]:
    """Return the arguments as a tuple. Example: ``F.make_tuple(1, 2)``."""
    return items


def make_list(*items: Any) -> list[Any]:
    """Return the arguments as a list. Example: ``F.make_list(1, 2)``."""
    return [*items]


def tuple_setitem(items: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """Return a tuple with another value at an index. Example: ``F.tuple_setitem((1, 2), 0, 3)``."""
    changed = [*items]
    changed[index] = value
    return tuple(changed)


def tuple_reversed(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a tuple from its last item to its first. Example: ``F.tuple_reversed((1, 2))``."""
    return items[::-1]


def in_dict(key: Any, items: dict[Any, Any]) -> bool:
    """Whether a dict has a key. Example: ``F.in_dict("a", {"a": 1})``."""
    return key in items


def not_in_dict(key: Any, items: dict[Any, Any]) -> bool:
    """Whether a dict does not have a key. Example: ``F.not_in_dict("b", {"a": 1})``."""
    return key not in items


def _filling(name: str) -> Callable[..., Tensor]:
    """Return the method of this name, which fills its tensor with samples, as a function of the tensor."""

    def fill(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        checks.instance(f"ops.{name}", "input", input, UserTensor, f"ops.{name}(Tensor(x))")
        return getattr(input, name)(*args, **kwargs)

    fill.__name__ = fill.__qualname__ = name
    fill.__doc__ = f"Fill the tensor `input` with samples, and return it. Example: ``ops.{name}(x)`` is ``x.{name}()``."
    return fill


normal_, random_, uniform_ = map(_filling, ("normal_", "random_", "uniform_"))


def add_flags(fn: Callable[..., Any] | None = None, **flags: Any) -> Any:
    """Return `fn` unchanged: flags are for MindSpore's compiler. Example: ``@C.add_flags(has_effect=True)``."""
    return (lambda function: function) if fn is None else fn


core: Final = add_flags


serve_names(__name__)
