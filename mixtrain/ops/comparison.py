"""Elementwise comparisons, logic and bit operations, with their primitives."""

from __future__ import annotations

from collections.abc import Callable

import keras

from mixtrain import checks
from mixtrain.dtype import int32, is_float
from mixtrain.ops.elementwise import binary, binary_function, renamed
from mixtrain.ops.inputs import pair, tensor_dtype
from mixtrain.ops.primitive import configured, primitives
from mixtrain.typing import Tensor, TensorLike


def _integers_only(name: str, compute: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return `compute` with a check that its arguments are not floats."""

    def checked(x: Tensor, y: Tensor) -> Tensor:
        if is_float(x.dtype):
            raise TypeError(f"ops.{name}: expected integers or bools; got {tensor_dtype(x).name}. Write x.astype(int).")
        return compute(x, y)

    return checked


equal = binary_function("equal", keras.ops.equal, "Whether `input` and `other` are equal.")
not_equal = binary_function("not_equal", keras.ops.not_equal, "Whether `input` and `other` differ.")
less = binary_function("less", keras.ops.less, "Whether `input` is less than `other`.")
less_equal = binary_function("less_equal", keras.ops.less_equal, "Whether `input` is at most `other`.")
greater = binary_function("greater", keras.ops.greater, "Whether `input` is greater than `other`.")
greater_equal = binary_function("greater_equal", keras.ops.greater_equal, "Whether `input` is at least `other`.")
logical_and = binary_function(
    "logical_and", keras.ops.logical_and, "Whether `input` and `other` are both True, or not zero."
)
logical_or = binary_function(
    "logical_or", keras.ops.logical_or, "Whether `input`, `other` or both are True, or not zero."
)
logical_xor = binary_function(
    "logical_xor", keras.ops.logical_xor, "Whether exactly one of `input` and `other` is True, or not zero."
)
bitwise_and = binary_function(
    "bitwise_and", _integers_only("bitwise_and", keras.ops.bitwise_and),
    "The bits set in both the integers `input` and `other`.", tensors=True,
)
bitwise_or = binary_function(
    "bitwise_or", _integers_only("bitwise_or", keras.ops.bitwise_or),
    "The bits set in the integer `input`, in `other`, or in both.", tensors=True,
)
bitwise_xor = binary_function(
    "bitwise_xor", _integers_only("bitwise_xor", keras.ops.bitwise_xor),
    "The bits set in exactly one of the integers `input` and `other`.", tensors=True,
)

eq, ne, lt = renamed(equal, "eq"), renamed(not_equal, "ne"), renamed(less, "lt")
le, gt, ge = renamed(less_equal, "le"), renamed(greater, "gt"), renamed(greater_equal, "ge")


def isclose(
    input: TensorLike, other: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether `input` and `other` differ by at most `atol` + `rtol` * abs(`other`); with `equal_nan` NaN equals NaN.

    Example: ``ops.isclose(Tensor([1.0, 2.0]), Tensor([1.0, 2.1]))`` is ``[True, False]``.
    """
    checks.boolean("ops.isclose", "equal_nan", equal_nan)

    def compute(x: Tensor, y: Tensor) -> Tensor:
        close = keras.ops.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)
        if is_float(x.dtype):
            # The tolerance of an infinite `y` is infinite, and the difference of two infinities is NaN.
            close = keras.ops.logical_and(close, keras.ops.logical_not(keras.ops.isinf(y)))
        return keras.ops.logical_or(close, keras.ops.equal(x, y))

    return binary("ops.isclose", compute, input, other)


def approximate_equal(x: TensorLike, y: TensorLike, tolerance: float = 1e-05) -> Tensor:
    """Whether `x` and `y` differ by less than `tolerance`."""
    return binary(
        "ops.approximate_equal", lambda a, b: keras.ops.less(keras.ops.abs(keras.ops.subtract(a, b)), tolerance), x, y
    )


def _equal_count(x: TensorLike, y: TensorLike) -> Tensor:
    """The number of equal elements of `x` and `y`, of shape (1,)."""
    x, y = pair("ops.EqualCount", x, y)
    count = keras.ops.sum(keras.ops.cast(keras.ops.equal(x, y), int32))
    return keras.ops.reshape(keras.ops.cast(count, x.dtype if is_float(x.dtype) else int32), (1,))


Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, LogicalAnd, LogicalOr, LogicalXor, EqualCount = primitives(
    Equal=equal, NotEqual=not_equal, Less=less, LessEqual=less_equal, Greater=greater, GreaterEqual=greater_equal,
    LogicalAnd=logical_and, LogicalOr=logical_or, LogicalXor=logical_xor, EqualCount=_equal_count,
)
ApproximateEqual = configured("ApproximateEqual", approximate_equal, tolerance=1e-05)
