"""Gradients of a loss with respect to variables, their norm and whether they are finite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import keras
from jax.experimental.sparse import JAXSparse

from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.state import StateScope, current, put
from mixtrain.backend.jax.structure import split_tensors
from mixtrain.backend.tensor_base import backend_value
from mixtrain.typing import Tensor, Tree


def value_and_gradient(
    function: Callable[..., tuple[Tensor, Tree]], variables: Sequence[keras.Variable], tensors: Sequence[Tensor] = (),
    factor: Tensor | None = None,
) -> tuple[Tensor, Tree, list[Tensor]]:
    """Run `function` and differentiate its first result.

    Args:
        function: Takes `tensors` and returns ``(value, auxiliary)``; `value` is the tensor to differentiate.
        variables: Variables that it reads.
        tensors: Arguments of `function`.
        factor: Factor of the gradients, the seed of the backward pass: a scalar tensor; None for 1.

    Returns:
        ``(value, auxiliary, gradients)``, of the variables, then of the tensors; a gradient is None where `value` does
        not depend on it, and may be sparse where the backend has that.
    """
    values = [*map(current, variables), *map(backend_value, tensors)]
    differentiable = [index for index, value in enumerate(values) if jnp.issubdtype(value.dtype, jnp.inexact)]
    trainable = [index for index in differentiable if index < len(variables)]
    traced: list[Any] = []  # What `forward` returns besides tensors, in its only trace.

    def forward(floats: dict[int, Tensor]) -> tuple[Tensor, Tree]:
        inputs = [floats.get(index, value) for index, value in enumerate(values)]
        with StateScope([variables[index] for index in trainable], [inputs[index] for index in trainable]) as scope:
            results, fill = split_tensors(function(*inputs[len(variables) :]))
            written = list(scope.written.values())
            states = scope.values_of(written)
        value = fill(results)[0]
        # A value that is not a tracer depends on no variable or tensor.
        traced.extend([fill, written, scope.used, isinstance(value, jax.core.Tracer)])
        return jnp.sum(value), (results, states)

    total, pull, (results, states) = jax.vjp(forward, {index: values[index] for index in differentiable}, has_aux=True)
    fill, written, used, depends = traced
    for variable, state in zip(written, states, strict=True):
        put(variable, state)
    unused = {index for index in trainable if id(variables[index]) not in used}
    value, auxiliary = fill(results)
    (gradients,) = pull(jnp.asarray(1 if factor is None else backend_value(factor), total.dtype))
    used_gradients = {index: gradient for index, gradient in gradients.items() if depends and index not in unused}
    return value, auxiliary, [used_gradients.get(index) for index in range(len(values))]


def tapped_gradients(
    function: Callable[[Callable[[Tensor], Tensor]], tuple[Tensor, Tree]], variables: Sequence[keras.Variable],
    factor: Tensor | float,
) -> tuple[Tensor, Tree, list[Tensor]]:
    """Run `function` and differentiate its first result times a factor, with respect to tensors inside it too.

    Args:
        function: Takes `tap` and returns ``(value, auxiliary)``. `tap` takes a floating-point tensor and returns the
            tensor to use in its place. The function may run more than once.
        variables: Variables that it reads.
        factor: A scalar tensor.

    Returns:
        As `value_and_gradient`: the gradients of the variables, then those of the tapped tensors in their order.
    """
    zeros: list[Tensor] = []

    def record(tensor: Tensor) -> Tensor:
        zeros.append(jnp.zeros_like(tensor))
        return tensor

    # Differentiated as below, since layers may choose another layout then. XLA removes this pass from compiled calls.
    value_and_gradient(lambda: function(record), variables)

    def tapped(*taps: Tensor) -> tuple[Tensor, Tree]:
        remaining = iter(taps)
        return function(lambda tensor: tensor + next(remaining))

    return value_and_gradient(tapped, variables, zeros, factor)


def with_backward_hook(
    values: Sequence[Tensor], hook: Callable[[tuple[Tensor, ...]], Sequence[Tensor | None]]
) -> tuple[Tensor, ...]:
    """Return tensors unchanged, with a hook that transforms their gradients.

    Args:
        values: Floating-point tensors.
        hook: Takes the tuple of their gradients, zeros where nothing depends on a tensor, and returns the gradients to
            use. In eager code they have values.
    """

    @jax.custom_vjp
    def identity(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tensors

    # Not `jax.custom_gradient`, which traces the backward function: the hook would see no values.
    identity.defvjp(lambda *tensors: (tensors, None), lambda _, gradients: tuple(hook(gradients)))
    return tuple(identity(*values))


def with_backward_rule(
    values: Sequence[Tensor], outputs: Sequence[Tensor],
    rule: Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]],
) -> tuple[Tensor, ...]:
    """Return tensors that were computed, with another function for the gradients of what they depend on.

    Args:
        values: Floating-point tensors that the outputs were computed from.
        outputs: The computed floating-point tensors, through which no gradient passes.
        rule: Takes the values, the outputs and the outputs' gradients, and returns the values' gradients.
    """

    @jax.custom_vjp
    def computed(inputs: Sequence[Tensor], results: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return tuple(results)

    def gradients(known: tuple[Any, Any], of_outputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        inputs, results = known
        return tuple(rule(inputs, results, of_outputs)), tuple(map(jnp.zeros_like, results))

    computed.defvjp(lambda inputs, results: (tuple(results), (inputs, results)), gradients)
    return tuple(computed(tuple(map(backend_value, values)), tuple(map(backend_value, outputs))))


def is_sparse(gradient: Any) -> TypeGuard[JAXSparse]:
    """Whether a gradient is sparse: values and the indices of their rows."""
    return isinstance(gradient, JAXSparse)


def densified(gradient: Any) -> Any:
    """Return a gradient as a dense tensor."""
    return gradient.todense() if is_sparse(gradient) else gradient


def map_values(function: Callable[[Tensor], Tensor], gradient: Tensor) -> Tensor:
    """Apply `function`, which must keep zeros and shapes, to a gradient's values, dense or sparse."""
    if is_sparse(gradient):
        return type(gradient)((function(gradient.data), gradient.indices), shape=gradient.shape)
    return function(gradient)


