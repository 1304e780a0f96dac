"""The door that every function and primitive of this room passes: under an autocast it casts the arguments.

An operator is one whole: its arguments are cast once, as the row of its name says, and inside it nothing more is cast.
Outside any autocast the door is one look at whether there is one.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any, Final

from mixtrain.common.autocast import autocast_in_force, autocasting, is_symbolic

_Function = Callable[..., Any]
_ROOM: Final = __name__.rpartition(".")[0]

# These call functions of the user's, whose operators pass doors of their own.
_OPEN: Final = frozenset({
    "grad", "value_and_grad", "stop_gradient", "partial", "depend", "GradOperation", "HyperMap", "Map",
    "MultitypeFuncGraph", "Partial", "Depend",
})


def through_door(name: str, function: _Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return ``function(*args, **kwargs)``, computed as the autocast in force says of the operator `name`."""
    state = autocast_in_force()
    if state is None or name in _OPEN:
        return function(*args, **kwargs)
    if not is_symbolic((args, kwargs)):
        args, kwargs = state.cast(name, args, kwargs, numpy_as_float32=True)
    with autocasting(None):
        return function(*args, **kwargs)


def door(name: str, function: _Function) -> _Function:
    """Return a function behind its door.

    Args:
        name: The operator's name.
        function: What computes it.

    Example:
        >>> door("double", lambda x: 2 * x)(3)
        6
    """

    @functools.wraps(function)
    def operator(*args: Any, **kwargs: Any) -> Any:
        if autocast_in_force() is None:
            return function(*args, **kwargs)
        return through_door(name, function, args, kwargs)

    return operator


def primitive_door(call: Any) -> _Function:
    """Return the `__call__` of a primitive's class behind its door; the operator's name is that of the class."""
    function = call.__func__ if isinstance(call, staticmethod) else call
    takes_self = not isinstance(call, staticmethod)

    @functools.wraps(function)
    def operator(self: Any, *args: Any, **kwargs: Any) -> Any:
        if autocast_in_force() is None:
            return function(self, *args, **kwargs) if takes_self else function(*args, **kwargs)
        compute = functools.partial(function, self) if takes_self else function
        return through_door(_class_name(type(self)), compute, args, kwargs)

    return operator


def of_this_room(kind: type) -> bool:
    """Say whether a class is one of mixtrain's own operators."""
    return kind.__module__.startswith(_ROOM)


def _class_name(kind: type) -> str:
    """Return the name of the first class of this room that a primitive's class comes from."""
    return next(base.__name__ for base in kind.__mro__ if of_this_room(base))


def doors(functions: dict[str, _Function]) -> dict[str, _Function]:
    """Return functions by name, each behind its door."""
    return {name: door(name, function) for name, function in functions.items()}


def put_doors(names: Iterable[str]) -> None:
    """Put the public functions of this room behind their doors, wherever its files have imported them.

    Called once, when the room is complete: so no function needs a line of its own for it, and none can be forgotten.
    """
    room = vars(sys.modules[_ROOM])
    functions = {
        name: room[name] for name in names if isinstance(room[name], types.FunctionType) and name not in _OPEN
    }
    behind = {id(function): door(name, function) for name, function in functions.items()}
    files = [module for name, module in sys.modules.items() if name == _ROOM or name.startswith(f"{_ROOM}.")]
    for file in files:
        for attribute, value in list(vars(file).items()):
            if id(value) in behind:
                setattr(file, attribute, behind[id(value)])
