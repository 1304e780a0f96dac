"""MindSpore's methods of tensors, by name: the table that the engine gives to its tensors and Parameter reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import checks, engine
from mixtrain.dtype import DTYPES, as_dtype
from mixtrain.ops import (
    arithmetic, array, comparison, creation, extremes, facts, joining, limits, method_forms, ordering, products,
    reduction, repetition, selection, unary,
)
from mixtrain.ops.inputs import rank_of, spread, tensor
from mixtrain.ops.under_autocast import doors

_Method = Callable[..., Any]

# Methods that are the functions of the same name, with the tensor first.
_SAME: Final[dict[Any, tuple[str, ...]]] = {
    unary: (
        "abs", "absolute", "acos", "acosh", "arccos", "arcsin", "arctan", "asin", "asinh", "atan", "atanh", "ceil",
        "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "isfinite", "isinf", "isnan", "log", "log10", "log1p",
        "log2", "logical_not", "nan_to_num", "neg", "negative", "reciprocal", "rsqrt", "sign", "sin", "sinc", "sinh",
        "sqrt", "square", "tan", "trunc",
    ),
    arithmetic: (
        "addcdiv", "addcmul", "atan2", "div", "divide", "floor_divide", "fmod", "hypot", "lerp", "logaddexp",
        "maximum", "minimum", "mul", "multiply", "pow", "remainder", "subtract", "true_divide",
    ),
    limits: ("clamp", "clip"),
    comparison: (
        "bitwise_and", "bitwise_or", "eq", "equal", "ge", "greater", "greater_equal", "gt", "isclose", "le", "less",
        "less_equal", "logical_and", "logical_or", "logical_xor", "lt", "ne", "not_equal",
    ),
    reduction: ("count_nonzero", "logsumexp", "norm"),
    extremes: ("amax", "amin", "argmin", "cumprod", "median"),
    products: ("addmm", "baddbmm", "bmm", "dot", "matmul", "mm", "mv", "outer"),
    array: ("expand_dims", "flip", "moveaxis", "movedim", "ravel", "roll", "swapaxes", "swapdims", "t", "unsqueeze"),
    repetition: ("repeat_interleave",),
    joining: ("chunk", "unbind"),
    ordering: ("argsort", "diag", "sort", "topk", "tril", "triu", "unique"),
    selection: ("gather_elements", "gather_nd", "index_select", "masked_fill", "masked_select", "nonzero"),
    facts: ("numel",),
    method_forms: (
        "add", "all", "any", "argmax", "cumsum", "flatten", "gather", "max", "mean", "min", "prod", "repeat", "resize",
        "round", "select", "softmax", "split", "squeeze", "std", "sub", "sum", "take", "transpose", "var", "where",
    ),
}


def _astype(self: Any, dtype: Any, copy: bool = True) -> Any:
    return facts.cast(self, dtype)


def _to(self: Any, *args: Any, dtype: Any = None, device: Any = None, **_: Any) -> Any:
    """Return the tensor in the format among the arguments; a device's name changes nothing on one device."""
    for value in (*args, dtype):
        if engine.is_tensor(value):
            return facts.cast(self, value.dtype)
        if value is not None and not isinstance(value, bool):
            name = getattr(value, "name", value)
            if not isinstance(name, str) or name in DTYPES:
                return facts.cast(self, as_dtype(value))
    return self


def _type(self: Any, dtype: Any = None) -> Any:
    if dtype is not None:
        return facts.cast(self, dtype)
    name = str(facts.dtype(self))
    return {"bfloat16": "BFloat16"}.get(name, ("UInt" + name[4:]) if name[0] == "u" else name.capitalize())


def _concrete(self: Any, method: str) -> Any:
    """Return the values as a NumPy array.

    Raises:
        TypeError: The tensor is part of a function that is being compiled, and has no values yet.
    """
    x = tensor(f"Tensor.{method}", self)
    if engine.is_symbolic(x):
        raise TypeError(
            f"Tensor.{method}: expected a tensor with values; got one of a function that is being compiled. "
            "Write it outside construct, or use set_context(mode=PYNATIVE_MODE)."
        )
    return engine.to_numpy(x)


