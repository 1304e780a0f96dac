"""Gradients of a loss with respect to variables, their norm and whether they are finite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import jax
import jax.numpy as jnp
import keras
from jax.experimental.sparse import JAXSparse

from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.packing import check_packed
from mixtrain.backend.jax.state import StateScope, current, put, split_tensors
from mixtrain.backend.jax.tensor import stored
from mixtrain.backend.signatures import BackwardRule, Differentiable, Gradients, Variables
from mixtrain.backend.tensor_base import backend_value
from mixtrain.typing import Tensor, Tree


@jax.custom_vjp
def _standing_for(source: Tensor, value: Tensor) -> Tensor:
    """Return `value`, with the gradients of `source`."""
    del source
    return value


_standing_for.defvjp(lambda source, value: (value, None), lambda _, gradient: (gradient, jnp.zeros_like(gradient)))


class _Differentiated(StateScope):
    """A scope in which reading a Parameter has gradients by the Parameter, also after it was written.

    TensorFlow's variables and MindSpore's Parameters have them so. Keras's layers keep those that Keras gives them.
    """

    def __init__(self, variables: Variables, values: Sequence[Tensor]) -> None:
        super().__init__(variables, values)
        self._sources = dict(self.state_mapping)

    def add_update(self, update: tuple[keras.Variable, Tensor]) -> None:
        variable, value = update
        if hasattr(variable, "stored_dtype"):  # Those of mixtrain have it.
            value, source = jax.lax.stop_gradient(value), self._sources.get(id(variable))
            value = value if source is None else _standing_for(source, value)
        super().add_update((variable, value))


def value_and_gradient(
    function: Differentiable, variables: Variables, tensors: Sequence[Tensor] = (), factor: Tensor | None = None
) -> tuple[Tensor, Tree, list[Tensor]]:
    values = [*map(current, variables), *map(backend_value, tensors)]
    differentiable = [index for index, value in enumerate(values) if jnp.issubdtype(value.dtype, jnp.inexact)]
    trainable = [index for index in differentiable if index < len(variables)]
    traced: list[Any] = []  # What `forward` returns besides tensors, in its only trace.

    def forward(floats: dict[int, Tensor]) -> tuple[Tensor, Tree]:
        inputs = [floats.get(index, value) for index, value in enumerate(values)]
        sources = [variables[index] for index in trainable]
        with _Differentiated(sources, [inputs[index] for index in trainable]) as scope:
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
    # The gradient of a complex number is the direction in which the value grows, of which JAX has the conjugate.
    used_gradients = {
        index: gradient.conj() if jnp.iscomplexobj(gradient) else gradient
        for index, gradient in gradients.items() if depends and index not in unused
    }
    return value, auxiliary, [used_gradients.get(index) for index in range(len(values))]


def tapped_gradients(
    function: Differentiable, variables: Variables, factor: Tensor | float
) -> tuple[Tensor, Tree, list[Tensor]]:
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


def with_backward_hook(values: Sequence[Tensor], hook: Callable[[tuple[Tensor, ...]], Gradients]) -> tuple[Tensor, ...]:
    @jax.custom_vjp
    def identity(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tensors

    # Not `jax.custom_gradient`, which traces the backward function: the hook would see no values.
    identity.defvjp(lambda *tensors: (tensors, None), lambda _, gradients: tuple(hook(gradients)))
    return tuple(identity(*values))


def custom_gradient_count() -> int:
    return 0  # JAX maps functions with their gradients.


def with_backward_rule(values: Sequence[Tensor], outputs: Sequence[Tensor], rule: BackwardRule) -> tuple[Tensor, ...]:
    @jax.custom_vjp
    def computed(inputs: Sequence[Tensor], results: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return tuple(results)

    def gradients(known: tuple[Any, Any], of_outputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        inputs, results = known
        return tuple(rule(inputs, results, of_outputs)), tuple(map(jnp.zeros_like, results))

    def forward(inputs: Sequence[Tensor], results: Sequence[Tensor]) -> tuple[Any, Any]:
        # The rule gets what can itself be differentiated, for second derivatives.
        outputs = computed(inputs, results)
        return outputs, (inputs, outputs)

    computed.defvjp(forward, gradients)
    return tuple(computed(tuple(map(backend_value, values)), tuple(map(backend_value, outputs))))


def is_sparse(gradient: Any) -> TypeGuard[JAXSparse]:
    return isinstance(gradient, JAXSparse)


def densified(gradient: Any) -> Any:
    return gradient.todense() if is_sparse(gradient) else gradient


def map_values(function: Callable[[Tensor], Tensor], gradient: Tensor) -> Tensor:
    if is_sparse(gradient):
        return type(gradient)((function(gradient.data), gradient.indices), shape=gradient.shape)
    return function(gradient)


def all_finite(gradients: Gradients) -> Tensor:
    values = [g.data if is_sparse(g) else jnp.asarray(g) for g in gradients if g is not None]
    floats = [value for value in values if jnp.issubdtype(value.dtype, jnp.inexact)]
    if not floats:
        return jnp.asarray(True)
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(value)) for value in floats]))


def non_finite_counts(gradients: Gradients, all_finite: Tensor) -> Tensor:
    values = [g.data if is_sparse(g) else g for g in gradients]
    zeros = jnp.zeros(len(values), jnp.int32)

    def counts() -> Tensor:
        return jnp.stack([
            jnp.int32(0) if value is None else jnp.sum(~jnp.isfinite(value), dtype=jnp.int32) for value in values
        ])

    # A GPU would wait for the host before a branch.
    return jax.lax.cond(all_finite, lambda: zeros, counts) if describe_device().kind == "CPU" else counts()


def global_norm(gradients: Gradients) -> Tensor:
    vectors = [jnp.ravel(densified(gradient)) for gradient in gradients if gradient is not None]
    if describe_device().kind == "CPU":
        # Without the barrier XLA (jaxlib 0.10) sums a matrix by windows over both axes, which on a CPU takes five times
        # as long as the rest of a step once a layer has about ten million weights.
        values = jax.lax.optimization_barrier(vectors)
        squares = [jnp.vdot(value, value, precision="highest") for value in values]
    else:  # On a GPU each `vdot` would be a kernel of its own.
        squares = [jnp.sum(jnp.square(value.astype(jnp.float32))) for value in vectors]
    return jnp.sqrt(jnp.sum(jnp.stack(squares)))


def check_gradients(
    gradients: Gradients, variables: Variables, *, finite: bool = True
) -> tuple[list[Tensor | None], Tensor, Tensor]:
    present = [gradient for gradient in gradients if gradient is not None]
    kind = describe_device().kind
    compiled = bool(present) and all(isinstance(gradient, jax.core.Tracer) for gradient in present)
    # Parts of a vector are on all devices: sharded gradients would be copied to each.
    if kind == "GPU" and compiled and not any(map(_is_sharded, variables)):
        return check_packed(gradients, finite=finite)
    norm = global_norm(gradients)
    if not finite:
        flag = jnp.array(True)
    elif kind == "CPU":
        # A non-finite value makes the norm non-finite. So values are checked only where the norm may have overflowed.
        flag = jax.lax.cond(jnp.isfinite(norm), lambda: jnp.array(True), lambda: all_finite(gradients))
    else:  # An accelerator would wait for the host before a branch.
        flag = all_finite(gradients)
    return list(gradients), flag, norm


def _is_sharded(variable: keras.Variable) -> bool:
    sharding = getattr(stored(variable), "sharding", None)
    return sharding is not None and not sharding.is_fully_replicated
