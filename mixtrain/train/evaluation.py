"""`evaluate`: computes the metrics of a dataset, with the network in inference mode."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend, boundary, checks
from mixtrain.distribution.joint_batches import whole
from mixtrain.metrics import KerasMetric, Metric, MetricLike
from mixtrain.step.compiled_call import CompiledCall
from mixtrain.step.network_loss import NetworkLoss, masks_of
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.feed import Feed
from mixtrain.train.keras_metrics import CompileMetric, DeviceMetrics, by_result, flat_results, metrics_of_layers
from mixtrain.train.records import EpochRecords, StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.typing import Network, Tensor, Tree


def with_masks(network: NetworkLoss | Network) -> Callable[..., Any]:
    """Return a function that runs an eval network: its outputs, their masks and the losses of several outputs."""

    def call(*batch: Tree) -> tuple[Tree, list[Tensor | None], dict[str, Any]]:
        losses: dict[str, Tensor] = {}
        if isinstance(network, NetworkLoss):
            with boundary.in_mode("backend"):
                loss, batch_outputs = network.with_outputs(*batch, training=False)
            results = loss, batch_outputs.outputs, batch_outputs.label
            losses = batch_outputs.output_losses
            if isinstance(network.loss_fn, dict) or not isinstance(batch_outputs.outputs, dict):
                # A plain dict that leaves a compiled call on JAX comes back with its keys sorted. With one loss for
                # the outputs of a dict, that is Keras's order too.
                losses = collections.OrderedDict(losses)
        else:
            mode = {"training": False} if isinstance(network, keras.Layer) else {}
            results = network(*batch, **mode)
        outputs = boundary.to_backend_tensors(results)
        return outputs, masks_of(outputs), losses

    return call


class EvaluationMetrics:
    """A Model's metrics: Keras's are updated on the device, the others on the host.

    `metrics`: The metrics by name. `indexes`: Which outputs are the loss, the prediction and the label; None passes
    every metric all outputs. `shows_tensors`: Whether the users' metrics see Tensors. `network`: The Keras network that
    is evaluated, whose layers may have metrics; None for any other network.

    Attributes:
        named: The metrics by name.
        indexes: As passed.
    """

    def __init__(
        self, metrics: Mapping[str, MetricLike], indexes: tuple[int, int, int] | None, *, shows_tensors: bool,
        network: Network | None = None,
    ) -> None:
        self._network = network
        self._convert: Callable[[Tree], Tree] = boundary.to_tensors if shows_tensors else boundary.to_backend_tensors
        self.named = metrics
        self.indexes = indexes
        kinds = () if indexes is None else (CompileMetric, KerasMetric)
        device = [metric for metric in metrics.values() if isinstance(metric, kinds) and metric.indexes is None]
        self._host = [metric for metric in metrics.values() if all(metric is not other for other in device)]
        self._device = DeviceMetrics(device)

    def clear(self) -> None:
        """Reset the metrics."""
        for metric in self.named.values():
            metric.clear()
        for metric in metrics_of_layers(self._network):
            metric.reset_state()

    def check_labels(
        self, outputs: tuple[Tensor, ...], masks: list[Tensor | None], weights: Tree, ignored: set[int]
    ) -> None:
        """Refuse labels out of range, of metrics that take class numbers.

        `outputs`: The outputs of the eval network. `masks`: The masks of its outputs. If there are any, labels are not
        checked: those masked out may be anything. `weights`: The weights of the samples, or None. `ignored`: Labels
        that the loss ignores.

        Raises: LabelOutOfRange if a label is not a class number.
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
                allowed = (*ignored, *sparse.ignored)
                outside = backend.first_outside(sparse.labels, sparse.classes, allowed, sparse.weights)
                if outside is not None:
                    raise backend.LabelOutOfRange("a metric", outside[1], sparse.classes)

    def update(self, outputs: tuple[Tensor, ...], masks: list[Tensor | None], weights: Tree) -> None:
        """Update each metric with its part of the eval network's outputs."""
        indexes = self.indexes
        if indexes is not None:
            prediction, label = outputs[indexes[1]], outputs[indexes[2]]
            begin = len(keras.tree.flatten(outputs[: indexes[1]]))
            prediction_masks = masks[begin : begin + len(keras.tree.flatten(prediction))]
            self._device.update(prediction, label, weights, prediction_masks)
        for metric in self._host:
            if indexes is None or getattr(metric, "indexes", None) is not None:
                metric.update(*self._convert(outputs))
            elif getattr(metric, "_takes_loss", False):
                metric.update(outputs[indexes[0]])
            else:
                metric.update(*self._convert((prediction, label)))

    def eval(self) -> dict[str, Any]:
        """Return the values by name."""
        of_layers = {metric.name: KerasMetric(metric) for metric in metrics_of_layers(self._network)}
        values: dict[str, Any] = {}
        for name, metric in (by_result(self.named) | of_layers).items():
            value = {name: metric.eval()}
            values |= flat_results(value) if isinstance(metric, (CompileMetric, KerasMetric)) else value
        return values


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The data, network and metrics of an evaluation.

    Attributes:
        feed: The data.
        call: The eval network, compiled.
        network: The eval network.
        set_train: Switches it to training or inference.
        metrics: The metrics.
        weighted: Whether a batch's third column is its sample weights.
        by_rows: Whether the mean loss weights a batch by its number of rows, as in Keras; otherwise all count the same.
        in_keras: Whether the network is Keras's: the results have the loss, and the losses of several outputs.
    """

    feed: Feed
    call: CompiledCall
    network: Network
    set_train: Callable[[bool], None]
    metrics: EvaluationMetrics
    weighted: bool = False
    by_rows: bool = False
    in_keras: bool = False

    def fields(self) -> dict[str, Any]:
        """Return the fields of the callbacks' arguments."""
        return {
            "eval_network": self.network,
            "valid_dataset": self.feed.dataset,
            "batch_num": self.feed.size or 0,
            "cur_step_num": 0,
        }