def all_finite(gradients: Sequence[Tensor | None]) -> Tensor:
    """Whether every value of every gradient is finite, a scalar bool tensor; None entries are ignored."""
    values = [g.data if is_sparse(g) else jnp.asarray(g) for g in gradients if g is not None]
    floats = [value for value in values if jnp.issubdtype(value.dtype, jnp.inexact)]
    if not floats:
        return jnp.asarray(True)
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(value)) for value in floats]))


def non_finite_counts(gradients: Sequence[Tensor | None], all_finite: Tensor) -> Tensor:
    """Count the non-finite values of each gradient, int32 (n,); 0 for None entries.

    Args:
        gradients: The gradients.
        all_finite: Whether all are finite, a scalar bool tensor: if so, a CPU skips the count.
    """
    values = [g.data if is_sparse(g) else g for g in gradients]
    zeros = jnp.zeros(len(values), jnp.int32)

    def counts() -> Tensor:
        return jnp.stack([
            jnp.int32(0) if value is None else jnp.sum(~jnp.isfinite(value), dtype=jnp.int32) for value in values
        ])

    # A GPU would wait for the host before a branch.
    return jax.lax.cond(all_finite, lambda: zeros, counts) if describe_device().kind == "CPU" else counts()


def global_norm(gradients: Sequence[Tensor | None]) -> Tensor:
    """Compute the L2 norm of all gradients as one vector, a float32 scalar; None entries are ignored.

    It is infinite where the sum of squares overflows float32, even if every value is finite.
    """
    vectors = [jnp.ravel(densified(gradient)) for gradient in gradients if gradient is not None]
    if describe_device().kind == "CPU":
        # Without the barrier XLA (jaxlib 0.10) sums a matrix by windows over both axes, which on a CPU takes five times
        # as long as the rest of a step once a layer has about ten million weights.
        values = jax.lax.optimization_barrier(vectors)
        squares = [jnp.vdot(value, value, precision="highest") for value in values]
    else:  # On a GPU each `vdot` would be a kernel of its own.
        squares = [jnp.sum(jnp.square(value.astype(jnp.float32))) for value in vectors]
    return jnp.sqrt(jnp.sum(jnp.stack(squares)))


def finite_and_norm(gradients: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
    """Return whether every value of every gradient is finite, a scalar bool tensor, and their `global_norm`."""
    norm = global_norm(gradients)
    if describe_device().kind != "CPU":  # A GPU would wait for the host before a branch.
        return all_finite(gradients), norm
    # A non-finite value makes the norm non-finite. So values are checked only where the norm may have overflowed.
    return jax.lax.cond(jnp.isfinite(norm), lambda: jnp.array(True), lambda: all_finite(gradients)), norm
