"""`Callback`: the base class of callbacks, with one hook for each event of a run."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import keras

from mixtrain.step.train_step import Need
from mixtrain.train.run_context import RunContext

_CallbackT = TypeVar("_CallbackT", bound="Callback")

# Each hook, with the legacy hook of MindSpore that it calls unless it is overridden.
HOOKS: Final[dict[str, str]] = {
    f"on_{mode}_{name}": name
    for mode in ("train", "eval")
    for name in ("begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "end")
}


class Callback:
    """Base class of callbacks: override the hooks that you need; the others cost nothing.

    The order in training is ``on_train_begin``, for each epoch ``on_train_epoch_begin``, for each step (each call, with
    sink feed) ``on_train_step_begin`` and ``on_train_step_end``, then ``on_train_epoch_end``, and last
    ``on_train_end``; evaluation calls the ``on_eval_...`` hooks in the same order. Hooks that are not overridden call
    ``begin``, ``epoch_begin``, ``step_begin``, ``step_end``, ``epoch_end`` and ``end``, both in training and in
    `Model.eval`; evaluations between the epochs of `Model.fit` call ``on_eval_...`` only. A callback is also a context
    manager around the run.

    Attributes:
        observes_only: Whether its step hooks only read what steps returned: they neither change the run nor read or
            write weights. Several steps may then run in one compiled call before the hooks are called for each of
            them. A subclass that overrides a step hook must declare it again.
        needs: What its step hooks read from `step_results` besides scalars, which each step then returns: "gradients"
            of the weights by name, "predictions" of the network. With "predictions" sink feed runs one step per call.
        one_step_calls: Whether its step hooks must be called for each step with sink feed too, which then runs one step
            per call.
        sample_every: Steps between calls of `on_train_sample`; None to never call it.

    Example:
        >>> class Announce(Callback):
        ...     def on_train_step_end(self, run_context):
        ...         print("step", run_context.original_args().cur_step_num)
        >>> Announce().on_train_step_end(RunContext({"cur_step_num": 7}))
        step 7
    """

    observes_only: ClassVar[bool] = False
    needs: ClassVar[Collection[Need]] = ()
    one_step_calls: ClassVar[bool] = False
    sample_every: int | None = None

    def free_steps(self, run_context: RunContext) -> float:
        """Return how many steps may run, after `cur_step_num`, before the step hooks must be called for them.

        Called before steps, for callbacks that override a step hook. A callback that needs the network itself at some
        steps, as for a checkpoint, returns the number of steps until the next of them. The default is `math.inf` for
        one that only observes, and 1 for others.
        """
        return math.inf if declares_observing(self) else 1

    def __enter__(self: _CallbackT) -> _CallbackT:
        return self

    def __exit__(self, *error: object) -> Any:
        return None

    # ---- legacy hooks, called in training and in evaluation ---------------------------------------------------
    def begin(self, run_context: RunContext) -> None:
        """Run before the first epoch."""

    def epoch_begin(self, run_context: RunContext) -> None:
        """Run before each epoch."""

    def step_begin(self, run_context: RunContext) -> None:
        """Run before each step."""

    def step_end(self, run_context: RunContext) -> None:
        """Run after each step."""

    def epoch_end(self, run_context: RunContext) -> None:
        """Run after each epoch."""

    def end(self, run_context: RunContext) -> None:
        """Run after the last epoch."""

    # ---- training ---------------------------------------------------------------------------------------------
    def on_train_begin(self, run_context: RunContext) -> None:
        """Run before training."""
        self.begin(run_context)

    def on_train_epoch_begin(self, run_context: RunContext) -> None:
        """Run before each training epoch."""
        self.epoch_begin(run_context)

    def on_train_step_begin(self, run_context: RunContext) -> None:
        """Run before each training step."""
        self.step_begin(run_context)

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Run after each training step."""
        self.step_end(run_context)

    def on_train_overflow(self, run_context: RunContext) -> None:
        """Run after a training step that overflowed and was skipped, before `on_train_step_end`, in every feed.

        The network is in the state before that step. The arguments ``cur_step_num``, ``train_dataset_element`` and
        ``step_results`` are those of the step, and ``explain_overflow()`` finds the layer. Overriding this hook ends a
        compiled call of several steps at each step that overflows; other steps still run together.
        """

    def on_train_sample(self, run_context: RunContext) -> None:
        """Run before step 1 and each `sample_every`-th step after it, in every feed.

        The arguments ``cur_step_num`` and ``train_dataset_element`` are those of the step, and
        ``measure_ranges(values)`` runs its batch without training and returns the loss scale and `RangeRecords`.
        """

    def on_train_epoch_end(self, run_context: RunContext) -> None:
        """Run after each training epoch, and the evaluation that follows it in `Model.fit`."""
        self.epoch_end(run_context)

    def on_train_end(self, run_context: RunContext) -> None:
        """Run after training."""
        self.end(run_context)

    # ---- evaluation -------------------------------------------------------------------------------------------
    def on_eval_begin(self, run_context: RunContext) -> None:
        """Run before an evaluation."""
        self.begin(run_context)

    def on_eval_epoch_begin(self, run_context: RunContext) -> None:
        """Run before the first batch of an evaluation."""
        self.epoch_begin(run_context)

    def on_eval_step_begin(self, run_context: RunContext) -> None:
        """Run before each evaluation step."""
        self.step_begin(run_context)

    def on_eval_step_end(self, run_context: RunContext) -> None:
        """Run after each evaluation step."""
        self.step_end(run_context)

    def on_eval_epoch_end(self, run_context: RunContext) -> None:
        """Run after the last batch of an evaluation, before the metrics are computed."""
        self.epoch_end(run_context)

    def on_eval_end(self, run_context: RunContext) -> None:
        """Run after an evaluation."""
        self.end(run_context)


_STEP_HOOKS: Final = ("on_train_step_begin", "on_train_step_end", "step_begin", "step_end")


def declares_observing(callback: Callback) -> bool:
    """Whether a callback only observes, as declared by the class that defines its step hooks, or by a subclass."""
    if not callback.observes_only:
        return False
    if "observes_only" in vars(callback):
        return True
    # A declaration does not cover step hooks that a more derived class overrides.
    for cls in type(callback).__mro__:
        if "observes_only" in vars(cls):
            return True
        if any(hook in vars(cls) for hook in _STEP_HOOKS):
            return False
    return False


# One callback or several, of mixtrain or Keras.
CallbacksLike: TypeAlias = Callback | keras.callbacks.Callback | Sequence[Callback | keras.callbacks.Callback]
