"""`opt_init_args_register`: a decorator that records the constructor arguments of an optimizer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from mixtrain.cell.cell import Cell

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., None])


def opt_init_args_register(fn: _FunctionT) -> _FunctionT:
    """Decorate the ``__init__`` of an optimizer so that the instance records its arguments.

    They are stored as ``init_params`` (a dict with "params"), ``init_learning_rate`` (None for a Cell) and
    ``init_args`` (the others, by name).

    Args: fn: The ``__init__`` method.
    Returns: The decorated method.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> class Descent(nn.Optimizer):
        ...     @opt_init_args_register
        ...     def __init__(self, params, learning_rate, power=1.0):
        ...         super().__init__(learning_rate, params)
        >>> optimizer = Descent([mixtrain.Parameter(1.0, name="w")], 0.5)
        >>> optimizer.init_learning_rate, optimizer.init_args
        (0.5, {'power': 1.0})
    """

    @functools.wraps(fn)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(fn).bind(self, *args, **kwargs)
        bound.apply_defaults()
        arguments = dict(list(bound.arguments.items())[1:])  # Without self.
        recorded: dict[str, Any] = {}
        if "params" in arguments:
            # A generator can be read only once, so the optimizer gets the recorded list.
            if inspect.isgenerator(arguments["params"]):
                bound.arguments["params"] = arguments["params"] = list(arguments["params"])
            recorded["init_params"] = {"params": arguments.pop("params")}
        if "learning_rate" in arguments:
            rate = arguments.pop("learning_rate")
            recorded["init_learning_rate"] = None if isinstance(rate, Cell) else rate
        recorded["init_args"] = arguments
        fn(*bound.args, **bound.kwargs)
        for name, value in recorded.items():
            object.__setattr__(self, name, value)

    # As in MindSpore: projects read from the signature which names an optimizer takes itself.
    init.__signature__ = inspect.signature(lambda self, *args, **kwargs: None)  # type: ignore[attr-defined]
    return init  # type: ignore[return-value]
