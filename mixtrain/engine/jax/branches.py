"""Tensors that decide an ``if`` or ``while`` of a compiled call: JAX cannot rewrite such lines, and it is said so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from mixtrain.engine.deciding import deciding_code


def with_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function: its lines are not rewritten."""
    return function


def branching(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method: its lines are not rewritten."""
    return method


def call_with_branches(compiled: Callable[..., Any], *args: Any) -> Any:
    """Call a compiled function.

    Args:
        compiled: The compiled function.
        *args: Its arguments.

    Returns:
        Its results.

    Raises:
        TypeError: A tensor decides a branch; the message says where and what to write.
    """
    try:
        return compiled(*args)
    except jax.errors.ConcretizationTypeError as error:
        if not isinstance(error, jax.errors.TracerBoolConversionError):
            raise
        code = deciding_code(error, jax.__file__)
        where = code.co_qualname if code is not None else "a compiled call"
        raise TypeError(
            f"{where}: with the JAX backend, expected a Python value to decide an if or while of a compiled call; got "
            "a tensor. Write ops.select(condition, one, other), run in PYNATIVE_MODE, or set KERAS_BACKEND=tensorflow."
        ) from error
