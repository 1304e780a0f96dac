"""The forward pass that a gradient repeats: a network's state moves once, although the network runs twice.

Train cells of scripts run ``loss = self.network(x)`` and then ``self.grad(self.network, weights)(x)``, which runs the
network again. MindSpore computes it once: compiled, equal calls are one, and PyNative mode differentiates the recorded
call. Here it runs twice, and XLA or TensorFlow may merge what is equal; but moving statistics and random states, which
the first call moved, must not move again.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import keras

from mixtrain import backend
from mixtrain.boundary import UserTensor


class _LastCall:
    """The last call of a network: its inputs, which it does not keep alive, and its mode.

    `state`: Returns the variables that a call may write.
    """

    def __init__(self, state: Callable[[], Iterable[keras.Variable]]) -> None:
        # One for all traces: in TensorFlow, a trace that meets an unexpected write is retraced and then expects it.
        self.rollback = backend.Rollback(state)
        self.inputs: tuple[Any, ...] = ()
        self.training = False
        self.differentiating = False

    def note(self, network: Any, inputs: Sequence[Any]) -> None:
        """Take the inputs of a call, and the network's mode."""
        self.inputs = tuple(weakref.ref(value) if isinstance(value, UserTensor) else value for value in inputs)
        self.training = network.training

    def is_of(self, inputs: Sequence[Any], training: bool) -> bool:
        """Whether the call had these very inputs, in this mode."""
        called = [value() if isinstance(value, weakref.ref) else value for value in self.inputs]
        return (
            training == self.training
            and len(called) == len(inputs)
            and any(isinstance(value, UserTensor) for value in called)
            and all(one is other for one, other in zip(called, inputs, strict=True))
        )


_last_calls: weakref.WeakKeyDictionary[Any, _LastCall] = weakref.WeakKeyDictionary()


def note_forward(network: Any, inputs: Sequence[Any], state: Callable[[], Iterable[keras.Variable]]) -> None:
    """Record that a network has run on `inputs`, as its caller passed them.

    `state` returns the variables that the call may have written; it must not refer to the network.
    """
    call = _last_calls.get(network)
    if call is None:
        call = _last_calls[network] = _LastCall(state)
    if not call.differentiating:
        call.note(network, inputs)


@contextlib.contextmanager
def noting_forward(network: Any) -> Iterator[None]:
    """Run a block in which a cell notes its calls, as one does that was told of gradients by `set_grad`."""
    if not hasattr(network, "requires_grad"):
        yield
        return
    told, network.requires_grad = network.requires_grad, True
    try:
        yield
    finally:
        network.requires_grad = told


def repeat_forward(network: Any, inputs: Sequence[Any]) -> None:
    """Have the next gradient of a network that has run on `inputs` before count as that of the same call."""
    call = _last_calls.get(network) if hasattr(network, "requires_grad") else None
    if call is not None:
        call.note(network, inputs)


def run_gradient(network: Any, inputs: Sequence[Any], gradient: Callable[[], Any]) -> Any:
    """Compute a gradient; if its network has just run on the same inputs, undo what the second run writes.

    `network` is a cell, or a function, of which no call is recorded; `gradient` runs and differentiates it.
    """
    # Cells have `requires_grad`; not every function can be a weak key.
    call = _last_calls.get(network) if hasattr(network, "requires_grad") else None
    if call is None or not call.is_of(inputs, network.training):
        return gradient()
    call.inputs = ()  # A call is repeated once: a later gradient of the same inputs is a step of its own.
    call.differentiating = True
    try:
        with call.rollback.recorded() as undo:
            result = gradient()
    finally:
        call.differentiating = False
    undo()
    return result
