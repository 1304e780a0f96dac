"""Functions and options of MindSpore's compiler that have no effect here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from mixtrain import checks
from mixtrain.boundary import is_any_tensor
from mixtrain.context import set_context
from mixtrain.lazy_names import serve_names
from mixtrain.typing import Tree

# How much of Python's syntax a compiled function may use; there is no difference here.
STRICT: Final = 0
COMPATIBLE: Final = 1
LAX: Final = 2


def set_deterministic(deterministic: bool) -> None:
    """Set ``set_context(deterministic=...)``, which has no effect.

    Args:
        deterministic: True or False. Steps on a CPU are deterministic either way.

    Example:
        >>> import mixtrain
        >>> mixtrain.set_deterministic(True)
        >>> mixtrain.get_context("deterministic")
        'ON'
    """
    set_context(deterministic="ON" if checks.boolean("set_deterministic", "deterministic", deterministic) else "OFF")


def set_recursion_limit(recursion_limit: int = 10000) -> None:
    """Set the maximum depth of nested calls, which is Python's own recursion limit.

    Args:
        recursion_limit: The number of calls, at least 1.

    Example:
        >>> import mixtrain, sys
        >>> mixtrain.set_recursion_limit(sys.getrecursionlimit())
    """
    sys.setrecursionlimit(
        checks.integer("set_recursion_limit", "recursion_limit", recursion_limit, at_least=1, example=10000)
    )


def jit_class(cls: type) -> type:
    """Return the class unchanged: compiled functions may use any class.

    Args:
        cls: A class.

    Example:
        >>> import mixtrain
        >>> @mixtrain.jit_class
        ... class Twice:
        ...     def __call__(self, x):
        ...         return 2 * x
        >>> Twice()(3)
        6
    """
    if not isinstance(cls, type):
        raise checks.fail_type("jit_class", "cls must be a class", cls, "@mixtrain.jit_class")
    return cls


ms_class = jit_class


def mutable(input_data: Tree, dynamic_len: bool = False) -> Tree:
    """Return `input_data` unchanged: tensors among arguments are never constants here.

    Args:
        input_data: Tensors, or tuples, lists and dicts of them.
        dynamic_len: Accepted for MindSpore scripts; only of a tuple or list.

    Raises:
        TypeError: A part of it is none of these, nor a number.

    Example: ``mixtrain.mutable((x, y))``.
    """
    if not _may_vary(input_data):
        raise checks.fail_type(
            "mutable", "input_data must be numbers and Tensors, or tuples, lists and dicts of them", input_data,
            "mutable((x, y))",
        )
    if checks.boolean("mutable", "dynamic_len", dynamic_len):
        checks.instance("mutable", "input_data with dynamic_len", input_data, (tuple, list), "mutable((x, y), True)")
    return input_data


def _may_vary(value: Any) -> bool:
    if isinstance(value, (tuple, list, dict)):
        return all(map(_may_vary, value.values() if isinstance(value, dict) else value))
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic) or is_any_tensor(value)


def _identity_decorator(name: str, reason: str) -> Callable[..., Any]:
    def decorator(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
        return (lambda function: function) if fn is None else fn

    decorator.__name__ = decorator.__qualname__ = name
    decorator.__doc__ = (
        f"Return `fn` unchanged: {reason}; `options` are accepted. Example: ``@mixtrain.{name}``."
    )
    return decorator


no_inline: Final = _identity_decorator("no_inline", "the backend decides what is inlined")
lazy_inline: Final = _identity_decorator("lazy_inline", "the backend decides what is inlined")


def recompute(block: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return ``block(*args, **kwargs)``; activations are kept for the gradients, not recomputed.

    Args:
        block: A Cell or a function.
        args: Its arguments.
        kwargs: Its named arguments.

    Example: ``y = mixtrain.recompute(block, x)``.
    """
    return block(*args, **kwargs)


class JitConfig:
    """Options of MindSpore's compiler; they have no effect here.

    Args:
        jit_level: "O0", "O1" or "O2".
        exc_mode: Accepted for MindSpore scripts.
        jit_syntax_level: Accepted for MindSpore scripts.
        **kwargs: Likewise.

    Example: ``net.set_jit_config(JitConfig("O1"))``.
    """

    def __init__(self, jit_level: str = "", exc_mode: str = "auto", jit_syntax_level: str = "", **kwargs: Any) -> None:
        self.jit_config_dict = {
            "jit_level": jit_level, "exc_mode": exc_mode, "jit_syntax_level": jit_syntax_level, **kwargs,
        }


def launch_blocking() -> None:
    """Do nothing: eager operations raise where they are called.

    Example: ``mixtrain.runtime.launch_blocking()``.
    """


serve_names(__name__)
