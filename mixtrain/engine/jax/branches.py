"""Tensors that decide an ``if`` or ``while`` of a compiled call: what cannot be traced in all ways is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from mixtrain.engine.deciding import deciding_code
from mixtrain.engine.jax.ways import decisions


def with_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function: it is traced in all ways, as it is."""
    return function


def branching(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method: it is traced in all ways, as it is."""
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
            f"{where}: with the JAX backend, expected a Python value to decide a while of a compiled call, the last of "
            "many ifs, or one inside a loop of JAX's; got a tensor. Write ops.select(condition, one, other), run in "
            "PYNATIVE_MODE, or set KERAS_BACKEND=tensorflow."
        ) from error


def tensor_decided() -> bool:
    """Say whether results of Python's own may differ with what a tensor decided, and must become tensors."""
    return bool(decisions())
