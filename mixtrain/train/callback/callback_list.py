"""`CallbackList`: calls the callbacks of a run in order; hooks that are not overridden cost nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, get_args

import keras

from mixtrain import checks
from mixtrain.step.train_step import NON_FINITE, Need
from mixtrain.train.callback.callback import HOOKS, Callback, CallbacksLike, declares_observing
from mixtrain.train.callback.keras_adapter import KerasCallbackAdapter
from mixtrain.train.run_context import CallbackArguments, RunContext

_ListT = TypeVar("_ListT", bound="CallbackList")
_ResultT = TypeVar("_ResultT")


@dataclasses.dataclass(frozen=True)
class Listener:
    """The method of one callback that is called for one hook.

    `callback` and `method` are names. `legacy`: Whether training and evaluation share the hook. `owner`: The callback
    in the list.
    """

    callback: str
    method: str
    call: Callable[[RunContext], None]
    legacy: bool
    owner: Callback


_STEP_HOOKS = ("on_train_step_begin", "on_train_step_end")


def _hook(name: str, when: str) -> Callable[[CallbackList, RunContext], None]:
    """Return the method of a `CallbackList` that calls the hook `name` of its callbacks."""

    def call(self: CallbackList, run_context: RunContext) -> None:
        for listener in self._listeners[name]:
            if listener.legacy and self._between_epochs:
                continue
            try:
                listener.call(run_context)
            except Exception as error:
                error.add_note(f"Raised by the callback {listener.callback} in {listener.method}.")
                raise

    call.__name__, call.__qualname__, call.__doc__ = name, f"CallbackList.{name}", f"Call the hook {when}."
    return call


class CallbackList:
    """Calls the hooks of several callbacks, in order; a context manager around the run.

    Args:
        callbacks: None, a callback, or an iterable of callbacks of mixtrain and Keras, in any order.
        arguments: The state of the run.

    Attributes:
        needs_control: Whether a callback needs control between any two steps.
        has_overflow_hooks: Whether a callback overrides `on_train_overflow`.
        beyond_steps: The names of the callbacks that may read more than what steps returned, such as the weights.
        reads_beyond_arguments: Whether a step hook may read more than the arguments, such as the optimizer. Those of
            mixtrain's own callbacks do not.

    Raises: TypeError if an item is not a callback.

    Example: ``with CallbackList([callback], arguments) as callbacks: callbacks.on_train_begin(RunContext(arguments))``.
    """

    def __init__(self, callbacks: CallbacksLike | None = None, arguments: CallbackArguments | None = None) -> None:
        self._arguments = CallbackArguments() if arguments is None else arguments
        self._arguments._set(list_callback=self)
        self._callbacks: list[Callback] = [
            KerasCallbackAdapter(item, self._arguments) if isinstance(item, keras.callbacks.Callback) else item
            for item in _as_list(callbacks)
        ]
        self._stack = contextlib.ExitStack()
        self._between_epochs = False
        self._find_listeners()

    def _find_listeners(self) -> None:
        self._listeners = {
            hook: [listener for callback in self._callbacks if (listener := _listener(callback, hook)) is not None]
            for hook in HOOKS
        }
        step_listeners = [listener for hook in _STEP_HOOKS for listener in self._listeners[hook]]
        step_owners = {id(listener.owner) for listener in step_listeners}
        self._step_callbacks = [callback for callback in self._callbacks if id(callback) in step_owners]
        self.reads_beyond_arguments = not all(_is_ours(listener.call) for listener in step_listeners)
        # Computed once, because the loop reads it before every step.
        self.needs_control = any(
            type(callback).free_steps is Callback.free_steps and not declares_observing(callback)
            for callback in self._step_callbacks
        )
        self.beyond_steps = [
            type(callback).__name__ for callback in self._callbacks
            if not declares_observing(callback) or type(callback).free_steps is not Callback.free_steps
        ]
        self._listeners["on_train_overflow"] = [
            Listener(type(callback).__name__, "on_train_overflow", callback.on_train_overflow, False, callback)
            for callback in self._callbacks
            if type(callback).on_train_overflow is not Callback.on_train_overflow
        ]
        self.has_overflow_hooks = bool(self._listeners["on_train_overflow"])
        self._samplers = [callback for callback in self._callbacks if callback.sample_every is not None]

    def __enter__(self: _ListT) -> _ListT:
        with contextlib.ExitStack() as stack:
            entered = [stack.enter_context(callback) for callback in self._callbacks]
            self._stack = stack.pop_all()
        # A callback may return another one from `__enter__`, which then takes its place.
        self._callbacks = [
            target if isinstance(target, Callback) else callback
            for target, callback in zip(entered, self._callbacks, strict=True)
        ]
        self._find_listeners()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._stack.__exit__(*error)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the callbacks as they were passed."""
        return (getattr(callback, "keras_callback", callback) for callback in self._callbacks)

    def __len__(self) -> int:
        return len(self._callbacks)

    def free_steps(self, run_context: RunContext) -> float:
        """Return how many steps may run before a callback needs control; `math.inf` if none does."""
        if self.needs_control:
            return 1
        return min((callback.free_steps(run_context) for callback in self._step_callbacks), default=math.inf)

    def steps_to_sample(self, done: int) -> float:
        """Return how many steps run, after `done`, before one that a callback samples; `math.inf` if none does."""
        if not self._samplers:
            return math.inf
        return min(-done % callback.sample_every for callback in self._samplers)  # type: ignore[operator]

    @property
    def needs(self) -> frozenset[str]:
        """What steps return besides scalars, for step hooks and to explain an overflow.

        Raises: ValueError if the `needs` of a callback have an unknown value.
        """
        for callback in self._step_callbacks:
            if isinstance(callback.needs, str) or not set(callback.needs) <= set(get_args(Need)):
                raise checks.fail_value(
                    type(callback).__name__, f"needs must be a set with some of {checks.join_names(get_args(Need))}",
                    callback.needs, 'needs = {"gradients"}',
                )
        needs = frozenset(need for callback in self._step_callbacks for need in callback.needs)
        return needs | {NON_FINITE} if self.has_overflow_hooks else needs

    @property
    def one_step_calls(self) -> bool:
        """Whether a step hook must be called for each step, with sink feed too.

        Predictions of several batches may differ in shape, so they are passed batch by batch.
        """
        return "predictions" in self.needs or any(callback.one_step_calls for callback in self._step_callbacks)

    def listens(self, hook: str) -> bool:
        """Whether a callback overrides a hook, by its name (``"on_train_step_end"``)."""
        return bool(self._listeners[hook])

    def keras_listens(self, hook: str) -> bool:
        """Whether a Keras callback overrides a hook."""
        return any(isinstance(listener.owner, KerasCallbackAdapter) for listener in self._listeners[hook])

    def evaluating(
        self, evaluate: Callable[[CallbackList, RunContext, CallbackArguments], _ResultT], **fields: Any
    ) -> _ResultT:
        """Run an evaluation between epochs: ``on_eval_...`` hooks with the run's own arguments in eval mode.

        A requested stop ends only the evaluation. Legacy hooks are skipped, because between epochs they mean training.
        `evaluate` is called with this list, a fresh context, and the arguments, which have `fields`; its result is
        returned.
        """
        with self.between_epochs(**{"mode": "eval", "cur_step_num": 0, **fields}):
            return evaluate(self, RunContext(self._arguments), self._arguments)

    @contextlib.contextmanager
    def between_epochs(self, **fields: Any) -> Iterator[None]:
        """Lend the arguments to an evaluation between epochs, which legacy hooks do not hear."""
        self._between_epochs = True
        try:
            with self._arguments._lent(**fields):
                yield
        finally:
            self._between_epochs = False

    def hears_overflows(self, callback: Any) -> bool:
        """Whether a callback has an overflow hook."""
        return any(listener.owner is callback for listener in self._listeners["on_train_overflow"])

    on_train_begin = _hook("on_train_begin", "before training")
    on_train_epoch_begin = _hook("on_train_epoch_begin", "before an epoch")
    on_train_step_begin = _hook("on_train_step_begin", "before a step, or call")
    on_train_step_end = _hook("on_train_step_end", "after a step, or call")
    on_train_epoch_end = _hook("on_train_epoch_end", "after an epoch")
    on_train_end = _hook("on_train_end", "after training")
    on_train_overflow = _hook("on_train_overflow", "after a step that overflowed and was skipped")
    on_eval_begin = _hook("on_eval_begin", "before an evaluation")
    on_eval_epoch_begin = _hook("on_eval_epoch_begin", "before the first batch of an evaluation")
    on_eval_step_begin = _hook("on_eval_step_begin", "before an evaluation step")
    on_eval_step_end = _hook("on_eval_step_end", "after an evaluation step")
    on_eval_epoch_end = _hook("on_eval_epoch_end", "after the last batch of an evaluation")
    on_eval_end = _hook("on_eval_end", "after an evaluation")

    def on_train_sample(self, run_context: RunContext) -> None:
        """Call the callbacks that sample this step, before its batch is trained on."""
        done = run_context.original_args().cur_step_num - 1
        for callback in self._samplers:
            if done % callback.sample_every == 0:  # type: ignore[operator]
                callback.on_train_sample(run_context)


