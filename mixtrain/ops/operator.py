"""Dispatch of the functions and primitives of this package: `operator`.

An operator takes Tensors, backend tensors, NumPy arrays and numbers. Its Tensors are unwrapped, its float arguments are
cast by the autocast rule of its name, and its results are wrapped if the caller uses Tensors. The operations inside it
compute on backend tensors without autocast.

The dispatch is by name, not by function: the lists of autocast are names, which a script may print and extend, one name
may be a function, a method and a primitive, and an error says the name that the script wrote.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from mixtrain.autocast.state import autocast_in_force, autocasting, is_symbolic
from mixtrain.boundary import run_library
from mixtrain.ops import views
from mixtrain.ops.call_errors import CONVERTED_ERRORS, raise_explained
from mixtrain.ops.call_keywords import renamed
from mixtrain.ops.writes import writes, writing

_Function = Callable[..., Any]
_PACKAGE: Final = __name__.rpartition(".")[0]

# These call functions of the user, whose operators are dispatched one by one, or return what they take.
_OPEN: Final = frozenset({
    "grad", "value_and_grad", "partial", "depend", "GradOperation", "HyperMap", "Map",
    "MultitypeFuncGraph", "Partial", "Depend", "HookBackward", "InsertGradientOf", "Morph", "constexpr", "get_grad",
    "Custom", "vmap", "jvp", "vjp", "jacfwd", "jacrev", "linearize", "derivative", "jet",
    "prim_attr_register", "prim_arg_register", "identity",
})


def dispatch(name: str, function: _Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``function(*args, **kwargs)`` as the operator `name`: unwrapped, cast, computed and wrapped."""
    if autocast_in_force() is None:
        return run_library(function, args, kwargs)
    return run_library(functools.partial(_under_autocast, name, function), args, kwargs)


def _under_autocast(name: str, function: _Function, *args: Any, **kwargs: Any) -> Any:
    state = autocast_in_force()
    if state is not None and not is_symbolic((args, kwargs)):
        args, kwargs = state.cast(name, args, kwargs, numpy_as_float32=True)
    with autocasting(None):
        return function(*args, **kwargs)


def operator(name: str, function: _Function, *, owner: str = "ops") -> _Function:
    """Return a function as the operator `name`; `owner` is what of mixtrain has it, for error messages.

    Example:
        >>> operator("double", lambda x: 2 * x)(3)
        6
    """

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            # The fast path of `dispatch`, without its call.
            if autocast_in_force() is None:
                return run_library(function, args, kwargs)
            return dispatch(name, function, args, kwargs)
        except CONVERTED_ERRORS as error:
            raise_explained(f"{owner}.{name}", args, kwargs, error)

    if owner == "ops" and writes(name):
        return functools.wraps(function)(lambda *args, **kwargs: writing(call, args, kwargs))
    if name not in (views.METHOD_VIEWS if owner == "Tensor" else views.VIEWS):
        return call

    @functools.wraps(function)
    def call_view(*args: Any, **kwargs: Any) -> Any:
        return views.recorded(call, call(*args, **kwargs), args, kwargs)

    return call_view


tensor_method: Final = functools.partial(operator, owner="Tensor")


def primitive_call(call: Callable[..., Any]) -> _Function:
    """Return the `__call__` of a primitive's class as an operator; its name is that of the class."""
    function = call.__func__ if isinstance(call, staticmethod) else call
    takes_self = not isinstance(call, staticmethod)

    @functools.wraps(function)
    def operator(self: Any, *args: Any, **kwargs: Any) -> Any:
        compute = functools.partial(function, self) if takes_self else function
        name = _class_name(self.__class__)
        if name in _OPEN:
            return compute(*args, **kwargs)
        if kwargs:
            args, kwargs = renamed(name, args, kwargs)
        try:
            if writes(name):
                return writing(lambda *args, **kwargs: dispatch(name, compute, args, kwargs), args, kwargs)
            result = dispatch(name, compute, args, kwargs)
        except CONVERTED_ERRORS as error:
            raise_explained(f"ops.{name}", args, kwargs, error)
        return views.recorded(compute, result, args, kwargs) if name in views.VIEWS else result

    if not takes_self:
        signature = inspect.signature(function)
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        operator.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[own, *signature.parameters.values()]
        )
    return operator


def of_this_package(kind: type) -> bool:
    """Whether a class is one of mixtrain's own operators."""
    return kind.__module__.startswith(_PACKAGE)


@functools.lru_cache(maxsize=1024)
def _class_name(kind: type) -> str:
    """Return the name of a primitive's class, or for a user's subclass that of its base in this package."""
    return next(base.__name__ for base in kind.__mro__ if of_this_package(base))


def operators(functions: Mapping[str, Any], names: Iterable[str]) -> dict[str, _Function]:
    """Return the functions of some names as operators.

    The package shows these. Its modules call each other's functions as they are: on backend tensors, without autocast.
    """
    return {
        name: operator(name, functions[name]) for name in names
        if isinstance(functions[name], types.FunctionType) and name not in _OPEN
    }
