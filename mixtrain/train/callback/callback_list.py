"""`CallbackList`: the callbacks of one run, told in order; those that do not listen cost nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, get_args

import keras

from mixtrain import checks
from mixtrain.step.train_cell import NON_FINITE, Need
from mixtrain.train.callback.callback import HOOKS, Callback, declares_observing
from mixtrain.train.callback.keras_adapter import KerasCallbackAdapter, added_to_logs, keras_params
from mixtrain.train.run_context import CallbackArguments, RunContext

_ListT = TypeVar("_ListT", bound="CallbackList")
_ResultT = TypeVar("_ResultT")


@dataclasses.dataclass(frozen=True)
class Listener:
    """One callback's interest in one hook.

    Attributes:
        callback: Name of the callback's class.
        method: Name of the method that is called.
        call: The method.
        older_name: Whether it is one of the names that training and evaluation share.
        owner: The callback, as the list holds it.
    """

    callback: str
    method: str
    call: Callable[[RunContext], None]
    older_name: bool
    owner: Callback


_STEP_HOOKS = ("on_train_step_begin", "on_train_step_end")


class CallbackList:
    """Tells callbacks about a run, in the order given; a context manager around the run.

    Args:
        callbacks: None, a callback, or an iterable of them, mixtrain's and Keras's in any order.
        arguments: The state of the run.

    Attributes:
        controls: Whether a callback needs control between any two steps.
        hear_of_overflows: Whether a callback listens to `on_train_overflow`.

    Raises:
        TypeError: One is no callback.

    Example:
        >>> class Greet(Callback):
        ...     def on_train_begin(self, run_context):
        ...         print("hello")
        >>> arguments = CallbackArguments(mode="train")
        >>> with CallbackList([Greet()], arguments) as callbacks:
        ...     callbacks.on_train_begin(RunContext(arguments))
        hello
    """

    def __init__(self, callbacks: Any = None, arguments: CallbackArguments | None = None) -> None:
        self._arguments = CallbackArguments() if arguments is None else arguments
        self._arguments._set(list_callback=self)
        self._callbacks = [self._adapted(callback) for callback in _listed(callbacks)]
        self._stack = contextlib.ExitStack()
        self._between_epochs = False
        self._listen()

    def _adapted(self, callback: Any) -> Callback:
        if isinstance(callback, keras.callbacks.Callback):
            return KerasCallbackAdapter(callback, self._arguments)
        return callback  # type: ignore[no-any-return]

    def _listen(self) -> None:
        found = {hook: [_listener(callback, hook) for callback in self._callbacks] for hook in HOOKS}
        self._listeners = {hook: [one for one in listeners if one is not None] for hook, listeners in found.items()}
        rows = zip(self._callbacks, *(found[hook] for hook in _STEP_HOOKS), strict=True)
        self._watchers = [callback for callback, *listeners in rows if any(listeners)]
        steps = [one for hook in _STEP_HOOKS for one in self._listeners[hook]]
        self._look_beyond = not all(_is_ours(listener.call) for listener in steps)
        # Known once and for all, so that the question costs nothing in every step.
        self.controls = any(
            type(callback).free_steps is Callback.free_steps and not declares_observing(callback)
            for callback in self._watchers
        )

        overriding = [one for one in self._callbacks if type(one).on_train_overflow is not Callback.on_train_overflow]
        self._listeners["on_train_overflow"] = [
            Listener(type(one).__name__, "on_train_overflow", one.on_train_overflow, False, one) for one in overriding
        ]
        self.hear_of_overflows = bool(overriding)
        self._samplers = [one for one in self._callbacks if one.sample_every is not None]

    def __enter__(self: _ListT) -> _ListT:
        with contextlib.ExitStack() as stack:
            entered = [stack.enter_context(callback) for callback in self._callbacks]
            self._stack = stack.pop_all()
        self._callbacks = [
            target if isinstance(target, Callback) else callback
            for target, callback in zip(entered, self._callbacks, strict=True)
        ]
        self._listen()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._stack.__exit__(*error)

    def __iter__(self) -> Iterator[Any]:
        """Yield the callbacks as they were given."""
        return (getattr(callback, "keras_callback", callback) for callback in self._callbacks)

    def __len__(self) -> int:
        return len(self._callbacks)

    def free_steps(self, run_context: RunContext) -> float:
        """Return how many steps may run from here before one of them needs control; `math.inf` where none does."""
        if self.controls:
            return 1
        return min((callback.free_steps(run_context) for callback in self._watchers), default=math.inf)

    def steps_to_sample(self, done: int) -> float:
        """Return how many steps run, after `done`, before one that a callback samples; `math.inf` where none does."""
        return min((-done % one.sample_every for one in self._samplers), default=math.inf)  # type: ignore[operator]

    @property
    def needs(self) -> frozenset[str]:
        """What is read of steps beside scalars, by step hooks and to know why one overflowed.

        Raises:
            ValueError: A callback needs something else.
        """
        for callback in self._watchers:
            if isinstance(callback.needs, str) or not set(callback.needs) <= set(get_args(Need)):
                raise checks.fail_value(
                    type(callback).__name__, f"needs must be a set with some of {checks.listed(get_args(Need))}",
                    callback.needs, 'needs = {"gradients"}',
                )
        of_steps = frozenset(need for callback in self._watchers for need in callback.needs)
        return of_steps | {NON_FINITE} if self.hear_of_overflows else of_steps

    @property
    def one_step_calls(self) -> bool:
        """Whether a step hook must be called for each step, with sink feed too.

        Predictions of several batches need not have one shape, and are told batch by batch.
        """
        return "predictions" in self.needs or any(callback.one_step_calls for callback in self._watchers)

    @property
    def look_beyond(self) -> bool:
        """Whether a step hook may look at more than the arguments, as at an optimizer: all but those of mixtrain's."""
        return self._look_beyond

    def listens(self, hook: str) -> bool:
        """Whether somebody listens to a hook, by its name (``"on_train_step_end"``)."""
        return bool(self._listeners[hook])

    def keras_listens(self, hook: str) -> bool:
        """Whether a Keras callback listens to a hook."""
        return any(isinstance(listener.owner, KerasCallbackAdapter) for listener in self._listeners[hook])

    def keras_params(self) -> dict[str, Any]:
        """Return what Keras callbacks see of the run as `params`."""
        return keras_params(self._arguments)

    def added_to_logs(self) -> dict[str, Any]:
        """Return what Keras callbacks have added to the logs of the epoch, such as "learning_rate"."""
        return added_to_logs(self._arguments)

    def evaluating(
        self, evaluate: Callable[[CallbackList, RunContext, CallbackArguments], _ResultT], **fields: Any
    ) -> _ResultT:
        """Run an evaluation between epochs: ``on_eval_...`` hooks with the run's own arguments in eval mode.

        A stop that is requested in it ends it alone, and hooks of the older names are left out, for they mean training.

        Args:
            evaluate: Called with this list, a fresh context, and the arguments.
            **fields: Fields of the arguments that hold while it runs.

        Returns:
            What `evaluate` returns.
        """
        self._between_epochs = True
        try:
            with self._arguments._lent(**{"mode": "eval", "cur_step_num": 0, **fields}):
                return evaluate(self, RunContext(self._arguments), self._arguments)
        finally:
            self._between_epochs = False

    def _tell(self, hook: str, run_context: RunContext) -> None:
        for listener in self._listeners[hook]:
            if listener.older_name and self._between_epochs:
                continue
            try:
                listener.call(run_context)
            except Exception as error:
                error.add_note(f"Raised by the callback {listener.callback} in {listener.method}.")
                raise

    # ---- training ---------------------------------------------------------------------------------------------
    def on_train_begin(self, run_context: RunContext) -> None:
        """Tell that training begins."""
        self._tell("on_train_begin", run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Tell that an epoch begins."""
        self._tell("on_train_epoch_begin", run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Tell that a step, or call, begins."""
        self._tell("on_train_step_begin", run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Tell that a step, or call, ended."""
        self._tell("on_train_step_end", run_context)

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Tell that an epoch ended."""
        self._tell("on_train_epoch_end", run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Tell that training ended."""
        self._tell("on_train_end", run_context)

    def on_train_overflow(self, run_context: RunContext) -> None:
        """Tell that a step overflowed and was skipped."""
        self._tell("on_train_overflow", run_context)

    def on_train_sample(self, run_context: RunContext) -> None:
        """Tell those whose step it is that a batch is about to be trained on."""
        done = run_context.original_args().cur_step_num - 1
        for one in self._samplers:
            if done % one.sample_every == 0:  # type: ignore[operator]
                one.on_train_sample(run_context)

    # ---- evaluation -------------------------------------------------------------------------------------------
    def on_eval_begin(self, run_context: RunContext) -> None:
        """Tell that an evaluation begins."""
        self._tell("on_eval_begin", run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Tell that the data of an evaluation is about to be gone through."""
        self._tell("on_eval_epoch_begin", run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Tell that an evaluation step begins."""
        self._tell("on_eval_step_begin", run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Tell that an evaluation step ended."""
        self._tell("on_eval_step_end", run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Tell that the data of an evaluation was gone through."""
        self._tell("on_eval_epoch_end", run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Tell that an evaluation ended."""
        self._tell("on_eval_end", run_context)


def _listed(callbacks: Any) -> list[Any]:
    write = "callbacks=[LossMonitor(), keras.callbacks.EarlyStopping()]"
    if callbacks is None:
        return []
    if isinstance(callbacks, (Callback, keras.callbacks.Callback)):
        return [callbacks]
    if not isinstance(callbacks, Iterable):
        raise checks.fail_type("callbacks", "it must be a callback or a list of them", callbacks, write)
    listed = list(callbacks)
    for callback in listed:
        checks.instance("callbacks", "each", callback, (Callback, keras.callbacks.Callback), write)
    return listed


def _is_ours(hook: Callable[[RunContext], None]) -> bool:
    """Whether a hook is a method that mixtrain defines."""
    return str(getattr(hook, "__module__", "")).startswith("mixtrain.")


def _listener(callback: Callback, hook: str) -> Listener | None:
    """Return how a callback listens to a hook, or None where it overrides neither it nor its older name."""
    for method in (hook, HOOKS[hook]):
        call = getattr(callback, method)
        if getattr(call, "__func__", None) is not getattr(Callback, method):
            name, shown = type(callback).__name__, method
            if isinstance(callback, KerasCallbackAdapter):
                name, shown = type(callback.keras_callback).__name__, callback.keras_methods[hook]
            return Listener(name, shown, call, method != hook, callback)
    return None
