"""Scaling of losses and unscaling of gradients, in at least float32: half precision cannot hold every scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras

from mixtrain import backend
from mixtrain.dtype import float32, is_float, wider
from mixtrain.typing import Tensor, Tree, Variable


def scaled(value: Tree, loss_scale: Tensor) -> Tree:
    """Multiply a loss, or a dense or sparse gradient, by the scale, in at least float32; None stays None."""
    return _in_float32(lambda x, scale: x * scale, value, loss_scale)


def unscaled(value: Tree, loss_scale: Tensor) -> Tree:
    """Divide a dense or sparse gradient by the scale, in at least float32; None stays None."""
    # Not a product with 1 / scale: the inverse of the largest scales is subnormal in float32 and flushed to 0.
    return _in_float32(lambda x, scale: x / scale, value, loss_scale)


def unscaled_gradients(
    gradients: Sequence[Tensor | None], variables: Sequence[Variable], loss_scale: Tensor
) -> list[Tensor | None]:
    """Divide the gradients of variables by the scale; next values, as of float8 scales, stay as they are."""
    return [
        gradient if backend.takes_next_value(variable) else unscaled(gradient, loss_scale)
        for gradient, variable in zip(gradients, variables, strict=True)
    ]


def check_gradients(
    gradients: Sequence[Tensor | None], variables: Sequence[Variable], *, finite: bool = True
) -> tuple[list[Tensor | None], Tensor, Tensor]:
    """Check the gradients of variables, as `backend.check_gradients`.

    Next values do not count in the norm. They do in the flag, as in Keras: a float8 layer clips what it quantizes, so
    that a gradient of its output that overflows shows in its amax history alone.
    """
    checked, flag, norm = backend.check_gradients(
        backend.without_next_values(gradients, variables), variables, finite=finite
    )
    values = [value for _, value in backend.next_values(gradients, variables)]
    if finite and values:
        flag = keras.ops.logical_and(flag, backend.all_finite(values))
    rows = zip(gradients, variables, checked, strict=True)
    return [before if backend.takes_next_value(variable) else after for before, variable, after in rows], flag, norm


def _in_float32(function: Callable[[Tensor, Tensor], Tensor], value: Tree, loss_scale: Tensor) -> Tree:
    """Apply a function to a value and the scale, both in the wider dtype of the value and float32."""

    def apply(values: Tensor) -> Tensor:
        dtype = wider(values.dtype, float32) if is_float(values.dtype) else float32
        return function(keras.ops.cast(values, dtype), keras.ops.cast(loss_scale, dtype))

    return None if value is None else backend.map_values(apply, value)
