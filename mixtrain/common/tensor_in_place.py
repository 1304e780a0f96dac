"""`InPlaceMethods`: in-place methods of tensors, whose names end in an underscore."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from mixtrain import backend, ops
from mixtrain.boundary import UserTensor, in_mode, note_in_place
from mixtrain.common.generator import Generator
from mixtrain.dtype import float32
from mixtrain.ops.inputs import tensor
from mixtrain.ops.operator import tensor_method
from mixtrain.ops.views import write_back
from mixtrain.typing import Tensor, TensorLike

_Method = Callable[..., Any]


def assign(self: Tensor, value: TensorLike) -> Tensor:
    """Set a tensor's values to another's, cast to its dtype and broadcast to its shape; return the tensor."""
    new = backend.to_tensor(backend.backend_value(tensor("Tensor", value)), ops.dtype(self))
    self.store(keras.ops.broadcast_to(new, tuple(self.shape)))
    note_in_place(self)
    write_back(self)
    return self


def in_place(name: str, method: _Method | None = None) -> _Method:
    """Return the in-place form of a method.

    `name`: The name, without the underscore. `method`: The method; by default the one of this name of the tensor's
    class.
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
    return lambda self, *args, **kwargs: sample(ops.shape(self), *args, **kwargs)


def _unit(shape: tuple[int, ...], generator: Generator | None) -> Tensor:
    """Sample uniformly from [0, 1), from the operation's random stream or from a generator."""
    return keras.random.uniform(shape, seed=generator.stream) if generator else ops.rand(*shape, dtype=float32)


def _normal(
    shape: tuple[int, ...], mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    sample = keras.random.normal(shape, seed=generator.stream) if generator else ops.standard_normal(shape)
    return sample * std + mean


def _uniform(
    shape: tuple[int, ...], from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    return _unit(shape, generator) * (to - from_) + from_


def _exponential(shape: tuple[int, ...], lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    return ops.log1p(_unit(shape, generator) * -1) / -lambd


def _log_normal(shape: tuple[int, ...], mean: float = 1.0, std: float = 2.0) -> Tensor:
    return ops.exp(ops.standard_normal(shape) * std + mean)


def _cauchy(shape: tuple[int, ...], median: float = 0.0, sigma: float = 1.0) -> Tensor:
    return ops.tan((ops.rand(*shape, dtype=float32) - 0.5) * 3.1415926) * sigma + median


def _random(self: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None) -> Tensor:
    # Every int up to 2**24 is exact in float32.
    low, high = (0, from_) if to is None and from_ else (from_, 2**24 if to is None else to)
    if generator:
        return keras.random.randint(ops.shape(self), low, high, seed=generator.stream)
    return ops.randint(low, high, ops.shape(self))


def _put(self: Tensor, index: TensorLike, source: TensorLike, accumulate: bool = False) -> Tensor:
    return self.reshape(-1).index_put((index,), source, accumulate).reshape(tuple(self.shape))


class InPlaceMethods(UserTensor):
    """Methods that change their tensor in place."""

    __slots__ = ()

    (
        add_, addmm_, bernoulli_, div_, erfinv_, exp_, fill_, fill_diagonal_, floor_, floor_divide_, index_add_,
        index_fill_, index_put_, log_, masked_scatter_, mul_, remainder_, scatter_, scatter_add_, sigmoid_, sign_, sub_,
        tanh_,
    ) = map(in_place, (
        "add", "addmm", "bernoulli", "div", "erfinv", "exp", "fill", "fill_diagonal", "floor", "floor_divide",
        "index_add", "index_fill", "index_put", "log", "masked_scatter", "mul", "remainder", "scatter", "scatter_add",
        "sigmoid", "sign", "sub", "tanh",
    ))
    clamp_ = in_place("clamp", ops.clamp)
    copy_ = in_place("copy", lambda self, src, non_blocking=False: src)
    exponential_ = in_place("exponential", _sampled(_exponential))
    index_copy_ = in_place("index_copy", lambda self, dim, index, source: self.index_fill(dim, index, source))
    masked_fill_ = in_place("masked_fill", ops.masked_fill)
    normal_ = in_place("normal", _sampled(_normal))
    put_ = in_place("put", _put)
    random_ = in_place("random", _random)
    set_ = in_place("set", lambda self, source: source)
    uniform_ = in_place("uniform", _sampled(_uniform))
    zero_ = in_place("zero", ops.zeros_like)
    cauchy = tensor_method("cauchy", _sampled(_cauchy))
    log_normal = tensor_method("log_normal", _sampled(_log_normal))
