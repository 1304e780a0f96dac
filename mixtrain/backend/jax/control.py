"""What a compiled function cannot leave to Python: a branch, an order, and a call of Python while it runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mixtrain.backend.jax.group import spanning
from mixtrain.backend.jax.state import StateScope, current, put
from mixtrain.backend.jax.code_paths import reached


def cond(
    predicate: Any, on_true: Callable[[], Any], on_false: Callable[[], Any], *, writes: Sequence[Any] = ()
) -> None:
    """Run one of two functions for what they write; neither's result is used.

    In a compiled function both are computed, and what each variable holds is chosen number by number: that goes into
    the kernels that compute the numbers, where a branch would make a GPU wait for the host.

    Args:
        predicate: A scalar bool tensor.
        on_true: Run where `predicate` holds.
        on_false: Run where it does not.
        writes: The variables that either function may assign. (What is assigned is seen here.)
    """
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
        before = current(variable)
        put(variable, jnp.where(predicate, yes.state_mapping.get(key, before), no.state_mapping.get(key, before)))


def write_after(tensor: Any, function: Callable[[], None], weights: Sequence[Any]) -> None:
    """Run a function that writes only once a tensor has its value: here variables are written when all is done.

    Args:
        tensor: The tensor.
        function: Updates weights and what goes with them.
        weights: They.
    """
    del tensor, weights
    function()


def call_python(function: Callable[..., None], tensors: Sequence[Any]) -> None:
    """Call a Python function for its effect whenever this place is reached, in a compiled function too.

    Args:
        function: Takes the tensors' values as NumPy arrays (bfloat16 comes as float32); returns nothing.
        tensors: The tensors.
    """
    here = reached()
    if here is False:
        return
    values = [value.astype(jnp.float32) if value.dtype == jnp.bfloat16 else value for value in tensors]
    if any(isinstance(value, jax.core.Tracer) for value in (here, *values)):
        # JAX refuses an order of calls in a program of several processes.
        jax.debug.callback(functools.partial(_call_if, function), here, *values, ordered=not spanning())
    else:
        function(*map(np.asarray, values))


def _call_if(function: Callable[..., None], here: Any, *arrays: Any) -> None:
    if here:
        function(*map(np.asarray, arrays))
