"""Keras's own train step, with the state of skipped steps restored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from mixtrain.backend.tensorflow.control import cond
from mixtrain.backend.tensorflow.rollback import TraceAgain, Writes
from mixtrain.backend.tensorflow.tensor import snapshot
from mixtrain.typing import Tensor


def without_skipped_steps(
    model: keras.Model, train_step: Callable[..., Any], skipped: Callable[[], keras.Variable], *, own: str,
    likely: Callable[[], Iterable[keras.Variable]], on_skip: Callable[[], None], noted: keras.Variable,
) -> Callable[..., Any]:
    """In a graph the operations show what is written: no layer need list it."""
    del noted

    def settle(count: Tensor, restore: Callable[[], None]) -> None:
        def undo() -> None:
            on_skip()
            restore()

        cond(snapshot(skipped())[-1] > count, undo, lambda: None)

    def eager_step(data: Any) -> Any:
        count = snapshot(skipped())[-1]
        saved = [(variable, snapshot(variable)) for variable in likely()]
        logs = train_step(data)

        def restore() -> None:
            for variable, value in saved:
                variable.assign(value)

        settle(count, restore)
        return logs

    writes = Writes(lambda: [*model.non_trainable_variables, *model.metrics_variables], own=own)

    # A function of its own: where a trace shows an unexpected write, only this function is traced again.
    @tf.function(autograph=False, reduce_retracing=True)  # type: ignore[untyped-decorator]
    def graph_step(data: Any) -> Any:
        count = snapshot(skipped())[-1]
        logs, written = writes.of(lambda: train_step(data))

        def restore() -> None:
            for place, value in written:
                place.write(value)

        settle(count, restore)
        return logs

    def step(data: Any) -> Any:
        if _makes_metrics(model):
            # Values are saved before the step, so the metrics' variables must exist: a trace creates them.
            tf.function(train_step, autograph=False).get_concrete_function(data)
        if tf.executing_eagerly():
            return eager_step(data)
        while True:
            try:
                return graph_step(data)
            except TraceAgain:
                continue

    return step


def _makes_metrics(model: keras.Model) -> bool:
    """Whether the first step creates variables, of compiled metrics or for the losses of several outputs."""
    unbuilt = any(not getattr(metric, "built", True) for metric in model.metrics)
    return unbuilt or (len(model.metrics) == 1 and keras.tree.is_nested(model.loss))


def with_values(
    function: Callable[[], Any], variables: Sequence[keras.Variable], values: Sequence[Tensor]
) -> list[Any]:
    del function, variables, values
    raise ValueError(
        "stateless_apply: the backend must be JAX; got TensorFlow, whose variables are written in place. "
        "Write optimizer.apply(gradients, variables)."
    )
