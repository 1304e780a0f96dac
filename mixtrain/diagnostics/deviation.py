"""Relative errors of a network in half precision compared with float32, layer by layer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.layer_calls import layer_gradients
from mixtrain.typing import Network, Tensor, Tree

# What the loss scale is divided by if gradients overflow.
_SCALE_DIVISOR: Final = 16.0


@dataclasses.dataclass(frozen=True)
class Pass:
    """The values of one pass over a batch, float64.

    `calls`: ``(path, inputs, outputs)``, in the order in which calls end. `parameters`: The unscaled gradients of each
    layer's parameters, by path.
    """

    calls: list[tuple[str, list[np.ndarray], list[np.ndarray]]]
    parameters: dict[str, list[np.ndarray]]

    @property
    def finite(self) -> bool:
        return all(np.isfinite(value).all() for group in self.parameters.values() for value in group)

    def first_non_finite(self) -> float:
        """Return the index of the first call with an output that is not finite; `math.inf` if there is none."""
        for index, (_, _, outputs) in enumerate(self.calls):
            if not all(np.isfinite(value).all() for value in outputs):
                return index
        return math.inf


def run_pass(network: Network, loss_of: Callable[..., Tensor], batch: Sequence[Tree], loss_scale: float) -> Pass:
    """Run a batch forward and backward, and return its values; variables that the forward pass writes are restored."""
    gradients = layer_gradients(network, lambda: loss_of(*batch), loss_scale)
    return Pass(
        [(call.path, _arrays(call.inputs), _arrays(call.outputs)) for call in gradients.calls],
        {path: [value / loss_scale for value in _arrays(group)] for path, group in gradients.of_parameters.items()},
    )


def run_pass_in_range(
    network: Network, loss_of: Callable[..., Tensor], batch: Sequence[Tree], loss_scale: float
) -> tuple[Pass, float]:
    """Run a pass at a loss scale or, if only its gradients overflow, at a smaller one; return it and its scale."""
    result = run_pass(network, loss_of, batch, loss_scale)
    while not result.finite and result.first_non_finite() == math.inf and loss_scale > 1:
        loss_scale = max(loss_scale / _SCALE_DIVISOR, 1.0)
        result = run_pass(network, loss_of, batch, loss_scale)
    return result, loss_scale


def _arrays(values: Sequence[Tensor | None]) -> list[np.ndarray]:
    dense = [keras.ops.cast(backend.densified(value), "float32") for value in values if value is not None]
    return [backend.to_numpy(value).astype(np.float64) for value in dense]


def relative_error(values: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> float:
    """Return the L2 norm of the difference relative to that of the reference; infinite if a value is not finite."""
    if not all(np.isfinite(value).all() for value in values):
        return math.inf
    difference = sum(float(np.square(value - other).sum()) for value, other in zip(values, reference, strict=True))
    total = sum(float(np.square(other).sum()) for other in reference)
    return math.sqrt(difference / total) if total else (math.inf if difference else 0.0)


def gradient_error(result: Pass, reference: Pass) -> float:
    """Return the relative error of all gradients of parameters as one vector."""
    values, expected = ([value for group in run.parameters.values() for value in group] for run in (result, reference))
    return relative_error(values, expected)


def forward_errors(result: Pass, reference: Pass) -> dict[str, tuple[float, float]]:
    """Return, by path, the largest relative error of a layer's outputs, and the largest increase over its inputs."""
    errors: dict[str, tuple[float, float]] = {}
    for (path, inputs, outputs), (_, plain_inputs, plain_outputs) in zip(result.calls, reference.calls, strict=True):
        error = relative_error(outputs, plain_outputs)
        input_error = relative_error(inputs, plain_inputs) if len(inputs) == len(plain_inputs) else 0.0
        increase = 0.0 if input_error == math.inf else error - input_error
        max_error, max_increase = errors.get(path, (0.0, 0.0))
        errors[path] = max(max_error, error), max(max_increase, increase)
    return errors
