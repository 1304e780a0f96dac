"""Keras's own train step, made to leave nothing of a step that its optimizer skipped."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import keras

from mixtrain.backend.jax.state import StateScope


def without_skipped_steps(
    model: keras.Model, train_step: Callable[..., Any], skipped: Callable[[], keras.Variable]
) -> Callable[..., Any]:
    """Return a train step after which a skipped one has left the model's state and metrics as they were.

    Args:
        model: The compiled model.
        train_step: Its own, as Keras calls it: ``(state, data)`` to ``(logs, state)``.
        skipped: Returns the variable of the model's optimizer whose last number counts the skipped steps.
    """

    def step(state: Any, data: Any) -> Any:
        logs, (weights, others, slots, metrics) = train_step(state, data)
        _, others_before, slots_before, metrics_before = state
        counter = skipped()
        place = next(place for place, one in enumerate(model.optimizer.variables) if one is counter)
        applied = slots[place][-1] == slots_before[place][-1]

        def chosen(after: Sequence[Any], before: Sequence[Any]) -> list[Any]:
            pairs = zip(after, before, strict=True)
            return [new if new is old else jnp.where(applied, new, old) for new, old in pairs]

        return logs, (weights, chosen(others, others_before), slots, chosen(metrics, metrics_before))

    return step


def with_values(
    function: Callable[[], Any], variables: Sequence[keras.Variable], values: Sequence[Any]
) -> list[Any]:
    """Run a function whose variables have given values, and return those that they have after it.

    Args:
        function: Reads and writes the variables; what it returns is not used.
        variables: The variables.
        values: Their values, in their order.
    """
    with StateScope(variables, values) as scope:
        function()
        return scope.values_of(variables)
