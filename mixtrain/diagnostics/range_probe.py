"""`measured_ranges`: counts of the values of each layer's outputs and gradients on one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import keras

from mixtrain import backend
from mixtrain.diagnostics.counting import in_one_program
from mixtrain.diagnostics.layer_calls import layer_gradients
from mixtrain.diagnostics.ranges import Kind, class_counts, largest_bits
from mixtrain.typing import Network, Tensor, Tree


def measured_ranges(
    network: Network, loss_of: Callable[..., Tensor], batch: Sequence[Tree], loss_scale: Tensor, max_values: int | None
) -> tuple[Tensor, Tensor, list[tuple[Kind, str]]]:
    """Run a batch forward and backward, and count the values of each layer's outputs and gradients; can be compiled.

    Returns for each tensor the counts of `class_counts`, the bits of the largest magnitude, and its kind and path.
    Gradients are counted with `loss_scale`; of a tensor at most `max_values` values are counted, evenly spaced.
    Variables that the forward pass writes are restored.
    """
    gradients = layer_gradients(network, lambda: loss_of(*batch), loss_scale)
    calls = gradients.calls
    measured: list[tuple[Kind, str, Tensor]] = []
    for call in calls:
        measured += [("activation", call.path, value) for value in call.outputs]
    for call, group in zip(calls, gradients.of_outputs, strict=True):
        measured += [("gradient", call.path, value) for value in group if value is not None]
    for path, group in gradients.of_parameters.items():
        measured += [("parameter", path, value) for value in group if value is not None]

    def count(*tensors: Tensor) -> tuple[Tensor, Tensor]:
        largest = keras.ops.stack([largest_bits(value) for value in tensors])
        return class_counts(tensors, max_values), largest

    tensors = [keras.ops.cast(backend.densified(value), "float32") for _, _, value in measured]
    classes, largest = in_one_program(count, tensors)
    return classes, largest, [(kind, path) for kind, path, _ in measured]
