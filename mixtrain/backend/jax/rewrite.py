"""A pure function with some of its operations done in another way, its gradients' operations too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Primitive

# From an operation, its parameters and what it is given to its result; None leaves the operation as it is.
Rewrite = Callable[..., Any]

# Operations that hold a program which is as well written out where they stand, and the parameter that holds it.
_CALLS: Final = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
}


def rewritten(function: Callable[..., Any], rewrites: Mapping[str, Rewrite]) -> Callable[..., Any]:
    """Return a pure function whose operations of some names are done in another way.

    Args:
        function: Takes and returns structures of arrays.
        rewrites: By the name of a JAX primitive of one result: from it, its parameters and arrays to a result or None.

    Example:
        >>> twice = rewritten(lambda x: {"y": jax.lax.sin(x)}, {"sin": lambda primitive, told, x: 2 * x})
        >>> twice(jax.numpy.float32(3))["y"].tolist()
        6.0
    """

    @functools.wraps(function)
    def run(*given: Any) -> Any:
        program, form = jax.make_jaxpr(function, return_shape=True)(*given)
        found = _run(program.jaxpr, program.consts, jax.tree.leaves(given), rewrites)
        return jax.tree.unflatten(jax.tree.structure(form), found)

    return run


def _run(
    program: Jaxpr, constants: Sequence[Any], given: Sequence[Any], rewrites: Mapping[str, Rewrite]
) -> list[Any]:
    values = dict(zip([*program.constvars, *program.invars], [*constants, *given], strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in program.eqns:
        results = _results(equation, [read(atom) for atom in equation.invars], rewrites)
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in program.outvars]


def _results(equation: Any, given: Sequence[Any], rewrites: Mapping[str, Rewrite]) -> Sequence[Any]:
    primitive: Primitive = equation.primitive
    told = equation.params
    if primitive.name in _CALLS:
        inner = told[_CALLS[primitive.name]]
        if isinstance(inner, ClosedJaxpr):
            return _run(inner.jaxpr, inner.consts, given, rewrites)
    if primitive.name in rewrites:
        result = rewrites[primitive.name](primitive, told, *given)
        if result is not None:
            return [result]
    bound = primitive.get_bind_params(told)
    functions, bound = bound if isinstance(bound, tuple) else ((), bound)
    found = primitive.bind(*functions, *given, **bound)
    return found if primitive.multiple_results else [found]
