"""Replace primitives of a pure function, in its gradients too, by interpreting its jaxpr."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
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

    `function`: Takes and returns structures of arrays. `rewrites`: By the name of a JAX primitive with one result, the
    function that replaces it.

    Example:
        >>> twice = rewritten(lambda x: {"y": jax.lax.sin(x)}, {"sin": lambda primitive, params, x: 2 * x})
        >>> twice(jax.numpy.float32(3))["y"].tolist()
        6.0
    """

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        program, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
        outputs = run_rewritten(program, jax.tree.leaves(args), rewrites)
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return run


def run_rewritten(program: ClosedJaxpr, args: Sequence[Any], rewrites: Mapping[str, Rewrite]) -> list[Any]:
    """Run a program, in which some primitives are replaced, on the leaves of its arguments; return its outputs."""
    evaluate = functools.partial(_run, rewrites) if _has(program.jaxpr, rewrites) else jax.core.eval_jaxpr
    return evaluate(program.jaxpr, program.consts, *args)


def _has(program: Jaxpr, names: Collection[str]) -> bool:
    """Whether a program has an operation of a name where `_run` would find it."""
    return any(
        equation.primitive.name in names or ((inner := _inlined(equation)) and _has(inner.jaxpr, names))
        for equation in program.eqns
    )


def _run(rewrites: Mapping[str, Rewrite], program: Jaxpr, constants: Sequence[Any], *args: Any) -> list[Any]:
    values = dict(zip([*program.constvars, *program.invars], [*constants, *args], strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in program.eqns:
        # The names that profiles and compiled programs show.
        with jax.named_scope(name) if (name := str(equation.source_info.name_stack)) else contextlib.nullcontext():
            results = _results(equation, [read(atom) for atom in equation.invars], rewrites)
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in program.outvars]


def _results(equation: Any, args: Sequence[Any], rewrites: Mapping[str, Rewrite]) -> Sequence[Any]:
    primitive: Primitive = equation.primitive
    params = equation.params
    if inner := _inlined(equation):
        return _run(rewrites, inner.jaxpr, inner.consts, *args)
    if primitive.name in rewrites:
        result = rewrites[primitive.name](primitive, params, *args)
        if result is not None:
            return [result]
    return evaluated(equation, args)


def evaluated(equation: Any, args: Sequence[Any]) -> Sequence[Any]:
    """Run the operation of an equation on its arguments, and return its outputs."""
    primitive: Primitive = equation.primitive
    bind_params = primitive.get_bind_params(equation.params)
    functions, bind_params = bind_params if isinstance(bind_params, tuple) else ((), bind_params)
    outputs = primitive.bind(*functions, *args, **bind_params)
    return outputs if primitive.multiple_results else [outputs]


def _inlined(equation: Any) -> ClosedJaxpr | None:
    """Return the program of an operation that calls one; None for all others."""
    inner = equation.params.get(_CALLS.get(equation.primitive.name))
    return inner if isinstance(inner, ClosedJaxpr) else None
