"""How far each optimizer is between two updates of a scaler, remembered apart for every function being compiled."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any

from mixtrain import backend


@dataclasses.dataclass
class OptimizerStage:
    """What a scaler did for an optimizer since its last update.

    Attributes:
        optimizer: The optimizer; held, so that its identity stays its own.
        finite: bool scalar: whether its gradients were finite; None once it has stepped.
        given: The gradients that `unscale_` was given, still scaled; empty once it has stepped.
    """

    optimizer: Any
    finite: Any
    given: Sequence[Any] = ()

    @property
    def stepped(self) -> bool:
        """Whether `step` was called."""
        return self.finite is None

    def check_step(self, gradients: Sequence[Any]) -> None:
        """Check that a step may follow.

        Raises:
            RuntimeError: One was taken, or these are the gradients that `unscale_` was given.
        """
        if self.stepped:
            raise RuntimeError(
                f"GradScaler.step: it must be called once per iteration for {type(self.optimizer).__name__}; got a "
                "second call. Write scaler.update() at the end of each iteration, after the steps of all optimizers."
            )
        if {id(gradient) for gradient in gradients if gradient is not None} & set(map(id, self.given)):
            raise RuntimeError(
                "GradScaler.step: after unscale_() it must be given what unscale_() returned; got the gradients that "
                "are still scaled. Write grads = scaler.unscale_(grads, optimizer)."
            )


class _Eager:
    """Stands for code that is not being compiled."""


class ScalerStages:
    """The stages of the optimizers of one scaler.

    The body of a compiled function runs in Python once, when it is traced; what happened in that trace is kept with
    it, so that neither a trace that failed nor one that another one follows leaves a stale stage behind.
    """

    def __init__(self) -> None:
        self._eager = _Eager()
        self._by_trace: weakref.WeakKeyDictionary[Any, dict[int, OptimizerStage]] = weakref.WeakKeyDictionary()
        self._noted = self._noted_at_update = 0
        self._updated_in: weakref.ref[Any] | None = None

    def _around(self) -> tuple[Any, ...]:
        """Return the traces whose tensors can be used here, innermost first; what stands for eager code outside."""
        return backend.traces() or (self._eager,)

    def find(self, optimizer: Any) -> OptimizerStage | None:
        """Return the stage of an optimizer; None for one that is ready.

        Raises:
            RuntimeError: `unscale_` ran for it on the other side of a compiled function's border.
        """
        around = self._around()
        for trace in around:
            if id(optimizer) in self._by_trace.get(trace, {}):
                return self._by_trace[trace][id(optimizer)]
        for trace, stages in self._by_trace.items():
            stage = stages.get(id(optimizer))
            finished = trace is self._eager or backend.has_results(trace)
            if stage is not None and not stage.stepped and finished:
                raise RuntimeError(
                    "GradScaler: unscale_() and step() of an optimizer must run in the same compiled function, or both "
                    f"outside of one; got an unscale_() for {type(optimizer).__name__} on the other side of its "
                    "border. Write both in one function, and scaler.update(scaler.get_scale()) to begin anew."
                )
        return None

    def put(self, stage: OptimizerStage) -> None:
        """Keep the stage of an optimizer, in place of the one it had."""
        around = self._around()
        for trace in around:
            self._by_trace.get(trace, {}).pop(id(stage.optimizer), None)
        self._by_trace.setdefault(around[0], {})[id(stage.optimizer)] = stage
        self._noted += 1

    def some_here(self) -> bool:
        """Whether an optimizer's gradients were looked at in the present trace since the last update."""
        return any(self._by_trace.get(trace) for trace in self._around())

    def none_anywhere(self) -> bool:
        """Whether, for all that a trace can tell, no gradients were looked at since the last update."""
        updated_here = self._updated_in is not None and self._updated_in() is self._around()[0]
        return not self._noted or (updated_here and self._noted == self._noted_at_update)

    def clear(self, *, everything: bool = False) -> None:
        """Make the optimizers ready after an update.

        Args:
            everything: Whether an `unscale_` on the other side of a compiled function's border is forgotten too.
        """
        around = self._around()
        for trace, stages in list(self._by_trace.items()):
            for key, stage in list(stages.items()):
                waits = not stage.stepped and (trace is self._eager or backend.has_results(trace))
                if everything or not waits or any(trace is one for one in around):
                    del stages[key]
        self._updated_in, self._noted_at_update = weakref.ref(around[0]), self._noted
