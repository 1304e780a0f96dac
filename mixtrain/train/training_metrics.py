"""`TrainingMetrics`: Keras's metrics of a Model while it trains, updated inside the compiled step."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np

from mixtrain import backend
from mixtrain.nn.metrics import KerasMetric
from mixtrain.step.loss_cell import SeenBatch
from mixtrain.train.keras_metrics import (
    NOT_FOR_A_GRAPH,
    CompileMetric,
    flat_results,
    give_masks,
    metrics_of_layers,
    update_metric,
)
from mixtrain.train.records import StepRecords

# Rows of the zeros that a metric is shown where the number of rows is open.
_ROWS = 2


class TrainingMetrics:
    """The metrics that a step takes its batch into once the update was applied; a skipped step leaves them out.

    They are the objects that evaluations use too, as in Keras: an evaluation begins with `reset`, and an epoch.

    Args:
        metrics: The Model's metrics by the names that results have; those that are Keras's are taken.
        network: The Model's network. Of a Keras one the losses of several outputs and the metrics that its layers
            update by themselves are told too.
    """

    def __init__(self, metrics: Mapping[str, Any], network: Any) -> None:
        self._metrics: dict[str, Any] = {
            name: metric for name, metric in metrics.items()
            if isinstance(metric, (CompileMetric, KerasMetric)) and metric.indexes is None
        }
        self._of_outputs: dict[str, keras.metrics.Mean] = {}
        self._network = network if isinstance(network, keras.Layer) else None
        self._made: set[str] = set()

    @property
    def observes(self) -> bool:
        """Whether there may be something to tell of a step."""
        return bool(self._metrics) or self._network is not None

    # ---- inside the step --------------------------------------------------------------------------------------
    def variables(self, seen: SeenBatch) -> list[keras.Variable]:
        """Return the variables that `take_in` writes, made for what a batch looks like."""
        with backend.outside_graph():
            for name in seen.output_losses if self._network is not None else ():
                if name not in self._of_outputs:
                    self._of_outputs[name] = keras.metrics.Mean(name=name)
            for name in [name for name in self._metrics if name not in self._made]:
                self._made.add(name)
                self._make(name, seen)
        made = [metric.metric for metric in self._metrics.values()]
        return [variable for metric in (*made, *self._of_outputs.values()) for variable in metric.variables]

    def _make(self, name: str, seen: SeenBatch) -> None:
        """Let a metric make its variables, by showing it zeros."""
        metric = self._metrics[name]
        outputs, label, weights = keras.tree.map_structure(_zeros_like, seen[:3])
        self._update(name, metric, outputs, label, weights)
        metric.clear()

    def take_in(self, seen: SeenBatch) -> None:
        """Update the metrics with a batch whose update was applied."""
        give_masks(seen.outputs, seen.masks)
        for name, metric in list(self._metrics.items()):
            self._update(name, metric, seen.outputs, seen.label, seen.weights)
        for name, metric in self._of_outputs.items():
            rows = keras.ops.shape(keras.tree.flatten(seen.outputs)[0])[0]
            metric.update_state(seen.output_losses[name], sample_weight=rows)

    def _update(self, name: str, metric: Any, outputs: Any, label: Any, weights: Any) -> None:
        """Update a metric; one that a graph cannot hold is left out from here on."""
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
        found: dict[str, Any] = {name: metric.metric.result() for name, metric in self._metrics.items()}
        found |= {name: metric.result() for name, metric in self._of_outputs.items()}
        found |= {metric.name: metric.result() for metric in metrics_of_layers(self._network)}
        return {name: backend.to_tensor(value) for name, value in flat_results(found).items()}

    # ---- outside ----------------------------------------------------------------------------------------------
    def reset(self) -> None:
        """Begin anew, as at the start of an epoch."""
        for metric in self._metrics.values():
            metric.clear()
        for metric in (*self._of_outputs.values(), *metrics_of_layers(self._network)):
            metric.reset_state()


def last_values(records: StepRecords) -> dict[str, Any]:
    """Return the value of each metric after some steps: a float, or an array where the metric gives one."""
    columns = records.metrics if len(records) else {}
    return {name: float(rows[-1]) if rows.ndim == 1 else rows[-1] for name, rows in columns.items()}


def _zeros_like(value: Any) -> Any:
    """Return zeros of a tensor's shape and dtype, on real memory."""
    if value is None:
        return None
    shape: Sequence[Any] = [_ROWS if size is None else size for size in value.shape]
    return backend.to_tensor(np.zeros(shape, keras.backend.standardize_dtype(value.dtype)))
