"""Keras's own train step, with the state of skipped steps restored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import keras

from mixtrain.backend.jax.state import StateScope
from mixtrain.typing import Tensor


def without_skipped_steps(
    model: keras.Model, train_step: Callable[..., Any], skipped: Callable[[], keras.Variable], *, own: str,
    likely: Callable[[], Iterable[keras.Variable]], on_skip: Callable[[], None], noted: keras.Variable,
) -> Callable[..., Any]:
    # Keras's step is a function of the state: what is not part of it keeps its value in every step, skipped or not.
    del own, likely

    def step(state: Any, data: Any) -> Any:
        _, old_others, old_slots, old_metrics = state
        # Keras takes the values of the variables away during a step. `scale_loss` reads the scale, also where the
        # user's step calls it without a scope of the optimizer's state.
        with keras.StatelessScope(state_mapping=zip(model.optimizer.variables, old_slots, strict=True)):
            logs, (weights, others, slots, metrics) = train_step(state, data)
        index = _index_of(model.optimizer.variables, skipped())
        applied = slots[index][-1] == old_slots[index][-1]

        def select(new_values: Sequence[Tensor], old_values: Sequence[Tensor]) -> list[Tensor]:
            pairs = zip(new_values, old_values, strict=True)
            return [new if new is old else jnp.where(applied, new, old) for new, old in pairs]

        slots, index = list(slots), _index_of(model.optimizer.variables, noted)
        after_skip, *_ = with_values(on_skip, [noted, *model.metrics_variables], [slots[index], *metrics])
        slots[index] = jnp.where(applied, slots[index], after_skip)
        return logs, (weights, select(others, old_others), slots, select(metrics, old_metrics))

    return step


def _index_of(variables: Sequence[keras.Variable], wanted: keras.Variable) -> int:
    return next(index for index, variable in enumerate(variables) if variable is wanted)


def with_values(
    function: Callable[[], Any], variables: Sequence[keras.Variable], values: Sequence[Tensor]
) -> list[Any]:
    with StateScope(variables, values) as scope:
        function()
        return scope.values_of(variables)
