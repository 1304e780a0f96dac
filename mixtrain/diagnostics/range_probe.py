"""`measured_ranges`: one batch run forward and backward, every layer's outputs and gradients counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import keras

from mixtrain import backend
from mixtrain.diagnostics.counting import in_one_program
from mixtrain.diagnostics.layer_calls import layer_gradients
from mixtrain.diagnostics.ranges import Kind, class_counts, largest_bits


def measured_ranges(
    network: Any, loss_of: Callable[..., Any], batch: Sequence[Any], loss_scale: Any, most: int | None
) -> tuple[Any, Any, list[tuple[Kind, str]]]:
    """Count the values of each layer's outputs and gradients; can be compiled.

    Args:
        network: The network to look into.
        loss_of: Takes the columns of a batch, runs `network` and returns the loss.
        batch: The columns.
        loss_scale: What the loss is multiplied by; gradients are counted with it.
        most: How many values of a tensor are counted at most, evenly spaced.

    Returns:
        ``(classes, largest, names)``: of each tensor the counts of `class_counts`, the bits of the largest magnitude,
        and its kind and path. What the forward pass writes is put back.
    """
    gradients = layer_gradients(network, lambda: loss_of(*batch), loss_scale)
    calls = gradients.calls
    found: list[tuple[Kind, str, Any]] = []
    for call in calls:
        found += [("activation", call.path, value) for value in call.outputs]
    for call, group in zip(calls, gradients.of_outputs, strict=True):
        found += [("gradient", call.path, value) for value in group if value is not None]
    for path, group in gradients.of_parameters.items():
        found += [("parameter", path, value) for value in group if value is not None]
    tensors = [keras.ops.cast(backend.densified(value), "float32") for _, _, value in found]
    classes, largest = in_one_program(_counted(most), tensors)
    return classes, largest, [(kind, path) for kind, path, _ in found]


def _counted(most: int | None) -> Callable[..., tuple[Any, Any]]:
    def count(*tensors: Any) -> tuple[Any, Any]:
        largest = keras.ops.stack([largest_bits(value) for value in tensors])
        return class_counts(tensors, most), largest

    return count
