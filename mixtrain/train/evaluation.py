"""One evaluation: a pass over a dataset in inference mode, its outputs given to metrics."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, boundary, checks
from mixtrain.nn.metrics import KerasMetric, Loss, Metric, MetricLike
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.loss_cell import WithEvalCell
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.feed import Feed
from mixtrain.train.keras_metrics import CompileMetric, DeviceMetrics, flat_results, masks_of, metrics_of_layers
from mixtrain.train.records import EpochRecords, StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.stepper import num_rows


def with_masks(network: Any) -> Callable[..., Any]:
    """Return an eval network's call, which returns its outputs, their masks and the losses of several outputs."""

    def call(*batch: Any) -> tuple[Any, list[Any], dict[str, Any]]:
        found, seen = network.seen(*batch) if isinstance(network, WithEvalCell) else (network(*batch), None)
        outputs = boundary.settled(found)
        return outputs, masks_of(outputs), {} if seen is None else seen.output_losses

    return call


class EvaluationMetrics:
    """A Model's metrics by the way in which they take in a batch.

    Args:
        metrics: The metrics by name.
        indexes: Which outputs are the loss, the prediction and the label; None gives every metric all outputs.
        shows_tensors: Whether metrics that users write see Tensors.
        network: The Keras network that is evaluated, which may have metrics of its own; None for another one.

    Attributes:
        named: The metrics by name.
        indexes: As given.
    """

    def __init__(
        self,
        metrics: Mapping[str, MetricLike],
        indexes: tuple[int, int, int] | None,
        *,
        shows_tensors: bool,
        network: Any = None,
    ) -> None:
        self._network = network
        self._shown: Callable[[Any], Any] = boundary.wrapped if shows_tensors else boundary.settled
        self.named = metrics
        self.indexes = indexes
        kinds = () if indexes is None else (CompileMetric, KerasMetric)
        device = [metric for metric in metrics.values() if isinstance(metric, kinds) and metric.indexes is None]
        self._host = [metric for metric in metrics.values() if all(metric is not other for other in device)]
        self._device = DeviceMetrics(device)

    def clear(self) -> None:
        """Forget what was gathered."""
        for metric in self.named.values():
            metric.clear()
        for metric in metrics_of_layers(self._network):
            metric.reset_state()

    def check_labels(self, outputs: tuple[Any, ...], masks: list[Any], weights: Any, ignored: set[int]) -> None:
        """Refuse labels that a metric reads as class numbers and that are none.

        Args:
            outputs: What the eval network returned.
            masks: The masks of its outputs; where there are any, labels are not looked at: masked ones may be any.
            weights: The weights of the samples, or None.
            ignored: Labels that the loss ignores: they are meant.

        Raises:
            LabelOutOfRange: A label is none.
        """
        if self.indexes is None or any(mask is not None for mask in masks):
            return
        prediction, label = outputs[self.indexes[1]], outputs[self.indexes[2]]
        for metric in self.named.values():
            if not isinstance(metric, Metric) or metric.indexes is not None:
                continue
            inputs = (prediction, label, weights) if isinstance(metric, CompileMetric) else (prediction, label)
            sparse = metric._sparse_labels(*inputs)
            if sparse is not None:
                kept = (*ignored, *sparse.ignored)
                found = backend.first_outside(sparse.labels, sparse.classes, kept, sparse.weights)
                if found is not None:
                    raise backend.LabelOutOfRange("a metric", found[1], sparse.classes)

    def update(self, outputs: tuple[Any, ...], masks: list[Any], weights: Any) -> None:
        """Give each metric its share of the eval network's outputs."""
        indexes = self.indexes
        if indexes is not None:
            prediction, label = outputs[indexes[1]], outputs[indexes[2]]
            begin = len(keras.tree.flatten(outputs[: indexes[1]]))
            of_prediction = masks[begin : begin + len(keras.tree.flatten(prediction))]
            self._device.update(prediction, label, weights, of_prediction)
        for metric in self._host:
            if indexes is None or getattr(metric, "indexes", None) is not None:
                metric.update(*self._shown(outputs))
            elif isinstance(metric, Loss):
                metric.update(outputs[indexes[0]])
            else:
                metric.update(*self._shown((prediction, label)))

    def eval(self) -> dict[str, Any]:
        """Return the values by name."""
        found = {name: metric.eval() for name, metric in self.named.items()}
        of_layers = {metric.name: KerasMetric(metric).eval() for metric in metrics_of_layers(self._network)}
        return found | flat_results(of_layers)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What an evaluation works with.

    Attributes:
        feed: The data.
        call: The eval network, compiled.
        network: The eval network.
        set_train: Switches it to training or inference.
        metrics: The metrics.
        weighted: Whether a batch's third column weighs its samples.
        by_rows: Whether a batch counts in the mean loss by its number of rows, as in Keras; otherwise all are equal.
        in_keras: Whether the network is Keras's: the results have the loss, and the losses of several outputs.
    """

    feed: Feed
    call: CompiledCall
    network: Any
    set_train: Callable[[bool], None]
    metrics: EvaluationMetrics
    weighted: bool = False
    by_rows: bool = False
    in_keras: bool = False

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

    Metrics take in a batch while the device works on the next, except where a callback looks in between.

    Returns:
        The metrics' values by name; without metrics, and for a Keras network, the mean loss as "loss".

    Raises:
        ValueError: The eval network returned fewer outputs than its indexes name.
    """
    evaluation.set_train(False)
    metrics = evaluation.metrics
    metrics.clear()
    records = EpochRecords()
    waiting: list[tuple[Any, ...]] = []
    wait = 0 if any(map(callbacks.listens, ("on_eval_step_begin", "on_eval_step_end"))) else 1
    tells_values = callbacks.keras_listens("on_eval_step_end")
    callbacks.on_eval_begin(context)
    callbacks.on_eval_epoch_begin(context)
    for step, batch in enumerate(evaluation.feed.batches(), start=1):
        arguments._set(cur_step_num=step, eval_dataset_element=batch)
        callbacks.on_eval_step_begin(context)
        with _telling_batch(step):
            outputs, masks, losses = evaluation.call(*batch)
        arguments._set(net_outputs=outputs)
        listed = _checked(outputs, metrics.indexes)
        if metrics.indexes is not None:
            loss = keras.ops.mean(listed[metrics.indexes[0]])
            rows = np.array([num_rows(batch) if evaluation.by_rows else 1])
            records.add(StepRecords([loss], rows=rows, metrics={name: [one] for name, one in losses.items()}))
        waiting.append((listed, masks, batch[2] if evaluation.weighted and len(batch) > 2 else None))
        while len(waiting) > wait:
            with _telling_batch(step + 1 - len(waiting)):
                _take_in(evaluation, waiting.pop(0))
        if tells_values:
            arguments._set(eval_results=_results(evaluation, records)[1])
        callbacks.on_eval_step_end(context)
        if context.get_stop_requested():
            break
    for index, taken in enumerate(waiting):
        with _telling_batch(step + 1 - len(waiting) + index):
            _take_in(evaluation, taken)
    callbacks.on_eval_epoch_end(context)
    values, results = _results(evaluation, records)
    arguments._set(metrics=values, eval_results=results)
    callbacks.on_eval_end(context)
    return values