def _item(self: Any) -> Any:
    values = _concrete(self, "item")
    if values.size != 1:
        raise checks.fail_value("Tensor.item", "the tensor must have one element", values.shape, "x[0].item()")
    return values.item()


def _relu(self: Any) -> Any:
    return engine.elementwise(keras.ops.relu, tensor("Tensor.relu", self))


def _sigmoid(self: Any) -> Any:
    return unary.unary("Tensor.sigmoid", keras.ops.sigmoid, self, floats=True)


def _tanh(self: Any) -> Any:
    return unary.unary("Tensor.tanh", keras.ops.tanh, self, floats=True)


def _itself(self: Any) -> Any:
    return tensor("Tensor.copy", self)


def _cast_to(dtype: str) -> _Method:
    return lambda self: facts.cast(self, dtype)


_SPECIAL: Final[dict[str, _Method]] = {
    "asnumpy": lambda self: _concrete(self, "asnumpy"),
    "astype": _astype,
    "bfloat16": _cast_to("bfloat16"),
    "bool": _cast_to("bool"),
    "broadcast_to": lambda self, *shape: repetition.broadcast_to(self, spread(shape)),
    "clone": _itself,
    "contiguous": _itself,
    "copy": _itself,
    "dim": facts.rank,
    "double": _cast_to("float64"),
    "expand": lambda self, *size: repetition.broadcast_to(self, spread(size)),
    "expand_as": lambda self, other: repetition.broadcast_to(self, facts.shape(other)),
    "fill": lambda self, value: creation.full_like(self, value),
    "float": _cast_to("float32"),
    "half": _cast_to("float16"),
    "init_data": lambda self, *_, **__: _itself(self),
    "int": _cast_to("int32"),
    "is_contiguous": lambda self: True,
    "item": _item,
    "long": _cast_to("int64"),
    "ndimension": facts.rank,
    "nelement": facts.size,
    "new_ones": lambda self, size, dtype=None: creation.ones(size, dtype or facts.dtype(self)),
    "new_zeros": lambda self, size, dtype=None: creation.zeros(size, dtype or facts.dtype(self)),
    "permute": lambda self, *axis: array.transpose(self, spread(axis)),
    "relu": _relu,
    "reshape": lambda self, *shape: array.reshape(self, spread(shape)),
    "reshape_as": lambda self, other: array.reshape(self, facts.shape(other)),
    "sigmoid": _sigmoid,
    "tanh": _tanh,
    "tile": lambda self, *dims: repetition.tile(self, spread(dims)),
    "to": _to,
    "tolist": lambda self: _concrete(self, "tolist").tolist(),
    "type": _type,
    "type_as": lambda self, other: facts.cast(self, other.dtype),
    "value": _itself,
    "view": lambda self, *shape: array.reshape(self, spread(shape)),
    "view_as": lambda self, other: array.reshape(self, facts.shape(other)),
}


def _turned(self: Any) -> Any:
    x = tensor("Tensor.T", self)
    return keras.ops.transpose(x, tuple(reversed(range(rank_of(x)))))


def _itemsize(self: Any) -> int:
    return engine.bytes_of(facts.dtype(self))


METHODS: Final[dict[str, _Method]] = doors({
    **{name: getattr(module, name) for module, names in _SAME.items() for name in names}, **_SPECIAL
})
PROPERTIES: Final[dict[str, _Method]] = {
    "T": _turned,
    "itemsize": _itemsize,
    "nbytes": lambda self: facts.size(self) * _itemsize(self),
    "size": facts.size,
}


def install() -> None:
    """Give the methods and properties to the engine's tensors."""
    engine.install_tensor_methods(METHODS, PROPERTIES)
