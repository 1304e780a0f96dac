"""Convolutions as XLA's CPU compiler has them fast inside a loop: batch first, channels last, rows of kernels first.

At the top of a program XLA's CPU compiler brings every convolution into that form, for which it has fast kernels;
inside a loop it does not, and those of a gradient, whose axes JAX has in another order, take several times as long.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

# Operations that hold a program which is as well written out where they stand, and the parameter that holds it.
_CALLS: Final = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
}


def with_fast_convolutions(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a pure function whose convolutions have the form that is fast inside a loop on CPU.

    Args:
        function: Takes and returns structures of arrays.

    Example:
        >>> square = with_fast_convolutions(lambda x: {"y": x * x})
        >>> square(jnp.float32(3))["y"].tolist()
        9.0
    """

    @functools.wraps(function)
    def run(*given: Any) -> Any:
        program, form = jax.make_jaxpr(function, return_shape=True)(*given)
        found = _run(program.jaxpr, program.consts, jax.tree.leaves(given))
        return jax.tree.unflatten(jax.tree.structure(form), found)

    return run


def _run(program: Jaxpr, constants: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """Run a program, convolutions in the fast form."""
    values = dict(zip([*program.constvars, *program.invars], [*constants, *given], strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in program.eqns:
        results = _results(equation, [read(atom) for atom in equation.invars])
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in program.outvars]


def _results(equation: Any, given: Sequence[Any]) -> Sequence[Any]:
    name, told = equation.primitive.name, equation.params
    if name in _CALLS:
        inner = told[_CALLS[name]]
        if isinstance(inner, ClosedJaxpr):
            return _run(inner.jaxpr, inner.consts, given)
    if name == "conv_general_dilated" and told["batch_group_count"] == 1:
        return [_convolved(equation.primitive, told, *given)]
    bound = equation.primitive.get_bind_params(told)
    functions, bound = bound if isinstance(bound, tuple) else ((), bound)
    found = equation.primitive.bind(*functions, *given, **bound)
    return found if equation.primitive.multiple_results else [found]


def _convolved(primitive: Any, told: dict[str, Any], x: Any, kernel: Any) -> Any:
    """Return a convolution of transposed tensors, transposed back."""
    axes = told["dimension_numbers"]
    last = x.ndim - 1
    between = range(2, last + 1)
    fast = jax.lax.ConvDimensionNumbers(
        (0, last, *range(1, last)), (last, last - 1, *range(last - 1)), (0, last, *range(1, last))
    )
    x = jnp.transpose(x, [axes.lhs_spec[axis] for axis in (0, *between, 1)])
    kernel = jnp.transpose(kernel, [axes.rhs_spec[axis] for axis in (*between, 1, 0)])
    y = primitive.bind(x, kernel, **{**told, "dimension_numbers": fast})
    return jnp.transpose(y, np.argsort([axes.out_spec[axis] for axis in (0, *between, 1)]).tolist())
