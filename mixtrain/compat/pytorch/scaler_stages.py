"""The stage of each optimizer between two updates of a `GradScaler`, kept separately for each trace."""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Sequence
from typing import Any

from mixtrain import backend, checks
from mixtrain.typing import Optimizer, Tensor, Variable


@dataclasses.dataclass
class OptimizerStage:
    """What a scaler has done for an optimizer since the last update.

    `optimizer`: Referenced so that its `id`, a key of the stages, is not reused. `finite`: Whether its gradients are
    finite, bool scalar; None once it has stepped. `scaled_gradients`: Those passed to `unscale_`; empty once it has
    stepped. `to_store`: Which of them were known to be next values, as of float8 scales.
    """

    optimizer: Optimizer
    finite: Tensor | None
    scaled_gradients: Sequence[Tensor] = ()
    to_store: Sequence[bool] = ()

    @property
    def stepped(self) -> bool:
        """Whether `step` was called."""
        return self.finite is None

    def with_next_values(self, gradients: Sequence[Tensor], variables: Sequence[Variable]) -> list[Tensor]:
        """Return gradients with the next values, as of float8 scales, that `unscale_` got: they are not divided."""
        if not any(map(backend.takes_next_value, variables)):
            return list(gradients)
        if len(self.scaled_gradients) != len(variables):
            raise checks.fail_value(
                "GradScaler.step", "with float8 layers unscale_ and step must get the gradients of the same variables",
                f"{len(self.scaled_gradients)} and {len(variables)} gradients", "both calls with all gradients",
            )
        if list(self.to_store) != [backend.takes_next_value(variable) for variable in variables]:
            raise checks.fail_value(
                "GradScaler.step", "unscale_ must know which gradients are next values of float8 layers, not to divide "
                "them or count them in a norm", f"gradients of variables that {type(self.optimizer).__name__} did not "
                "have yet, or in another order",
                "optimizer.build(variables) before unscale_, or take the gradients by mixtrain.value_and_grad",
            )
        rows = zip(gradients, self.scaled_gradients, variables, strict=True)
        return [value if backend.takes_next_value(variable) else gradient for gradient, value, variable in rows]

    def check_step(self, gradients: Sequence[Tensor], variables: Sequence[Variable]) -> None:
        """Check that the optimizer may step with these gradients."""
        if self.stepped:
            raise RuntimeError(
                f"GradScaler.step: it must be called once per iteration for {type(self.optimizer).__name__}; got a "
                "second call. Write scaler.update() at the end of each iteration, after the steps of all optimizers."
            )
        true_gradients = backend.without_next_values(gradients, variables)
        if {id(gradient) for gradient in true_gradients if gradient is not None} & set(map(id, self.scaled_gradients)):
            raise RuntimeError(
                "GradScaler.step: after unscale_() it must be given what unscale_() returned; got the gradients that "
                "are still scaled. Write grads = scaler.unscale_(grads, optimizer)."
            )


class _Eager:
    """The "trace" of code that is not being compiled."""


class ScalerStages:
    """The stages of the optimizers of one scaler.

    The body of a compiled function runs in Python once, when it is traced. Stages are kept by trace, weakly: a trace
    that fails, or that a retrace replaces, leaves no stale stage behind.
    """

    def __init__(self) -> None:
        self._eager = _Eager()
        self._by_trace: weakref.WeakKeyDictionary[Any, dict[int, OptimizerStage]] = weakref.WeakKeyDictionary()
        self._recorded = self._recorded_at_update = 0
        self._updated_in: weakref.ref[Any] | None = None

    def _enclosing(self) -> tuple[Any, ...]:
        """Return the traces whose tensors can be used here, innermost first; in eager code its placeholder."""
        return backend.traces() or (self._eager,)

    def find(self, optimizer: Optimizer) -> OptimizerStage | None:
        """Return the stage of an optimizer, or None; an error if `unscale_` ran across a compiled function's border."""
        for trace in self._enclosing():
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
        """Record the stage of an optimizer in the current trace, replacing an earlier one."""
        traces = self._enclosing()
        for trace in traces:
            self._by_trace.get(trace, {}).pop(id(stage.optimizer), None)
        self._by_trace.setdefault(traces[0], {})[id(stage.optimizer)] = stage
        self._recorded += 1

    def some_here(self) -> bool:
        """Whether gradients were unscaled or applied in the current trace since the last update."""
        return any(self._by_trace.get(trace) for trace in self._enclosing())

    def none_anywhere(self) -> bool:
        """Whether no gradients were unscaled or applied since the last update, as far as a trace can know."""
        updated_here = self._updated_in is not None and self._updated_in() is self._enclosing()[0]
        return not self._recorded or (updated_here and self._recorded == self._recorded_at_update)

    def clear(self, *, everything: bool = False) -> None:
        """Remove the stages after an update; `everything`: also an `unscale_` without a step on the other side."""
        enclosing = self._enclosing()
        for trace, stages in list(self._by_trace.items()):
            for key, stage in list(stages.items()):
                pending = not stage.stepped and (trace is self._eager or backend.has_results(trace))
                if everything or not pending or any(trace is other for other in enclosing):
                    del stages[key]
        self._updated_in, self._recorded_at_update = weakref.ref(enclosing[0]), self._recorded
