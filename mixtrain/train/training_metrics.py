"""`TrainingMetrics`: a Model's Keras metrics during training, updated inside the compiled step."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.metrics import KerasMetric
from mixtrain.metrics.worst_value import worst_like
from mixtrain.step.network_loss import BatchOutputs
from mixtrain.train.keras_metrics import (
    NOT_FOR_A_GRAPH,
    CompileMetric,
    by_result,
    flat_results,
    give_masks,
    metrics_of_layers,
    update_metric,
)
from mixtrain.train.records import StepRecords
from mixtrain.typing import Network, Tree

# Number of rows of the zeros that build a metric, if the batch size is dynamic.
_ROWS = 2


class TrainingMetrics:
    """The metrics that a step updates if its update of the weights is applied, not if the step is skipped.

    Evaluations use the same objects, as in Keras: each evaluation and each epoch begins with a reset.

    `metrics`: The Model's metrics by their names in results; only Keras's are used. `network`: The Model's network.
    Results of a Keras network include the losses of several outputs and the metrics of its layers.
    """

    def __init__(self, metrics: Mapping[str, Any], network: Network) -> None:
        self._metrics: dict[str, Any] = {
            name: metric for name, metric in metrics.items()
            if isinstance(metric, (CompileMetric, KerasMetric)) and metric.indexes is None
        }
        self._output_losses: dict[str, keras.metrics.Mean] = {}
        self._network = network if isinstance(network, keras.Layer) else None
        self._built: set[str] = set()

    @property
    def observes(self) -> bool:
        """Whether there may be a value to report for a step."""
        return bool(self._metrics) or self._network is not None

    # ---- inside the step --------------------------------------------------------------------------------------
    def variables(self, batch: BatchOutputs) -> list[keras.Variable]:
        """Return the variables that `update` writes, created for the shapes of a batch."""
        with backend.eager_scope():
            for name in batch.output_losses if self._network is not None else ():
                if name not in self._output_losses:
                    self._output_losses[name] = keras.metrics.Mean(name=name)
            for name in [name for name in self._metrics if name not in self._built]:
                self._built.add(name)
                self._build(name, batch)
        metrics = [metric.metric for metric in self._metrics.values()]
        return [variable for metric in (*metrics, *self._output_losses.values()) for variable in metric.variables]

    def _build(self, name: str, batch: BatchOutputs) -> None:
        """Create a metric's variables by an update with zeros."""
        metric = self._metrics[name]
        outputs, label, weights = keras.tree.map_structure(_zeros_like, batch[:3])
        self._update_metric(name, metric, outputs, label, weights)
        metric.clear()

    def update(self, batch: BatchOutputs) -> None:
        """Update the metrics with the batch of a step that was applied."""
        give_masks(batch.outputs, batch.masks)
        for name, metric in list(self._metrics.items()):
            self._update_metric(name, metric, batch.outputs, batch.label, batch.weights)
        for name, metric in self._output_losses.items():
            rows = keras.ops.shape(keras.tree.flatten(batch.outputs)[0])[0]
            metric.update_state(batch.output_losses[name], sample_weight=rows)

    def _update_metric(self, name: str, metric: Any, outputs: Tree, label: Tree, weights: Tree | None) -> None:
        """Update a metric; one that cannot be compiled is left out from now on."""
        try:
            update_metric(metric, outputs, label, weights)
        except NOT_FOR_A_GRAPH as error:
            del self._metrics[name]
            warnings.warn(
                f"Model: the metric {name!r} must be one that can be compiled to be computed while training; got "
                f"{type(error).__name__}: {str(error).partition(chr(10))[0]}. It is evaluated all the same. Write it "
                "with keras.ops, without a look at values, to see it in training too.",
                stacklevel=2,
            )

    def results(self) -> dict[str, Any]:
        """Return the running values by name, as tensors."""
        results = flat_results({name: metric.result() for name, metric in self._by_name().items()})
        return {name: backend.to_tensor(value) for name, value in results.items()}

    def _by_name(self) -> dict[str, keras.metrics.Metric]:
        """Return Keras's metrics by the names of their results."""
        metrics = {name: metric.metric for name, metric in by_result(self._metrics).items()} | self._output_losses
        return metrics | {metric.name: metric for metric in metrics_of_layers(self._network)}

    # ---- outside the step -------------------------------------------------------------------------------------
    def worst_values(self) -> dict[str, Any]:
        """Return by name what an epoch without an applied step reports; see `worst_like`."""
        metrics = self._by_name()
        return flat_results({name: worst_like(metric.result(), name, metric) for name, metric in metrics.items()})

    def reset(self) -> None:
        """Reset the metrics, as at the start of an epoch."""
        for metric in self._metrics.values():
            metric.clear()
        for metric in (*self._output_losses.values(), *metrics_of_layers(self._network)):
            metric.reset_state()


def last_values(records: StepRecords) -> dict[str, Any]:
    """Return the value of each metric after the last step: a float, or an array if the metric returns one."""
    columns = records.metrics if len(records) else {}
    return {name: float(rows[-1]) if rows.ndim == 1 else rows[-1] for name, rows in columns.items()}


def _zeros_like(value: Tree) -> Tree:
    """Return zeros of a tensor's shape and dtype; the tensor may be symbolic."""
    if value is None:
        return None
    shape: Sequence[Any] = [_ROWS if size is None else size for size in value.shape]
    return backend.to_tensor(np.zeros(shape, keras.backend.standardize_dtype(value.dtype)))
