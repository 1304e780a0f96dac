"""Tensors that decide an ``if`` or ``while`` of a compiled call: errors where not all paths can be traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import keras

from mixtrain.backend.jax.code_paths import decisions
from mixtrain.backend.user_code import deciding_code


def with_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return it as it is: it is traced along all paths."""
    return function


def branching(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return it as it is: it is traced along all paths."""
    return method


def call_with_branches(compiled: Callable[..., Any], *args: Any) -> Any:
    try:
        return compiled(*args)
    except (jax.errors.ConcretizationTypeError, AttributeError, IndexError) as caught:
        # Keras fails with an AttributeError when it adds a layer's arguments to an error of JAX.
        error = _jax_error(caught)
        if not isinstance(error, jax.errors.TracerBoolConversionError):
            refusal = None if error is None else _value_needed(error)
            if refusal is None:
                raise
            raise refusal from error
        code = deciding_code(error, jax.__file__)
        where = code.co_qualname if code is not None else "a compiled call"
        raise TypeError(
            f"{where}: with the JAX backend, expected a Python value to decide a while of a compiled call, the last of "
            "many ifs, or one inside a loop of JAX's; got a tensor. Write ops.select(condition, one, other), run in "
            "PYNATIVE_MODE, or set KERAS_BACKEND=tensorflow."
        ) from error


def _jax_error(error: BaseException | None) -> BaseException | None:
    """Return JAX's error that a tensor has no value yet from the context of an error; None without one."""
    jax_error = None
    while error is not None:
        is_index_error = isinstance(error, IndexError) and "static integers" in str(error)
        if is_index_error or isinstance(error, jax.errors.ConcretizationTypeError):
            jax_error = error
        error = error.__context__
    return jax_error


def _value_needed(error: BaseException) -> TypeError | None:
    """Return the error for the innermost Keras layer that needs the value of a tensor; None where there is none."""
    layer, trace = None, error.__traceback__
    while trace is not None:
        caller = trace.tb_frame.f_locals.get("self")
        layer = caller if isinstance(caller, keras.Layer) else layer
        trace = trace.tb_next
    if layer is None:
        return None
    return TypeError(
        f"{layer.name} ({type(layer).__name__}): with the JAX backend, expected a layer that computes without the "
        "values of tensors in Python while a step is compiled; got one that asks for them, as int(tensor) does. Write "
        "its work into the data set, run in PYNATIVE_MODE, or set KERAS_BACKEND=tensorflow."
    )


def tensor_decided() -> bool:
    return bool(decisions())
