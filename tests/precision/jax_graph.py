"""What a compiled step computes in, read from JAX's program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

from mixtrain.backend.jax.state import StateScope

# Primitives that do a layer's arithmetic, by the names that TensorFlow has for them.
ARITHMETIC = {
    "conv_general_dilated": "Conv2D", "dot_general": "MatMul", "max": "Relu", "exp": "Softmax", "rsqrt": "Rsqrt",
    "tanh": "Tanh", "logistic": "Sigmoid", "reduce_window_max": "MaxPool", "reduce_window_sum": "AvgPool",
    "add": "AddV2", "mul": "Mul",
}


@contextlib.contextmanager
def half_units() -> Iterator[None]:
    """Do nothing: XLA has half kernels on every device."""
    yield


def nodes_of(function: Any, *inputs: Any) -> list[Any]:
    """Return the forward equations of a function traced for these inputs, loop bodies included, with their paths."""

    def pure(*inputs: Any) -> Any:
        with StateScope():
            results = function(*inputs)
        return jax.tree.leaves(results)

    return list(_walk(jax.make_jaxpr(pure)(*inputs).jaxpr, ""))


def _walk(program: Any, path: str) -> Iterator[tuple[str, Any]]:
    for equation in program.eqns:
        scope = f"{path}/{equation.source_info.name_stack}"
        if "transpose(" in scope:
            continue
        yield scope.replace("jvp(", "").replace(")", ""), equation
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _walk(getattr(inner, "jaxpr", inner), scope)


def _is_program(value: Any) -> bool:
    return isinstance(value, Jaxpr | ClosedJaxpr)


def arithmetic_of(node: Any) -> tuple[str, str, str] | None:
    """Return a node's scope path, its kind and the format that it computes in; None where it is no arithmetic."""
    path, equation = node
    kind = ARITHMETIC.get(equation.primitive.name)
    if kind is None or not _is_float(equation.invars[0]):
        return None
    if kind == "Conv2D" and equation.params["feature_group_count"] > 1:
        kind = "DepthwiseConv2dNative"
    return f"{path}/{kind}", kind, str(equation.invars[0].aval.dtype)


def is_cast(node: Any) -> bool:
    """Whether a node casts from one float format to another."""
    _, equation = node
    ends = [*equation.invars, *equation.outvars]
    if equation.primitive.name != "convert_element_type" or not all(map(_is_float, ends)):
        return False
    return len({end.aval.dtype for end in ends}) == 2


def _is_float(value: Any) -> bool:
    return bool(jnp.issubdtype(value.aval.dtype, jnp.floating))
