"""Which layers compute their products in float8, and how a plan makes them do so."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import keras

from mixtrain import checks
from mixtrain.dtype import bfloat16, float8_delayed, float32
from mixtrain.network.interpose import interpose
from mixtrain.network.marks import CLAIMS, HISTORIES
from mixtrain.network.walk import Node, is_cell, variables_of
from mixtrain.precision.families import family_of
from mixtrain.precision.float8 import float8_einsum
from mixtrain.precision.float8_state import AmaxHistories
from mixtrain.precision.half_products import covered, finished
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.typing import Layer, Tensor

# Float8 kernels need sizes that are multiples of this (NVIDIA, cuBLASLt).
_MULTIPLE: Final = 16
_DENSE: Final = (keras.layers.Dense, keras.layers.EinsumDense)


def reason_not_float8(layer: Layer) -> str | None:
    """Return why a layer's products cannot be computed in float8; None if they can, "" if it has no products."""
    if _equation(layer) is not None:
        return None
    if family_of(layer) not in ("matmul", "recurrent"):
        return ""
    if isinstance(layer, _DENSE):
        return "its own code multiplies" if layer.quantization_mode is None else "it is quantized"
    return "only the products of dense layers are"


def reason_not_recommended(layer: Layer) -> str | None:
    """Return why float8 does not pay for a layer that could use it; None if it does."""
    sizes = _sizes(layer)
    if all(size % _MULTIPLE == 0 for size in sizes):
        return None
    return f"its sizes, {sizes[0]} and {sizes[1]}, are not multiples of {_MULTIPLE}"


def has_matrix(node: Node) -> bool:
    """Whether a layer itself, not one inside it, has a weight matrix."""
    if _equation(node.layer) is not None:
        return True
    return not node.children and any(len(variable.shape) > 1 for variable in variables_of(node.layer))


def _equation(layer: Layer) -> str | None:
    """Return the product of a layer's inputs with its weights, for `einsum`; None if it has none for float8."""
    if is_cell(layer):
        kind: Any = type(layer)
        owner = next((base for base in kind.__mro__ if "product_equation" in vars(base)), None)
        # A subclass with a forward pass of its own may not call `multiply`.
        calls = owner is not None and kind.construct is owner.construct
        return kind.product_equation if calls else None
    # A method that the user, not a plan, has set on the layer object itself runs as it is.
    replaced = "call" in vars(layer) and CLAIMS.of(layer) is None
    if not isinstance(layer, _DENSE) or not covered(layer) or not layer.built or replaced:
        return None
    equation = getattr(layer, "equation", "...k,kn->...n").replace(" ", "")
    return equation if _has_gradients(equation) else None


def _has_gradients(equation: str) -> bool:
    """Whether both gradients of a product are such products themselves: each letter is in two of the three terms."""
    inputs, result = equation.split("->")
    terms = [*inputs.split(","), result]
    letters = set("".join(terms)) - {"."}
    return len(terms) == 3 and all(
        sum(letter in term for term in terms) >= 2 and all(term.count(letter) < 2 for term in terms)
        for letter in letters
    )


def _sizes(layer: Layer) -> tuple[int, int]:
    """Return how many products each output sums, and how many outputs a row of inputs has."""
    inputs, result = _equation(layer).split("->")  # type: ignore[union-attr]
    kernel = inputs.split(",")[1]
    shape = layer.kernel.shape if isinstance(layer, keras.Layer) else layer.product_shape
    inner = math.prod(size for letter, size in zip(kernel, shape, strict=True) if letter not in result)
    return inner, math.prod(shape) // inner


def multiply_in_float8(layer: Layer, histories: AmaxHistories | None) -> Callable[[], None]:
    """Compute the products of a layer in float8, scaled by histories or by each batch; return what restores it."""
    equation: str = _equation(layer)  # type: ignore[assignment]
    of_operands = None if histories is None else histories.of_operands
    HISTORIES.put(layer, histories)

    def multiply(x: Tensor, kernel: Tensor) -> Tensor:
        return float8_einsum(equation, x, kernel, of_operands)

    def call(inputs: Tensor, training: Tensor | bool | None = None) -> Tensor:
        product = multiply(inputs, layer.kernel)
        # As in Keras's float8 layers, which round the bias so that XLA can add it inside of the product.
        rounded = bfloat16 if layer.compute_dtype == float32 else None
        return finished(layer, product, bias_dtype=rounded)

    method, product = ("multiply", multiply) if is_cell(layer) else ("call", call)
    restore = interpose(layer, lambda own: product, method=method)

    def undo() -> None:
        restore()
        HISTORIES.remove(layer)

    return undo


def refuse_delayed(where: str, plan: PrecisionPlan) -> PrecisionPlan:
    """Return a plan if it scales no layer by its history, which a step of mixtrain's must update.

    `where`: The caller, for the ValueError that it raises otherwise.
    """
    if any(row.float8 == float8_delayed for row in plan.rows):
        raise checks.fail_value(
            where, "float8 scales of earlier steps need a train step that updates them", "float8_delayed",
            'mixtrain.float8, or Model(network, loss_fn, optimizer, cast_model_type="float8_delayed")',
        )
    return plan
