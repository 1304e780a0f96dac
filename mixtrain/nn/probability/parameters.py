"""Parameters of distributions and bijectors: their checks, dtypes and common shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from mixtrain import backend, checks
from mixtrain.common.parameter import Parameter
from mixtrain.common.tensor import Tensor
from mixtrain.dtype import DType, as_dtype, bfloat16, float16, float32, float64, is_float
from mixtrain.typing import DTypeLike, Shape, TensorLike

FLOATS: Final = (float16, float32, float64, bfloat16)


class Rule(NamedTuple):
    """What holds for each value of a parameter.

    Attributes:
        holds: Whether it does, elementwise.
        text: How an error says it.
        example: A value for which it holds.
    """

    holds: Callable[[np.ndarray], Any]
    text: str
    example: str

    def check(self, where: str, name: str, value: TensorLike) -> None:
        """Raise a ValueError unless a parameter keeps the rule; values that a compiled call computes are not known."""
        known = backend.known_value(value)
        if known is not None and not np.all(self.holds(known)):
            wrong = known if known.ndim == 0 else known[~np.broadcast_to(self.holds(known), known.shape)][0]
            raise checks.fail_value(where, f"{name} must be {self.text}", float(wrong), f"{name}={self.example}")


POSITIVE: Final = Rule(lambda x: x > 0, "greater than 0", "1.0")
NOT_NEGATIVE: Final = Rule(lambda x: ~(x < 0), "at least 0", "1.0")
PROBABILITY: Final = Rule(lambda p: (p > 0) & (p < 1), "greater than 0 and less than 1", "0.5")


def _is_one(total: np.ndarray) -> Any:
    precision = float(ml_dtypes.finfo(total.dtype).eps)
    return np.isclose(total, 1.0, rtol=10 * precision, atol=precision)


ONE: Final = Rule(_is_one, "of the sum 1", "[0.2, 0.3, 0.5]")


def stored(name: str, doc: str = "The parameter that was given at construction, or None.") -> property:
    """Return the property of an attribute of the same name with an underscore."""

    def read(self: Any) -> Any:
        return getattr(self, f"_{name}")

    return property(read, doc=doc)


def arguments(param: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a construction from its local variables."""
    return {key: value for key, value in param.items() if key not in ("self", "param") and not key.startswith("_")}


def as_parameter(where: str, name: str, value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return a parameter as a Tensor of a dtype; a Parameter is returned as it is."""
    if isinstance(value, Parameter):
        return value
    numeric = (*backend.TENSOR_TYPES, Tensor, np.ndarray, np.generic, list, int, float)
    if isinstance(value, bool) or not isinstance(value, numeric):
        raise checks.fail_type(where, f"{name} must be a Tensor, NumPy array, list or number", value, f"{name}=1.0")
    return Tensor(value, dtype)


def parameter_dtype(where: str, values: Mapping[str, Any], dtype: DTypeLike | None) -> DType:
    """Return the dtype in which a distribution computes: that of its parameters, all of which must have the same.

    It is float32 if that is an int or float64; if only numbers are given, it is `dtype`, float32 if that is an int.
    """
    dtypes = {name: as_dtype(value.dtype) for name, value in values.items() if hasattr(value, "dtype")}
    for name, found in dtypes.items():
        if found != next(iter(dtypes.values())):
            first = next(iter(dtypes))
            raise checks.fail_type(where, f"{name} must have the dtype of {first}", found, f"{dtypes[first]!r}")
    common = next(iter(dtypes.values()), None)
    if common is None:
        common = float32 if dtype is None else as_dtype(dtype)
        return common if is_float(common) else float32
    return common if is_float(common) and common != float64 else float32


def common_shape(where: str, shapes: Mapping[str, Shape]) -> Shape:
    """Return the shape to which the parameters broadcast; an axis of unknown size counts as one of size 1."""
    try:
        return np.broadcast_shapes(*(tuple(1 if size is None else size for size in shape) for shape in shapes.values()))
    except ValueError:
        raise checks.fail_value(
            where, "the shapes of the parameters must broadcast",
            ", ".join(f"{name} {tuple(shape)}" for name, shape in shapes.items()), "parameters of one shape",
        ) from None


def batch_shape(where: str, values: Mapping[str, Any]) -> Shape | None:
    """Return the shape to which the parameters given at construction broadcast; None if one is not given there."""
    if any(value is None for value in values.values()):
        return None
    return common_shape(where, {name: tuple(as_parameter(where, name, value).shape) for name, value in values.items()})


def are_numbers(values: Mapping[str, Any]) -> bool:
    """Whether all parameters that are given at construction are numbers."""
    return all(value is None or isinstance(value, (int, float)) for value in values.values())


def check_tensor(where: str, name: str, value: Any) -> Any:
    """Return `value` if it is a Tensor or a Parameter."""
    if not isinstance(value, Tensor):
        raise checks.fail_type(where, f"{name} must be a Tensor", value, f"mixtrain.Tensor({name})")
    return value
