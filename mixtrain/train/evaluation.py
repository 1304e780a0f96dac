"""One evaluation: a pass over a dataset in inference mode, its outputs given to metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from mixtrain import checks
from mixtrain.nn.metrics import Loss, MetricLike
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.feed import Feed
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.stepper import CompiledCall


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What an evaluation works with.

    Attributes:
        feed: The data.
        call: The eval network, compiled.
        network: The eval network.
        metrics: The metrics by name.
        indexes: Which outputs are the loss, the prediction and the label; None gives every metric all outputs.
    """

    feed: Feed
    call: CompiledCall
    network: Any
    metrics: Mapping[str, MetricLike]
    indexes: tuple[int, int, int] | None

    def fields(self) -> dict[str, Any]:
        """Return what callbacks see of it."""
        return {
            "eval_network": self.network,
            "valid_dataset": self.feed.dataset,
            "batch_num": self.feed.size or 0,
            "cur_step_num": 0,
        }


def evaluate(
    evaluation: Evaluation, callbacks: CallbackList, context: RunContext, arguments: CallbackArguments
) -> dict[str, Any]:
    """Evaluate the metrics, and for callbacks the mean loss of the batches where the outputs have one.

    Returns:
        The metrics' values by name.

    Raises:
        ValueError: The eval network returned fewer outputs than `indexes` names.
    """
    evaluation.network.set_train(False)
    indexes, loss = evaluation.indexes, Loss()
    for metric in evaluation.metrics.values():
        metric.clear()
    callbacks.on_eval_begin(context)
    callbacks.on_eval_epoch_begin(context)
    for step, batch in enumerate(evaluation.feed.batches(), start=1):
        arguments._set(cur_step_num=step, eval_dataset_element=batch)
        callbacks.on_eval_step_begin(context)
        outputs = evaluation.call(*batch)
        arguments._set(net_outputs=outputs)
        update_metrics(evaluation, outputs)
        if indexes is not None:
            loss.update(keras.ops.mean(outputs[indexes[0]]))
        callbacks.on_eval_step_end(context)
        if context.get_stop_requested():
            break
    callbacks.on_eval_epoch_end(context)
    values = {name: metric.eval() for name, metric in evaluation.metrics.items()}
    mean_loss = {} if indexes is None else {"eval_loss": loss.eval()}
    arguments._set(metrics=values, eval_results={**values, **mean_loss})
    callbacks.on_eval_end(context)
    return values


def update_metrics(evaluation: Evaluation, outputs: Any) -> None:
    """Give each metric its share of the eval network's outputs."""
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    indexes = evaluation.indexes
    if indexes is not None and len(outputs) <= max(indexes):
        raise ValueError(
            f"Model.eval: the eval network must return at least {max(indexes) + 1} outputs for "
            f"eval_indexes={list(indexes)}; got {len(outputs)}. Write eval_indexes of outputs that exist."
        )
    for metric in evaluation.metrics.values():
        if indexes is None or getattr(metric, "indexes", None) is not None:
            metric.update(*outputs)
        elif isinstance(metric, Loss):
            metric.update(outputs[indexes[0]])
        else:
            metric.update(outputs[indexes[1]], outputs[indexes[2]])


def output_indexes(indexes: Sequence[int] | None, eval_network: Any) -> tuple[int, int, int] | None:
    """Return which outputs of an eval network are the loss, the prediction and the label.

    Args:
        indexes: What the user said; None for ``(0, 1, 2)`` of the network with its loss, and for all outputs of an
            eval network of the user's own.
        eval_network: The user's own, or None.

    Raises:
        ValueError: Not 3 ints.
    """
    if indexes is None:
        return (0, 1, 2) if eval_network is None else None
    if len(indexes) != 3 or not all(isinstance(index, int) for index in indexes):
        raise checks.fail_value("Model", "eval_indexes must be 3 ints", indexes, "eval_indexes=[0, 1, 2]")
    return tuple(indexes)  # type: ignore[return-value]