def _results(evaluation: Evaluation, records: EpochRecords) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of the batches so far, and those that callbacks see, which have the loss in any case."""
    found = records.joined()
    values = evaluation.metrics.eval()
    if not len(found):
        return values, values
    loss, *of_outputs = (
        float(np.average(losses.astype(np.float64), weights=found.rows))
        for losses in (found.loss, *found.metrics.values())
    )
    if evaluation.in_keras:
        values = {"loss": loss, **dict(zip(found.metrics, of_outputs, strict=True)), **values}
    return values or {"loss": loss}, {**values, "eval_loss": loss}


def _take_in(evaluation: Evaluation, taken: tuple[Any, ...]) -> None:
    """Give the metrics the outputs of a batch, its masks and weights."""
    outputs, masks, weights = taken
    evaluation.metrics.check_labels(outputs, masks, weights, evaluation.call.ignored_labels())
    evaluation.metrics.update(outputs, masks, weights)


def _telling_batch(number: int) -> contextlib.AbstractContextManager[None]:
    """Tell an error of labels with the number of their batch."""
    return backend.telling_place("Model.eval", lambda index: f"batch {number}")


def _checked(outputs: Any, indexes: tuple[int, int, int] | None) -> tuple[Any, ...]:
    """Return the outputs of an eval network as a tuple that has all that `indexes` name."""
    listed = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
    if indexes is not None and len(listed) <= max(indexes):
        raise ValueError(
            f"Model.eval: the eval network must return at least {max(indexes) + 1} outputs for "
            f"eval_indexes={list(indexes)}; got {len(listed)}. Write eval_indexes of outputs that exist."
        )
    return listed


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
    listed = isinstance(indexes, (list, tuple)) and all(isinstance(index, int) for index in indexes)
    if not listed or len(indexes) != 3:
        raise checks.fail_value("Model", "eval_indexes must be 3 ints", indexes, "eval_indexes=[0, 1, 2]")
    return tuple(indexes)  # type: ignore[return-value]
