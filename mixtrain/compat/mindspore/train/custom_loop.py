"""What scripts with a loop of their own import to call callbacks: the state of a run as a dict, a list of callbacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from mixtrain import backend, checks
from mixtrain.boundary import UserTensor
from mixtrain.lazy_names import serve_names
from mixtrain.train.callback.callback import HOOKS, Callback
from mixtrain.train.run_context import RunContext
from mixtrain.typing import Network, Tree

__all__ = ["CallbackManager", "InternalCallbackParam", "handle_loss", "set_cur_net"]


class InternalCallbackParam(dict[str, Any]):
    """The state of a run that a script keeps itself: a dict whose items are attributes, too.

    Example: ``cb_params.cur_step_num = 3``.
    """

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            write = f'cb_params.{name} = ... before, or cb_params.get("{name}")'
            raise AttributeError(f"cb_params.{name}: the script has not set it. Write {write}.") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class CallbackManager:
    """Calls each hook of several callbacks, in order, for a script that calls the hooks itself.

    Example: ``CallbackManager([LossMonitor()]).on_train_begin(run_context)``.
    """

    def __init__(self, callbacks: Callback | Sequence[Callback] | None) -> None:
        items = [callbacks] if isinstance(callbacks, Callback) else callbacks or []
        self._callbacks = [
            checks.instance("CallbackManager", "each", item, Callback, "[LossMonitor(), TimeMonitor()]")
            for item in items
        ]

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for callback in self._callbacks:
                stack.enter_context(callback)
            self._entered = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._entered.__exit__(*error)


def _hook(name: str) -> Callable[[CallbackManager, RunContext], None]:
    """Return the method that calls the hook `name` of each callback."""

    def call(self: CallbackManager, run_context: RunContext) -> None:
        for callback in self._callbacks:
            getattr(callback, name)(run_context)

    call.__name__, call.__doc__ = name, f"Call `{name}` of each callback."
    return call


for _name in {**HOOKS, **dict.fromkeys(HOOKS.values())}:
    setattr(CallbackManager, _name, _hook(_name))


def set_cur_net(net: Network) -> None:
    """Do nothing: checkpoints are written from the network that a callback is given.

    Example: ``set_cur_net(cb_params.train_network)``.
    """


def handle_loss(loss: Tree) -> Any:
    """Return the loss of a step's outputs: the mean of a Tensor as a float, or the first Tensor of several.

    Example: ``handle_loss((loss, overflow, scale))``.
    """
    if isinstance(loss, (tuple, list)):
        return loss[0] if isinstance(loss[0], UserTensor) else loss
    return float(np.mean(backend.to_numpy(loss))) if isinstance(loss, UserTensor) else loss


# The names that scripts import.
_CallbackManager, _InternalCallbackParam, _set_cur_net, _handle_loss = (
    CallbackManager, InternalCallbackParam, set_cur_net, handle_loss
)


serve_names(__name__)
