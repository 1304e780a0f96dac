"""Keras's own train step, with the state of skipped steps restored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from mixtrain.backend.tensorflow.control import cond
from mixtrain.backend.tensorflow.tensor import snapshot
from mixtrain.typing import Tensor


def without_skipped_steps(
    model: keras.Model, train_step: Callable[..., Any], skipped: Callable[[], keras.Variable]
) -> Callable[..., Any]:
    """Return a train step that restores the model's state and metrics if its optimizer skipped the step.

    Args:
        model: The compiled model.
        train_step: Its train step, from ``data`` to ``logs``.
        skipped: Returns the variable of the model's optimizer whose last element counts the skipped steps.
    """

    def step(data: Any) -> Any:
        if _makes_metrics(model):
            # Values are saved before the step, so the metrics' variables must exist: a trace creates them.
            tf.function(train_step, autograph=False).get_concrete_function(data)
        counter = skipped()
        count = snapshot(counter)[-1]
        variables = (*model.non_trainable_variables, *model.metrics_variables)
        saved = [(variable, snapshot(variable)) for variable in variables]
        logs = train_step(data)

        def undo() -> None:
            for variable, value in saved:
                variable.assign(value)

        cond(snapshot(counter)[-1] > count, undo, lambda: None)
        return logs

    return step


def _makes_metrics(model: keras.Model) -> bool:
    """Whether the first step creates variables, of compiled metrics or for the losses of several outputs."""
    unbuilt = any(not getattr(metric, "built", True) for metric in model.metrics)
    return unbuilt or (len(model.metrics) == 1 and keras.tree.is_nested(model.loss))


def with_values(
    function: Callable[[], Any], variables: Sequence[keras.Variable], values: Sequence[Tensor]
) -> list[Any]:
    """Run a function with given values of variables; return their values after it.

    Args:
        function: Reads and writes the variables; its result is not used.
        variables: The variables.
        values: Their values, in their order.

    Raises:
        ValueError: Always, as in Keras: TensorFlow's variables are written in place.
    """
    del function, variables, values
    raise ValueError(
        "stateless_apply: the backend must be JAX; got TensorFlow, whose variables are written in place. "
        "Write optimizer.apply(gradients, variables)."
    )
