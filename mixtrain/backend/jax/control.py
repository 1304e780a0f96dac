"""Control flow of compiled functions: a branch, a loop, an order of operations, and calls of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.backend.jax.branches import reached
from mixtrain.backend.jax.device import describe_device
from mixtrain.backend.jax.group import spanning
from mixtrain.backend.jax.packing import MAX_SMALL_SIZE
from mixtrain.backend.jax.state import StateScope, current, put, tracing
from mixtrain.typing import Shape, Tensor, Tree, Variable


def cond(
    predicate: Tensor, on_true: Callable[[], Tree], on_false: Callable[[], Tree], *, writes: Sequence[Variable] = ()
) -> None:
    # In a compiled function both run, and the values of each variable are selected elementwise. XLA fuses that into the
    # kernels that compute the values, while a branch would make a GPU wait for the host.
    del writes
    if not isinstance(predicate, jax.core.Tracer):
        (on_true if bool(predicate) else on_false)()
        return
    scopes = []
    for function in (on_true, on_false):
        with StateScope() as scope:
            function()
        scopes.append(scope)
    variables = {key: variable for scope in scopes for key, variable in scope.written.items()}
    values = {key: current(variable) for key, variable in variables.items()}
    pairs = [tuple(scope.state_mapping.get(key, value) for scope in scopes) for key, value in values.items()]
    for variable, value in zip(variables.values(), select(predicate, pairs), strict=True):
        put(variable, value)


def select(predicate: Tensor, pairs: Sequence[tuple[Any, Any]]) -> list[Tensor]:
    """Select the first values of pairs if a scalar tensor is true, else the second ones."""
    arrays = [(jnp.asarray(yes), jnp.asarray(no)) for yes, no in pairs]
    sizes = [yes.size if yes.size <= MAX_SMALL_SIZE else 0 for yes, _ in arrays]
    if describe_device().kind != "GPU" or max(sizes, default=0) == 0:
        return [jnp.where(predicate, yes, no) for yes, no in arrays]
    # On a GPU XLA (jaxlib 0.10) computes values of one shape in one kernel if they depend on a vector in common, not on
    # a scalar. So each selects by a part of a vector.
    mask = jax.lax.optimization_barrier(jnp.full(max(sizes), predicate))
    return [
        jnp.where(mask[:size].reshape(yes.shape) if size else predicate, yes, no)
        for (yes, no), size in zip(arrays, sizes, strict=True)
    ]


def write_after(tensor: Tensor, function: Callable[[], None], weights: Sequence[Variable]) -> None:
    """Write at once: on JAX variables are written after the whole call."""
    del tensor, weights
    if describe_device().kind == "GPU" and tracing():
        # Both selected values are needed, but not the choice: see `select`.
        cond(jax.lax.optimization_barrier(jnp.array(True)), function, lambda: None)
    else:
        function()


def call_python(function: Callable[..., None], tensors: Sequence[Tensor]) -> None:
    condition = reached()
    if condition is False:
        return
    values = [value.astype(jnp.float32) if value.dtype == jnp.bfloat16 else value for value in tensors]
    if any(isinstance(value, jax.core.Tracer) for value in (condition, *values)):
        def call(condition: Tensor, *arrays: Tensor) -> None:
            if condition:
                function(*map(np.asarray, arrays))

        # JAX refuses ordered callbacks in a program of several processes.
        jax.debug.callback(call, condition, *values, ordered=not spanning())
    else:
        function(*map(np.asarray, values))


def computed_by_numpy(
    function: Callable[..., Sequence[np.ndarray]], tensors: Sequence[Tensor], shapes: Sequence[Shape],
    dtypes: Sequence[str],
) -> list[Tensor]:
    kinds = [jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype)) for shape, dtype in zip(
        shapes, dtypes, strict=True)]

    def call(*arrays: Any) -> list[np.ndarray]:
        results = function(*map(np.asarray, arrays))
        return [array.astype(kind.dtype) for array, kind in zip(results, kinds, strict=True)]

    if any(isinstance(value, jax.core.Tracer) for value in tensors):
        return jax.pure_callback(call, kinds, *tensors)
    return [*map(jnp.asarray, call(*tensors))]  # Errors of the function are its own then.


def scan(step: Callable[[Tree, Tree], Tree], initial: Tree, elements: Tree) -> Tree:
    def body(state: Tree, element: Tree) -> tuple[Tree, Tree]:
        state = step(state, element)
        return state, state

    return jax.lax.scan(body, initial, elements)[1]
