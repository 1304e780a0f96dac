"""`InPlaceMethods`: in-place methods of tensors, whose names end in an underscore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend
from mixtrain.boundary import UserTensor, in_mode
from mixtrain.common.generator import Generator
from mixtrain.common.views import write_back
from mixtrain.dtype import float32
from mixtrain.ops import creation, limits, random, selection, tensor_info, unary
from mixtrain.ops.inputs import tensor
from mixtrain.ops.operator import tensor_method
from mixtrain.typing import Tensor, TensorLike

_Method = Callable[..., Any]


def assign(self: Tensor, value: TensorLike) -> Tensor:
    """Set a tensor's values to another's, cast to its dtype and broadcast to its shape; return the tensor."""
    new = backend.to_tensor(backend.backend_value(tensor("Tensor", value)), tensor_info.dtype(self))
    self.store(keras.ops.broadcast_to(new, tuple(self.shape)))
    write_back(self)
    return self


def in_place(name: str, method: _Method | None = None) -> _Method:
    """Return the in-place form of a method.

    Args:
        name: The name, without the underscore.
        method: The method; by default the one of this name of the tensor's class.
    """

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        with in_mode("tensors"):
            compute = method or getattr(type(self), name)
            return assign(self, compute(self, *args, **kwargs))

    call.__name__ = call.__qualname__ = f"{name}_"
    call.__doc__ = f"In-place form of `{name}`; return the tensor."
    return call


def _sampled(sample: Callable[..., Tensor]) -> _Method:
    """Return a method that samples values of the shape of its tensor."""
    return lambda self, *args, **kwargs: sample(tensor_info.shape(self), *args, **kwargs)


def _unit(shape: tuple[int, ...], generator: Generator | None) -> Tensor:
    """Sample uniformly from [0, 1), from the operation's random stream or from a generator."""
    return keras.random.uniform(shape, seed=generator.next_seed()) if generator else random.rand(*shape, dtype=float32)


def _normal(
    shape: tuple[int, ...], mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    sample = keras.random.normal(shape, seed=generator.next_seed()) if generator else random.standard_normal(shape)
    return sample * std + mean


def _uniform(
    shape: tuple[int, ...], from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    return _unit(shape, generator) * (to - from_) + from_


def _exponential(shape: tuple[int, ...], lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    return unary.log1p(_unit(shape, generator) * -1) / -lambd


def _log_normal(shape: tuple[int, ...], mean: float = 1.0, std: float = 2.0) -> Tensor:
    return unary.exp(random.standard_normal(shape) * std + mean)


def _cauchy(shape: tuple[int, ...], median: float = 0.0, sigma: float = 1.0) -> Tensor:
    return unary.tan((random.rand(*shape, dtype=float32) - 0.5) * 3.1415926) * sigma + median


def _random(self: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None) -> Tensor:
    # Every int up to 2**24 is exact in float32.
    low, high = (0, from_) if to is None and from_ else (from_, 2**24 if to is None else to)
    if generator:
        return keras.random.randint(tensor_info.shape(self), low, high, seed=generator.next_seed())
    return random.randint(low, high, tensor_info.shape(self))


def _put(self: Tensor, index: TensorLike, source: TensorLike, accumulate: bool = False) -> Tensor:
    return self.reshape(-1).index_put((index,), source, accumulate).reshape(tuple(self.shape))


class InPlaceMethods(UserTensor):
    """Methods that change their tensor in place."""

    __slots__ = ()

    add_ = in_place("add")
    addmm_ = in_place("addmm")
    bernoulli_ = in_place("bernoulli")
    clamp_ = in_place("clamp", limits.clamp)
    copy_ = in_place("copy", lambda self, src, non_blocking=False: src)
    div_ = in_place("div")
    erfinv_ = in_place("erfinv")
    exp_ = in_place("exp")
    exponential_ = in_place("exponential", _sampled(_exponential))
    fill_ = in_place("fill")
    fill_diagonal_ = in_place("fill_diagonal")
    floor_ = in_place("floor")
    floor_divide_ = in_place("floor_divide")
    index_add_ = in_place("index_add")
    index_copy_ = in_place("index_copy", lambda self, dim, index, source: self.index_fill(dim, index, source))
    index_fill_ = in_place("index_fill")
    index_put_ = in_place("index_put")
    log_ = in_place("log")
    masked_fill_ = in_place("masked_fill", selection.masked_fill)
    masked_scatter_ = in_place("masked_scatter")
    mul_ = in_place("mul")
    normal_ = in_place("normal", _sampled(_normal))
    put_ = in_place("put", _put)
    random_ = in_place("random", _random)
    remainder_ = in_place("remainder")
    scatter_ = in_place("scatter")
    scatter_add_ = in_place("scatter_add")
    sigmoid_ = in_place("sigmoid")
    sign_ = in_place("sign")
    set_ = in_place("set", lambda self, source: source)
    sub_ = in_place("sub")
    tanh_ = in_place("tanh")
    uniform_ = in_place("uniform", _sampled(_uniform))
    zero_ = in_place("zero", creation.zeros_like)
    cauchy = tensor_method("cauchy", _sampled(_cauchy))
    log_normal = tensor_method("log_normal", _sampled(_log_normal))
