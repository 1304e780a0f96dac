"""Control flow of compiled functions: a branch, an order of operations, and calls of Python."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.backend.jax.code_paths import reached
from mixtrain.backend.jax.group import spanning
from mixtrain.backend.jax.state import StateScope, current, put
from mixtrain.typing import Tensor, Tree, Variable


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
    yes, no = scopes
    for key, variable in (yes.written | no.written).items():
        value = current(variable)
        put(variable, jnp.where(predicate, yes.state_mapping.get(key, value), no.state_mapping.get(key, value)))


def write_after(tensor: Tensor, function: Callable[[], None], weights: Sequence[Variable]) -> None:
    """Write at once: on JAX variables are written after the whole call."""
    del tensor, weights
    function()


def call_python(function: Callable[..., None], tensors: Sequence[Tensor]) -> None:
    condition = reached()
    if condition is False:
        return
    values = [value.astype(jnp.float32) if value.dtype == jnp.bfloat16 else value for value in tensors]
    if any(isinstance(value, jax.core.Tracer) for value in (condition, *values)):
        # JAX refuses ordered callbacks in a program of several processes.
        jax.debug.callback(functools.partial(_call_if, function), condition, *values, ordered=not spanning())
    else:
        function(*map(np.asarray, values))


def _call_if(function: Callable[..., None], condition: Tensor, *arrays: Tensor) -> None:
    if condition:
        function(*map(np.asarray, arrays))
