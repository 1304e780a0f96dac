"""Products in float8: how operands are scaled, rounded and multiplied, forward and backward."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import keras

from mixtrain import backend
from mixtrain.dtype import EXPONENT_BITS, FloatFormat, float32, float_format
from mixtrain.precision.float8_state import AmaxHistory
from mixtrain.typing import Tensor

E4M3: Final = float_format("float8_e4m3fn")
E5M2: Final = float_format("float8_e5m2")
_TINY: Final = float_format("float32").smallest_normal


def float8_einsum(
    equation: str, x: Tensor, kernel: Tensor, histories: Sequence[AmaxHistory] | None = None
) -> Tensor:
    """Return a product of two tensors, both rounded to e4m3, whose backward pass rounds gradients to e5m2.

    Args:
        equation: The product, as for `einsum`.
        x: The inputs, a float tensor.
        kernel: The weights, of the same dtype.
        histories: Those of the inputs, the weights and the gradients, by which each is scaled, and which the
            "gradients" of their variables update; None to scale each tensor by its own largest magnitude.

    Returns: The product, of the dtype of `x`. If an operand is not finite, neither is the product or, with histories,
        which clip it, the next value of one of them.

    Source: Micikevicius et al., 2022, "FP8 Formats for Deep Learning".
    """
    x, kernel = map(keras.ops.convert_to_tensor, (x, kernel))
    dtype = keras.backend.standardize_dtype(x.dtype)
    equation, of_x, of_kernel = _with_gradients(equation, len(x.shape))
    states = [tensor for history in histories or () for tensor in history.tensors()]

    def scaled(equation: str, first: _Rounded, second: _Rounded, *, exact: bool) -> Tensor:
        operands = first.values, first.scale, second.values, second.scale
        return backend.float8_einsum(equation, *operands, dtype=dtype, exact=exact)

    by_x, by_kernel, _ = _scalings(states)
    rounded_x = by_x.rounded(keras.ops.stop_gradient(x), E4M3)
    rounded_kernel = by_kernel.rounded(keras.ops.stop_gradient(kernel), E4M3)
    product = scaled(equation, rounded_x, rounded_kernel, exact=False)
    kept = [*rounded_x.tensors(), *rounded_kernel.tensors()]

    def rule(inputs: Sequence[Tensor], results: Sequence[Tensor], upstream: Sequence[Tensor]) -> tuple[Tensor, ...]:
        x, kernel = _Rounded(*results[1:4]), _Rounded(*results[4:7])
        scalings = _scalings(inputs[2:])
        gradient = scalings[2].rounded(upstream[0], E5M2)
        operands = zip(scalings, (x, kernel, gradient), (E4M3, E4M3, E5M2), strict=True)
        next_values = [value for scaling, tensor, form in operands for value in scaling.next_values(tensor, form)]
        # As in NVIDIA's recipe, gradients are summed in all bits.
        return scaled(of_x, gradient, kernel, exact=True), scaled(of_kernel, x, gradient, exact=True), *next_values

    return backend.with_backward_rule([x, kernel, *states], [product, *kept], rule)[0]


def to_float8(x: Tensor, form: FloatFormat) -> Tensor:
    """Return float32 values within the range of a float8 format rounded to it, for `backend.float8_einsum`."""
    if backend.describe_device().fast_float8:
        return keras.ops.cast(x, form.name)
    # XLA may remove a cast to a narrower format and back, and TensorFlow leaves a graph with one unoptimized.
    bits = keras.ops.bitwise_and(backend.special.float32_bits(x), EXPONENT_BITS)
    unit = keras.ops.maximum(backend.special.bitcast(bits, "float32"), form.smallest_normal) * form.epsilon
    return keras.ops.round(x / unit) * unit


def _with_gradients(equation: str, rank: int) -> tuple[str, str, str]:
    """Return a product for inputs of some rank, and those that give the gradients of the inputs and of the weights."""
    inputs, result = equation.split("->")
    x, kernel = inputs.split(",")
    free = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in equation]
    axes = "".join(free[: rank - len(x) + 3]) if "..." in x else ""
    x, kernel, result = (term.replace("...", axes) for term in (x, kernel, result))
    return f"{x},{kernel}->{result}", f"{result},{kernel}->{x}", f"{x},{result}->{kernel}"


@dataclasses.dataclass(frozen=True)
class _Rounded:
    """A tensor in float8: `values`, of which each stands for itself times `scale`; `amax` is its largest magnitude."""

    values: Tensor
    scale: Tensor
    amax: Tensor

    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.values, self.scale, self.amax


@dataclasses.dataclass(frozen=True)
class _Scaling:
    """How tensors of one kind are scaled: by `scale`, which follows from a `history` of magnitudes; None: by their own.

    `scale`: float32 scalar. `history`: float32 (steps,), largest magnitudes.
    """

    scale: Tensor | None = None
    history: Tensor | None = None

    def rounded(self, tensor: Tensor, form: FloatFormat) -> _Rounded:
        """Return a tensor in a float8 format."""
        tensor = keras.ops.cast(tensor, float32)
        amax = keras.ops.max(keras.ops.abs(tensor))
        if self.scale is None:
            # Where the largest magnitude is not finite, neither is the scale, nor any product: the step is skipped.
            # A scale below the smallest normal number of float32 may be taken for 0.
            scale = keras.ops.where(amax < form.max * _TINY, keras.ops.ones_like(amax), amax / form.max)
        else:
            scale = self.scale
        return _Rounded(to_float8(keras.ops.clip(tensor / scale, -form.max, form.max), form), scale, amax)

    def next_values(self, operand: _Rounded, form: FloatFormat) -> tuple[Tensor, ...]:
        """Return the next scale and history, as Keras's float8 layers compute them; nothing without a history."""
        if self.scale is None:
            return ()
        largest = keras.ops.max(self.history)
        known = keras.ops.logical_and(largest > 0, keras.ops.isfinite(largest))
        history = keras.ops.concatenate([keras.ops.reshape(operand.amax, (1,)), keras.ops.roll(self.history, -1)[1:]])
        return keras.ops.where(known, largest / form.max, self.scale), history


def _scalings(states: Sequence[Tensor]) -> list[_Scaling]:
    """Return how inputs, weights and gradients are scaled: by pairs of a scale and a history, or each by itself."""
    return [_Scaling(*states[start : start + 2]) for start in range(0, len(states), 2)] or [_Scaling()] * 3