def _as_list(callbacks: CallbacksLike | None) -> list[Any]:
    write = "callbacks=[LossMonitor(), keras.callbacks.EarlyStopping()]"
    if callbacks is None:
        return []
    if isinstance(callbacks, (Callback, keras.callbacks.Callback)):
        return [callbacks]
    if not isinstance(callbacks, Iterable):
        raise checks.fail_type("callbacks", "it must be a callback or a list of them", callbacks, write)
    items = list(callbacks)
    for item in items:
        if not isinstance(item, (Callback, keras.callbacks.Callback)):
            is_class = isinstance(item, type) and issubclass(item, (Callback, keras.callbacks.Callback))
            raise checks.fail_type(
                "callbacks", "each must be a mixtrain or Keras callback", item,
                f"callbacks=[{item.__name__}()]" if is_class else write,
            )
    return items


def _is_ours(hook: Callable[[RunContext], None]) -> bool:
    """Whether a hook is a method that mixtrain defines."""
    return str(getattr(hook, "__module__", "")).startswith("mixtrain.")


def _listener(callback: Callback, hook: str) -> Listener | None:
    """Return the method that a callback has for a hook; None if it overrides neither the hook nor the legacy one."""
    for method in (hook, HOOKS[hook]):
        call = getattr(callback, method)
        if getattr(call, "__func__", None) is not getattr(Callback, method):
            class_name, method_name = type(callback).__name__, method
            if isinstance(callback, KerasCallbackAdapter):
                class_name, method_name = type(callback.keras_callback).__name__, callback.keras_methods[hook]
            return Listener(class_name, method_name, call, method != hook, callback)
    return None
