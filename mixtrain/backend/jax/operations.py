"""Run a function operation by operation."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import JaxprEqn, Literal

from mixtrain.backend.jax.gradient import tapped_gradients
from mixtrain.backend.jax.rewrite import evaluated
from mixtrain.backend.jax.state import StateScope, put, split_tensors
from mixtrain.backend.tensor_base import backend_value
from mixtrain.backend.user_code import Operation, users_line
from mixtrain.typing import Tensor, Tree


def run_operations(function: Callable[[], Tree], inside: types.CodeType) -> tuple[Tree, list[Operation]]:
    return _run(function, inside, lambda tensor: tensor, _rounded)


def _run(
    function: Callable[[], Tree], inside: types.CodeType, tap_input: Callable[[Tensor], Tensor],
    tap_output: Callable[[Tensor], Tensor],
) -> tuple[Tree, list[Operation]]:
    traced: list[Any] = []  # What the function returns besides tensors, and the variables that it writes.

    def flat() -> tuple[list[Tensor], list[Tensor]]:
        with StateScope() as scope:
            results, fill = split_tensors(function())
            written = list(scope.written.values())
            traced.extend([fill, written])
            return results, scope.values_of(written)

    closed = jax.make_jaxpr(flat)()
    fill, written = traced
    values = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    operations: list[Operation] = []

    def read(place: Any) -> Any:
        return place.val if isinstance(place, Literal) else values[place]

    for equation in closed.jaxpr.eqns:
        stack = _stack(equation, inside)
        inputs = [read(place) for place in equation.invars]
        if stack is not None:
            inputs = [tap_input(value) if _is_float(value) else value for value in inputs]
        outputs = [*evaluated(equation, inputs)]
        if stack is not None:
            outputs = [tap_output(value) if _is_float(value) else value for value in outputs]
            name = str(equation.params.get("name", equation.primitive.name))
            arguments, results = ([value for value in group if _is_float(value)] for group in (inputs, outputs))
            if results:
                operations.append(Operation(name, users_line(stack, jax.__file__), arguments, results))
        values.update(zip(equation.outvars, outputs, strict=True))
    results = [read(place) for place in closed.jaxpr.outvars]
    count = len(results) - len(written)
    for variable, value in zip(written, results[count:], strict=True):
        put(variable, value)
    return fill(results[:count]), operations


def _rounded(value: Tensor) -> Tensor:
    """Return the result of an operation as it is by itself.

    A CPU with instructions for float16 may compute a product and the difference that follows in one, so that the
    product never overflows.
    """
    if value.dtype not in (jnp.float16, jnp.bfloat16):
        return value
    form = jnp.finfo(value.dtype)
    return jax.lax.reduce_precision(value.astype(jnp.float32), form.nexp, form.nmant).astype(value.dtype)


def _is_float(value: Any) -> bool:
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jnp.floating)


def _stack(equation: JaxprEqn, inside: types.CodeType) -> list[tuple[str, int]] | None:
    """Return files and line numbers of where an equation was traced, innermost first, up to a function, or None."""
    stack: list[tuple[str, int]] = []
    for frame in getattr(equation.source_info.traceback, "frames", ()):
        if (frame.file_name, frame.function_start_line) == (inside.co_filename, inside.co_firstlineno):
            return stack
        stack.append((frame.file_name, frame.line_num))
    return None


def finite_gradients(
    function: Callable[[], Tensor], factor: Tensor | float, inside: types.CodeType
) -> tuple[list[Operation], Tensor]:
    operations: list[Operation] = []
    positions: dict[int, int] = {}

    def tapped(tap: Callable[[Tensor], Tensor]) -> tuple[Tensor, None]:
        positions.clear()

        def numbered(tensor: Tensor) -> Tensor:
            # Each use of a tensor has a gradient of its own.
            result = tap(tensor)
            positions[id(result)] = len(positions)
            return result

        value, operations[:] = _run(function, inside, numbered, numbered)
        return backend_value(value).astype(jnp.float32), None

    gradients = tapped_gradients(tapped, (), factor)[2]

    def finite(tensors: list[Tensor]) -> Tensor:
        known = [gradients[positions[id(tensor)]] for tensor in tensors if id(tensor) in positions]
        flags = [jnp.all(jnp.isfinite(gradient)) for gradient in known if gradient is not None]
        return jnp.all(jnp.stack(flags)) if flags else jnp.asarray(True)

    flags = [jnp.stack([finite(run.outputs), finite(run.inputs)]) for run in operations]
    return operations, jnp.stack(flags) if flags else jnp.ones((0, 2), bool)
