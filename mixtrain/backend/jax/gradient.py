"""Gradients of a loss with respect to variables, and the questions a step asks of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import keras
from jax.experimental.sparse import JAXSparse

from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.state import StateScope, current, put
from mixtrain.backend.jax.structure import split_tensors
from mixtrain.backend.tensor_base import backend_value


def value_and_gradient(
    function: Callable[..., tuple[Any, Any]], variables: Sequence[keras.Variable], tensors: Sequence[Any] = (),
    factor: Any = None,
) -> tuple[Any, Any, list[Any]]:
    """Run `function` and differentiate its first result.

    Args:
        function: Takes `tensors` and returns ``(value, auxiliary)``; `value` is the tensor to differentiate.
        variables: Variables that it reads.
        tensors: Tensors.
        factor: What the gradients are multiplied by from the first on, a scalar tensor; None for 1.

    Returns:
        ``(value, auxiliary, gradients)``, of the variables, then of the tensors; a gradient is None where `value` does
        not depend on it, and may be sparse where the backend has that.
    """
    values = [*map(current, variables), *map(backend_value, tensors)]
    places = [place for place, value in enumerate(values) if jnp.issubdtype(value.dtype, jnp.inexact)]
    trained = [place for place in places if place < len(variables)]
    told: list[Any] = []  # What `forward` has to tell besides tensors: it is traced once.

    def forward(floats: dict[int, Any]) -> tuple[Any, Any]:
        given = [floats.get(place, value) for place, value in enumerate(values)]
        with StateScope([variables[place] for place in trained], [given[place] for place in trained]) as scope:
            results, fill = split_tensors(function(*given[len(variables) :]))
            written = list(scope.written.values())
            states = scope.values_of(written)
        value = fill(results)[0]
        # What is no tracer here is a number that depends on nothing.
        told.extend([fill, written, scope.used, isinstance(value, jax.core.Tracer)])
        return jnp.sum(value), (results, states)

    total, pull, (results, states) = jax.vjp(forward, {place: values[place] for place in places}, has_aux=True)
    fill, written, used, depends = told
    for variable, state in zip(written, states, strict=True):
        put(variable, state)
    unused = {place for place in trained if id(variables[place]) not in used}
    value, auxiliary = fill(results)
    (found,) = pull(jnp.asarray(1 if factor is None else backend_value(factor), total.dtype))
    kept = {place: gradient for place, gradient in found.items() if depends and place not in unused}
    return value, auxiliary, [kept.get(place) for place in range(len(values))]


def tapped_gradients(
    function: Callable[[Callable[[Any], Any]], tuple[Any, Any]], variables: Sequence[keras.Variable],
    factor: Any,
) -> tuple[Any, Any, list[Any]]:
    """Run `function` and differentiate its first result times a factor, by tensors inside it too.

    Args:
        function: Takes `tap` and returns ``(value, auxiliary)``. `tap` takes a floating-point tensor and returns what
            to go on with in its place. It may run more than once.
        variables: Variables that it reads.
        factor: A scalar tensor.

    Returns:
        As `value_and_gradient`: the gradients of the variables, then those of the tapped tensors in their order.
    """
    zeros: list[Any] = []

    def look(tensor: Any) -> Any:
        zeros.append(jnp.zeros_like(tensor))
        return tensor

    # As what follows, for layers may lay out what is differentiated otherwise. In a compiled program nothing is left.
    value_and_gradient(lambda: function(look), variables)

    def tapped(*taps: Any) -> tuple[Any, Any]:
        given = iter(taps)
        return function(lambda tensor: tensor + next(given))

    return value_and_gradient(tapped, variables, zeros, factor)


def with_backward_hook(values: Sequence[Any], hook: Callable[[tuple[Any, ...]], Sequence[Any]]) -> tuple[Any, ...]:
    """Return tensors as they are, with a function in the way of their gradients.

    Args:
        values: Floating-point tensors.
        hook: Takes the tuple of their gradients, zeros where nothing depends on a tensor, and returns those to go on
            with. In eager code the gradients have values.
    """

    @jax.custom_vjp
    def same(*tensors: Any) -> tuple[Any, ...]:
        return tensors

    # Not `jax.custom_gradient`, which traces the backward function: the hook would see no values.
    same.defvjp(lambda *tensors: (tensors, None), lambda _, gradients: tuple(hook(gradients)))
    return tuple(same(*values))


def is_sparse(gradient: Any) -> bool:
    """Whether a gradient is sparse: values with the rows that they belong to."""
    return isinstance(gradient, JAXSparse)


def densified(gradient: Any) -> Any:
    """Return a gradient as a plain tensor."""
    return gradient.todense() if is_sparse(gradient) else gradient


def map_values(function: Callable[[Any], Any], gradient: Any) -> Any:
    """Apply `function`, which must keep zeros and shapes, to a gradient's values, dense or sparse."""
    if is_sparse(gradient):
        return type(gradient)((function(gradient.data), gradient.indices), shape=gradient.shape)
    return function(gradient)


def all_finite(gradients: Sequence[Any]) -> Any:
    """Return a scalar bool tensor: whether every value of every gradient is finite; None entries are passed over."""
    values = [g.data if is_sparse(g) else jnp.asarray(g) for g in gradients if g is not None]
    floats = [value for value in values if jnp.issubdtype(value.dtype, jnp.inexact)]
    if not floats:
        return jnp.asarray(True)
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(value)) for value in floats]))


def non_finite_counts(gradients: Sequence[Any], all_finite: Any) -> Any:
    """Return how many values of each gradient are not finite, int32 (n,); 0 for None entries.

    Args:
        gradients: They.
        all_finite: Whether all are finite, a scalar bool tensor: then, on a CPU, no number is looked at.
    """
    values = [None if one is None else one.data if is_sparse(one) else one for one in gradients]
    none = jnp.zeros(len(values), jnp.int32)

    def counts() -> Any:
        return jnp.stack([
            jnp.int32(0) if value is None else jnp.sum(~jnp.isfinite(value), dtype=jnp.int32) for value in values
        ])

    # A GPU would wait for the host before a branch.
    return jax.lax.cond(all_finite, lambda: none, counts) if describe_device().kind == "CPU" else counts()


def global_norm(gradients: Sequence[Any]) -> Any:
    """Return the L2 norm of all gradients as one vector, a float32 scalar; None entries are passed over.

    It is infinite where the sum of squares is more than float32 holds, although every number may be finite.
    """
    vectors = [jnp.ravel(densified(gradient)) for gradient in gradients if gradient is not None]
    if describe_device().kind == "CPU":
        # Without the barrier XLA (jaxlib 0.10) sums a matrix by windows of both its axes, which on a CPU takes five
        # times as long as all else in a step once a layer has some ten million weights.
        values = jax.lax.optimization_barrier(vectors)
        squares = [jnp.vdot(value, value, precision="highest") for value in values]
    else:  # On a GPU each product is a kernel by itself.
        squares = [jnp.sum(jnp.square(value.astype(jnp.float32))) for value in vectors]
    return jnp.sqrt(jnp.sum(jnp.stack(squares)))


def finite_and_norm(gradients: Sequence[Any]) -> tuple[Any, Any]:
    """Return whether every value of every gradient is finite, a bool scalar, and their `global_norm`."""
    norm = global_norm(gradients)
    if describe_device().kind != "CPU":  # A GPU would wait for the host before a branch.
        return all_finite(gradients), norm
    # With a value that is not finite the norm is not: values are looked at only where it may be too large by itself.
    return jax.lax.cond(jnp.isfinite(norm), lambda: jnp.array(True), lambda: all_finite(gradients)), norm