def evaluate(
    evaluation: Evaluation, callbacks: CallbackList, context: RunContext, arguments: CallbackArguments
) -> dict[str, Any]:
    """Evaluate the metrics, and for callbacks the mean loss of the batches if the outputs have a loss.

    Metrics are updated with a batch while the device runs the next one, unless a callback has step hooks.

    Returns: The metrics' values by name; without metrics, and for a Keras network, the mean loss as "loss".

    Raises: ValueError if the eval network returned fewer outputs than its indexes name, or a batch has no rows.
    """
    evaluation.set_train(False)
    metrics = evaluation.metrics
    metrics.clear()
    records = EpochRecords()
    # Results of batches that the metrics have not seen yet.
    pending: list[tuple[Any, ...]] = []
    max_pending = 0 if any(map(callbacks.listens, ("on_eval_step_begin", "on_eval_step_end"))) else 1
    keras_listens = callbacks.keras_listens("on_eval_step_end")
    callbacks.on_eval_begin(context)
    callbacks.on_eval_epoch_begin(context)
    step = 0
    for step, batch in enumerate(evaluation.feed.batches(), start=1):
        arguments._set(cur_step_num=step, eval_dataset_element=batch)
        callbacks.on_eval_step_begin(context)
        with _naming_batch(step):
            batch_rows = backend.refuse_empty(batch)
            outputs, masks, losses = evaluation.call(*batch)
        weights = batch[2] if evaluation.weighted and len(batch) > 2 else None
        if evaluation.feed.joint is not None:
            outputs, masks, losses, weights = whole((outputs, masks, losses, weights))
        arguments._set(net_outputs=outputs)
        checked = _checked_outputs(outputs, metrics.indexes)
        if metrics.indexes is not None:
            loss = keras.ops.mean(checked[metrics.indexes[0]])
            rows = np.array([batch_rows if evaluation.by_rows else 1])
            records.add(StepRecords([loss], rows=rows, metrics={name: [value] for name, value in losses.items()}))
        pending.append((checked, masks, weights))
        while len(pending) > max_pending:
            with _naming_batch(step + 1 - len(pending)):
                _update_metrics(evaluation, *pending.pop(0))
        if keras_listens:
            arguments._set(eval_results=_results(evaluation, records)[1])
        callbacks.on_eval_step_end(context)
        if context.get_stop_requested():
            break
    if not step:
        evaluation.feed.first()  # Says that there is none.
    for index, batch_results in enumerate(pending):
        with _naming_batch(step + 1 - len(pending) + index):
            _update_metrics(evaluation, *batch_results)
    callbacks.on_eval_epoch_end(context)
    values, results = _results(evaluation, records)
    arguments._set(metrics=values, eval_results=results)
    callbacks.on_eval_end(context)
    return values


def _results(evaluation: Evaluation, records: EpochRecords) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values of the batches so far, and those that callbacks see, which always have the loss."""
    steps = records.joined()
    values = evaluation.metrics.eval()
    if not len(steps):
        return values, values
    loss, *output_losses = (
        float(np.average(losses.astype(np.float64), weights=steps.rows))
        for losses in (steps.loss, *steps.metrics.values())
    )
    if evaluation.in_keras:
        values = {"loss": loss, **dict(zip(steps.metrics, output_losses, strict=True)), **values}
    return values or {"loss": loss}, {**values, "eval_loss": loss}


def _update_metrics(
    evaluation: Evaluation, outputs: tuple[Tensor, ...], masks: list[Tensor | None], weights: Tree
) -> None:
    """Update the metrics with the outputs of a batch, their masks and the sample weights."""
    evaluation.metrics.check_labels(outputs, masks, weights, evaluation.call.labels.ignored())
    evaluation.metrics.update(outputs, masks, weights)


def _naming_batch(number: int) -> contextlib.AbstractContextManager[None]:
    """Add the number of the batch to an error about its rows or its labels."""
    return backend.naming_position("Model.eval", lambda index: f"batch {number}")


def _checked_outputs(outputs: Tree, indexes: tuple[int, int, int] | None) -> tuple[Tensor, ...]:
    """Return the outputs of an eval network as a tuple, checked to have those at `indexes`."""
    results = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
    if indexes is not None and len(results) <= max(indexes):
        raise ValueError(
            f"Model.eval: the eval network must return at least {max(indexes) + 1} outputs for "
            f"eval_indexes={list(indexes)}; got {len(results)}. Write eval_indexes of outputs that exist."
        )
    return results


def output_indexes(indexes: Sequence[int] | None, eval_network: Network | None) -> tuple[int, int, int] | None:
    """Return which outputs of an eval network are the loss, the prediction and the label.

    `indexes`: The user's indexes. None means ``(0, 1, 2)`` for the network with its loss, and all outputs for a user's
    eval network. `eval_network`: The user's eval network, or None.

    Raises: ValueError if `indexes` are not 3 ints.
    """
    if indexes is None:
        return (0, 1, 2) if eval_network is None else None
    are_ints = isinstance(indexes, (list, tuple)) and all(isinstance(index, int) for index in indexes)
    if not are_ints or len(indexes) != 3:
        raise checks.fail_value("Model", "eval_indexes must be 3 ints", indexes, "eval_indexes=[0, 1, 2]")
    return tuple(indexes)  # type: ignore[return-value]
