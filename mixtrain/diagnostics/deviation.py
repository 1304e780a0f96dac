"""How far a network's numbers in half precision are from those in float32, layer by layer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.layer_calls import layer_gradients

# By what the loss scale is divided where it is too large.
_SMALLER: Final = 16.0


@dataclasses.dataclass(frozen=True)
class Pass:
    """The numbers of one pass over a batch, float64.

    Attributes:
        calls: ``(path, inputs, outputs)`` of each call of a layer, in the order in which calls end.
        parameters: The gradients of the parameters of each layer by path, the loss scale divided out.
    """

    calls: list[tuple[str, list[np.ndarray], list[np.ndarray]]]
    parameters: dict[str, list[np.ndarray]]

    @property
    def finite(self) -> bool:
        """Whether all gradients are finite."""
        return all(np.isfinite(value).all() for group in self.parameters.values() for value in group)

    def first_non_finite(self) -> float:
        """Return the number of the first call with an output that is not finite; `math.inf` where there is none."""
        for number, (_, _, outputs) in enumerate(self.calls):
            if not all(np.isfinite(value).all() for value in outputs):
                return number
        return math.inf


def run_pass(network: Any, loss_of: Callable[..., Any], batch: Sequence[Any], loss_scale: float) -> Pass:
    """Run a batch forward and backward, and keep the numbers; what the forward pass writes is put back."""
    gradients = layer_gradients(network, lambda: loss_of(*batch), loss_scale)
    return Pass(
        [(call.path, _arrays(call.inputs), _arrays(call.outputs)) for call in gradients.calls],
        {path: [value / loss_scale for value in _arrays(group)] for path, group in gradients.of_parameters.items()},
    )


def run_pass_in_range(
    network: Any, loss_of: Callable[..., Any], batch: Sequence[Any], loss_scale: float
) -> tuple[Pass, float]:
    """Run a pass at a loss scale or, where gradients overflow at it though the forward pass does not, at a smaller one.

    Returns:
        The pass, and its loss scale.
    """
    found = run_pass(network, loss_of, batch, loss_scale)
    while not found.finite and found.first_non_finite() == math.inf and loss_scale > 1:
        loss_scale = max(loss_scale / _SMALLER, 1.0)
        found = run_pass(network, loss_of, batch, loss_scale)
    return found, loss_scale


def _arrays(values: Sequence[Any]) -> list[np.ndarray]:
    dense = [keras.ops.cast(backend.densified(value), "float32") for value in values if value is not None]
    return [backend.to_numpy(value).astype(np.float64) for value in dense]


def relative_error(found: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> float:
    """Return the L2 norm of the difference by that of the reference; infinite where something is not finite."""
    if not all(np.isfinite(value).all() for value in found):
        return math.inf
    difference = sum(float(np.square(one - other).sum()) for one, other in zip(found, reference, strict=True))
    whole = sum(float(np.square(value).sum()) for value in reference)
    return math.sqrt(difference / whole) if whole else (math.inf if difference else 0.0)


def gradient_error(found: Pass, reference: Pass) -> float:
    """Return the relative error of all gradients of parameters as one vector."""
    one, other = ([value for group in each.parameters.values() for value in group] for each in (found, reference))
    return relative_error(one, other)


def forward_errors(found: Pass, reference: Pass) -> dict[str, tuple[float, float]]:
    """Return by path the largest relative error of a layer's outputs, and by how much it exceeds that of its inputs."""
    errors: dict[str, tuple[float, float]] = {}
    for (path, inputs, outputs), (_, plain_inputs, plain_outputs) in zip(found.calls, reference.calls, strict=True):
        error = relative_error(outputs, plain_outputs)
        before = relative_error(inputs, plain_inputs) if len(inputs) == len(plain_inputs) else 0.0
        added = 0.0 if before == math.inf else error - before
        known = errors.get(path, (0.0, 0.0))
        errors[path] = max(known[0], error), max(known[1], added)
    return errors
