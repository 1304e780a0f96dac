"""A run without a network: the hooks of a loop, in its order, with given losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mixtrain.train.callback import CallbackList
from mixtrain.train.records import StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext


class Manager:
    """A loss-scale manager whose scale is given."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def get_loss_scale(self) -> float:
        return self.scale


def tell_run(
    callbacks: Any,
    losses: Sequence[Sequence[float]],
    *,
    call: int = 1,
    overflow: Sequence[Sequence[bool]] | None = None,
    scales: Sequence[Sequence[float]] | None = None,
    metrics: Sequence[dict[str, Any]] | None = None,
    **fields: Any,
) -> RunContext:
    """Tell callbacks of a run whose epochs have these losses.

    Args:
        callbacks: What `CallbackList` takes.
        losses: The losses of each epoch's steps.
        call: Steps in a call.
        overflow: Whether each step overflowed; with `scales` only.
        scales: The loss scale of each step.
        metrics: Results of an evaluation after each epoch.
        **fields: Further fields of the arguments.
    """
    batch_num = len(losses[0])
    arguments = CallbackArguments(
        mode="train", epoch_num=len(losses), batch_num=batch_num, cur_step_num=0, dataset_sink_mode=call > 1, **fields
    )
    context = RunContext(arguments)
    with CallbackList(callbacks, arguments) as listed:
        listed.on_train_begin(context)
        for epoch, row in enumerate(losses):
            arguments._set(cur_epoch_num=epoch + 1)
            listed.on_train_epoch_begin(context)
            for first in range(0, len(row), call):
                arguments._set(cur_step_num=epoch * batch_num + first + call)
                listed.on_train_step_begin(context)
                part = slice(first, first + call)
                records = StepRecords(
                    np.asarray(row[part], np.float32),
                    None if overflow is None else np.asarray(overflow[epoch][part]),
                    None if scales is None else np.asarray(scales[epoch][part], np.float32),
                )
                last = np.float32(row[part][-1])
                outputs = last if scales is None else (last, records.overflow[-1], records.loss_scale[-1])
                arguments._set(net_outputs=outputs, step_results=records)
                listed.on_train_step_end(context)
                if context.get_stop_requested():
                    break
            values = {"loss": float(np.mean(row))}
            if metrics is not None:
                listed.evaluating(_evaluate, batch_num=1)
                arguments._set(metrics=metrics[epoch], eval_results=metrics[epoch])
                values |= {f"val_{name}": value for name, value in metrics[epoch].items()}
            arguments._set(epoch_values=values)
            listed.on_train_epoch_end(context)
            if context.get_stop_requested():
                break
        listed.on_train_end(context)
    return context


def _evaluate(listed: CallbackList, context: RunContext, arguments: CallbackArguments) -> None:
    listed.on_eval_begin(context)
    listed.on_eval_epoch_begin(context)
    arguments._set(cur_step_num=1, net_outputs=(np.float32(0.5), 0, 0))
    listed.on_eval_step_begin(context)
    listed.on_eval_step_end(context)
    listed.on_eval_epoch_end(context)
    arguments._set(metrics={"accuracy": 0.5}, eval_results={"accuracy": 0.5, "eval_loss": 0.5})
    listed.on_eval_end(context)
