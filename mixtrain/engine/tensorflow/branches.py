"""Tensors that decide an ``if`` or ``while`` of a compiled call: their lines are rewritten for the graph."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from mixtrain.engine.deciding import deciding_code

# Rewriting everything would slow compilation down and change what a traceback shows, so only methods in which a
# tensor was seen to decide are rewritten; `_needed` remembers them.
_needed: set[types.CodeType] = set()
_rewritten: dict[Callable[..., Any], Callable[..., Any]] = {}


def with_branches(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose ``if``, ``while`` and ``for`` may depend on tensors when it is compiled.

    Args:
        function: A plain Python function or method; only its own lines are rewritten, not those of what it calls.

    Returns:
        The rewritten function, or `function` itself where its source cannot be read.
    """
    if isinstance(function, types.MethodType):
        return types.MethodType(with_branches(function.__func__), function.__self__)
    if not isinstance(function, types.FunctionType) or inspect.isgeneratorfunction(function):
        return function
    try:
        inspect.getsource(function)
        return tf.autograph.to_graph(function, recursive=False)  # type: ignore[no-any-return]
    except Exception:  # AutoGraph's own errors have no public class.
        return function


def branching(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method, rewritten if a tensor was seen to decide a branch in it and the call is being compiled."""
    if not _needed or tf.executing_eagerly():
        return method
    function = getattr(method, "__func__", None)
    if function is None or function.__code__ not in _needed:
        return method
    if function not in _rewritten:
        _rewritten[function] = with_branches(function)
    return types.MethodType(_rewritten[function], method.__self__)  # type: ignore[attr-defined]


def call_with_branches(compiled: Callable[..., Any], *args: Any) -> Any:
    """Call a compiled function; where a tensor decides a branch in a method of the user's, rewrite it and try again.

    A call that fails so has only been traced: nothing has run.

    Args:
        compiled: The compiled function.
        *args: Its arguments.

    Returns:
        Its results.

    Raises:
        TypeError: A tensor decides a branch that cannot be rewritten; the message says where and what to write.
    """
    while True:
        try:
            return compiled(*args)
        except tf.errors.OperatorNotAllowedInGraphError as error:
            code = deciding_code(error, tf.__file__)
            if code is None or code in _needed:
                raise _cannot(code) from error
            _needed.add(code)


def tensor_decided() -> bool:
    """Say whether results of Python's own may differ with what a tensor decides: here they have become tensors."""
    return False


def _cannot(code: types.CodeType | None) -> TypeError:
    where = code.co_qualname if code is not None else "a compiled call"
    return TypeError(
        f"{where}: expected a Python value to decide an if or while of a compiled call; got a tensor, in code that "
        "is not rewritten. Write the branch in construct or in a function under @mixtrain.jit, whose source can be "
        "read, or ops.select(condition, one, other), or run in PYNATIVE_MODE."
    )
