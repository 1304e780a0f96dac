"""Undo the variable writes of a skipped step: of a forward pass, and of Keras's own train step."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import keras

from mixtrain.backend.instances import weakly_all
from mixtrain.backend.jax.control import select
from mixtrain.backend.jax.state import StateScope, current, put, tracing
from mixtrain.backend.jax.storage import is_live
from mixtrain.backend.jax.tensor import store, stored
from mixtrain.backend.signatures import Likely, Variables
from mixtrain.typing import Tensor


class Rollback:
    def __init__(self, likely: Likely) -> None:
        self._likely = likely
        self._known: list[weakref.ref[keras.Variable]] | None = None

    def recorded(self) -> contextlib.AbstractContextManager[Callable[[], None]]:
        return _recorded_in_trace() if tracing() else self._recorded_eagerly()

    @contextlib.contextmanager
    def _recorded_eagerly(self) -> Iterator[Callable[[], None]]:
        """Record where no trace shows what is written: an array that a variable refers to never changes."""
        first = self._known is None
        if first:
            self._known = weakly_all(keras.Variable)
        living = [variable for variable in (reference() for reference in self._known or ()) if variable is not None]
        before = [(variable, stored(variable)) for variable in (*living, *self._likely())]

        def undo() -> None:
            for variable, value in before:
                if stored(variable) is not value and not is_live(variable):
                    store(variable, value)

        yield undo
        if first:
            self._known = weakly_all(keras.Variable)  # A first call may create some that nothing else refers to.


@contextlib.contextmanager
def _recorded_in_trace() -> Iterator[Callable[[], None]]:
    saved: list[tuple[keras.Variable, Tensor]] = []

    def undo() -> None:
        for variable, value in saved:
            put(variable, value)

    with StateScope() as scope:
        yield undo
    written = list(scope.written.values())
    saved += [(variable, current(variable)) for variable in written if not is_live(variable)]
    for variable in written:
        put(variable, scope.state_mapping[id(variable)])


def without_skipped_steps(
    model: keras.Model, train_step: Callable[..., Any], skipped: Likely, *, own: str,
    kept: Likely, likely: Likely, on_skip: Callable[[], None], noted: keras.Variable,
) -> Callable[..., Any]:
    # Keras's step is a function of the state: what is not part of it keeps its value in every step, skipped or not.
    del own, kept, likely

    def step(state: Any, data: Any) -> Any:
        _, old_others, old_slots, old_metrics = state
        # Keras takes the values of the variables away during a step. `scale_loss` reads the scale, also where the
        # user's step calls it without a scope of the optimizer's state.
        with keras.StatelessScope(state_mapping=zip(model.optimizer.variables, old_slots, strict=True)):
            logs, (weights, others, slots, metrics) = train_step(state, data)
        # Of the optimizers that a model holds, Keras passes the state of one.
        (index,) = [_index_of(model.optimizer.variables, counts) for counts in skipped()]
        applied = slots[index][-1] == old_slots[index][-1]

        def applied_or_old(new_values: Sequence[Tensor], old_values: Sequence[Tensor]) -> list[Tensor]:
            pairs = list(zip(new_values, old_values, strict=True))
            changed = iter(select(applied, [pair for pair in pairs if pair[0] is not pair[1]]))
            return [new if new is old else next(changed) for new, old in pairs]

        slots, index = list(slots), _index_of(model.optimizer.variables, noted)
        after_skip, *_ = with_values(on_skip, [noted, *model.metrics_variables], [slots[index], *metrics])
        slots[index] = jnp.where(applied, slots[index], after_skip)
        return logs, (weights, applied_or_old(others, old_others), slots, applied_or_old(metrics, old_metrics))

    return step


def _index_of(variables: Variables, wanted: keras.Variable) -> int:
    return next(index for index, variable in enumerate(variables) if variable is wanted)


def with_values(function: Callable[[], Any], variables: Variables, values: Sequence[Tensor]) -> list[Any]:
    with StateScope(variables, values) as scope:
        function()
        return scope.values_of(variables)
