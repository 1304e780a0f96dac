"""`opt_init_args_register`: a decorator that remembers what an optimizer was made with."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from mixtrain.cell.cell import Cell

_FunctionT = TypeVar("_FunctionT", bound=Callable[..., None])


def opt_init_args_register(fn: _FunctionT) -> _FunctionT:
    """Decorate the ``__init__`` of an optimizer so that the object keeps its arguments.

    They are found as ``init_params`` (a dict with "params"), ``init_learning_rate`` (None for a Cell) and ``init_args``
    (the others, by name).

    Args:
        fn: The ``__init__``.

    Returns:
        The decorated one.

    Example:
        >>> import mixtrain, mixtrain.nn as nn
        >>> class Descent(nn.Optimizer):
        ...     @opt_init_args_register
        ...     def __init__(self, params, learning_rate, power=1.0):
        ...         super().__init__(learning_rate, params)
        >>> optimizer = Descent([mixtrain.Parameter(1.0, name="w")], 0.5)
        >>> optimizer.init_learning_rate, optimizer.init_args
        (0.5, {'power': 1.0})

    Source: MindSpore, `mindspore.nn.optim.optimizer.opt_init_args_register`.
    """

    @functools.wraps(fn)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(fn).bind(self, *args, **kwargs)
        bound.apply_defaults()
        given = dict(list(bound.arguments.items())[1:])
        kept: dict[str, Any] = {}
        if "params" in given:
            # A generator is read once: the optimizer gets the list that is kept.
            if inspect.isgenerator(given["params"]):
                bound.arguments["params"] = given["params"] = list(given["params"])
            kept["init_params"] = {"params": given.pop("params")}
        if "learning_rate" in given:
            rate = given.pop("learning_rate")
            kept["init_learning_rate"] = None if isinstance(rate, Cell) else rate
        kept["init_args"] = given
        fn(*bound.args, **bound.kwargs)
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    return init  # type: ignore[return-value]
