"""Replace primitives of a pure function, in its gradients too, by interpreting its jaxpr."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, Primitive

# From a primitive, its parameters and its arguments to its result; None leaves the operation unchanged.
Rewrite = Callable[..., Any]

# Primitives whose inner jaxpr can be inlined, and the parameter that holds it.
_CALLS: Final = {
    "jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
}


def rewritten(function: Callable[..., Any], rewrites: Mapping[str, Rewrite]) -> Callable[..., Any]:
    """Return a pure function in which some primitives are replaced.

    Args:
        function: Takes and returns structures of arrays.
        rewrites: By the name of a JAX primitive with one result, the function that replaces it.

    Example:
        >>> twice = rewritten(lambda x: {"y": jax.lax.sin(x)}, {"sin": lambda primitive, params, x: 2 * x})
        >>> twice(jax.numpy.float32(3))["y"].tolist()
        6.0
    """

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        program, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
        outputs = _run(program.jaxpr, program.consts, jax.tree.leaves(args), rewrites)
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return run


def _run(program: Jaxpr, constants: Sequence[Any], args: Sequence[Any], rewrites: Mapping[str, Rewrite]) -> list[Any]:
    values = dict(zip([*program.constvars, *program.invars], [*constants, *args], strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in program.eqns:
        results = _results(equation, [read(atom) for atom in equation.invars], rewrites)
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in program.outvars]


def _results(equation: Any, args: Sequence[Any], rewrites: Mapping[str, Rewrite]) -> Sequence[Any]:
    primitive: Primitive = equation.primitive
    params = equation.params
    if primitive.name in _CALLS:
        inner = params[_CALLS[primitive.name]]
        if isinstance(inner, ClosedJaxpr):
            return _run(inner.jaxpr, inner.consts, args, rewrites)
    if primitive.name in rewrites:
        result = rewrites[primitive.name](primitive, params, *args)
        if result is not None:
            return [result]
    bind_params = primitive.get_bind_params(params)
    functions, bind_params = bind_params if isinstance(bind_params, tuple) else ((), bind_params)
    outputs = primitive.bind(*functions, *args, **bind_params)
    return outputs if primitive.multiple_results else [outputs]
