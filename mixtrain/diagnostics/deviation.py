"""Relative errors of a network in half precision compared with float32, layer by layer."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.layer_calls import is_float_tensor, layer_gradients, parameters_by_path
from mixtrain.diagnostics.replay import is_within
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import tree_of
from mixtrain.typing import Layer, Network, Tensor, Tree

# The relative error, of gradients or of what a layer adds to its outputs, from which layers are to be kept in float32.
TOLERANCE: Final = 0.1
# Outputs in float32 of this part of the inputs are what rounding left of a sum that is 0.
_ROUNDING: Final = 2.0**-20
# What the loss scale is divided by if gradients overflow.
_SCALE_DIVISOR: Final = 16.0
# Methods of the cells of Keras's recurrent layers that return masks of dropout.
_MASKS: Final = ("get_dropout_mask", "get_recurrent_dropout_mask")


@dataclasses.dataclass(frozen=True)
class LayerError:
    """The error of a layer relative to float32: of its outputs, what it adds, and of its parameters' gradients."""

    path: str
    forward: float
    added: float
    gradient: float


@dataclasses.dataclass(frozen=True)
class Pass:
    """The values of one pass over a batch, float64.

    `calls`: ``(path, inputs, outputs)``, in the order in which calls end. `parameters`: The unscaled gradients of each
    layer's parameters, by path. `loss`: The loss, of all rows.
    """

    calls: list[tuple[str, list[np.ndarray], list[np.ndarray]]]
    parameters: dict[str, list[np.ndarray]]
    loss: float

    @property
    def finite(self) -> bool:
        return all(map(_finite, self.parameters.values()))

    def first_non_finite(self) -> float:
        """Return the index of the first call with an output that is not finite; `math.inf` if there is none."""
        return next((index for index, (*_, outputs) in enumerate(self.calls) if not _finite(outputs)), math.inf)


def run_pass(
    network: Network, loss_of: Callable[..., Tensor], batch: Sequence[Tree], loss_scale: float,
    compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
) -> Pass:
    """Run a batch forward and backward, and return its values; variables that the forward pass writes are restored.

    `compiled`: Compiles a function of tensors, for the numbers of a compiled step; None to run layer by layer.
    """
    paths: list[str] = []

    def run(*columns: Tree) -> Any:
        gradients = layer_gradients(network, lambda: loss_of(*columns), loss_scale)
        paths[:] = [call.path for call in gradients.calls]
        groups = [_given(group) for group in gradients.of_parameters.values()]
        return [(call.inputs, call.outputs) for call in gradients.calls], groups, gradients.loss

    with drawing_in_float32(network):
        calls, groups, loss = run(*batch) if compiled is None else backend.call_with_branches(compiled(run), *batch)
    owners = parameters_by_path(network)
    return Pass(
        [(path, _arrays(inputs), _arrays(outputs)) for path, (inputs, outputs) in zip(paths, calls, strict=True)],
        {path: [value / loss_scale for value in _arrays(group)] for path, group in zip(owners, groups, strict=True)},
        float(_arrays([loss])[0].mean()),
    )


@contextlib.contextmanager
def drawing_in_float32(network: Network) -> Iterator[None]:
    """Draw random numbers in float32 during a context, so that passes in any dtype drop the same values."""
    with contextlib.ExitStack() as stack:
        for node in tree_of(network).walk():
            for undo in _drawing_in_float32(node.layer):
                stack.callback(undo)
        yield


def _drawing_in_float32(layer: Layer) -> Iterator[Callable[[], None]]:
    """Let a Keras layer draw in float32 what it draws in the dtype of its input or of its policy; yield the undos."""
    for name in _MASKS:
        if hasattr(layer, name):  # The cell of a recurrent layer.
            yield interpose(layer, _cast_around, method=name)
    drawing = isinstance(layer, keras.layers.Layer) and getattr(layer, "seed_generator", None) is not None
    if not drawing or layer.trainable_variables:
        return

    def wrap(forward: Forward) -> Forward:
        def call(*args: Any, **kwargs: Any) -> Any:
            policy, layer.dtype_policy = layer.dtype_policy, keras.DTypePolicy("float32")
            try:
                return forward(*args, **kwargs)
            finally:
                layer.dtype_policy = policy

        return _cast_around(call)

    yield interpose(layer, wrap)


def _cast_around(forward: Forward) -> Forward:
    """Return a function of a tensor that runs in float32, and returns tensors in the dtype of that tensor."""

    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_float_tensor(value):
            return forward(value, *args, **kwargs)
        result = forward(keras.ops.cast(value, "float32"), *args, **kwargs)
        return keras.tree.map_structure(
            lambda part: keras.ops.cast(part, value.dtype) if is_float_tensor(part) else part, result
        )

    return call


def run_pass_in_range(
    network: Network, loss_of: Callable[..., Tensor], batch: Sequence[Tree], loss_scale: float
) -> tuple[Pass, float]:
    """Run a pass at a loss scale or, if only its gradients overflow, at a smaller one; return it and its scale.

    A scale that no smaller one improves on is returned as it is.
    """
    scale = loss_scale
    result = run_pass(network, loss_of, batch, scale)
    while not result.finite and result.first_non_finite() == math.inf and scale > 1:
        scale = max(scale / _SCALE_DIVISOR, 1.0)
        result = run_pass(network, loss_of, batch, scale)
    return result, scale if result.finite else loss_scale


def deviating(layers: Sequence[LayerError], tolerance: float = TOLERANCE) -> list[LayerError]:
    """Return the layers that add more than a relative error to their outputs, beyond what the layers inside them add.

    A value that is not finite is not an error of a layer, but an overflow.
    """
    return [
        layer for layer in layers
        if tolerance < layer.added - sum(
            max(other.added, 0.0) for other in layers if other is not layer and is_within(other.path, layer.path)
        ) < math.inf
    ]


def _given(values: Sequence[Tensor | None]) -> list[Tensor]:
    return [value for value in values if value is not None]


def _arrays(values: Sequence[Tensor]) -> list[np.ndarray]:
    dense = [keras.ops.cast(backend.densified(value), "float32") for value in values]
    return [backend.to_numpy(value).astype(np.float64) for value in dense]


def _finite(values: Sequence[np.ndarray]) -> bool:
    return all(np.isfinite(value).all() for value in values)


def _squares(values: Sequence[np.ndarray]) -> float:
    return sum(float(np.square(value).sum()) for value in values)


def relative_error(values: Sequence[np.ndarray], reference: Sequence[np.ndarray]) -> float:
    """Return the L2 norm of the difference relative to that of the reference; infinite if a value is not finite."""
    if not _finite(values):
        return math.inf
    difference = _squares([value - other for value, other in zip(values, reference, strict=True)])
    total = _squares(reference)
    return math.sqrt(difference / total) if total else (math.inf if difference else 0.0)


def gradient_error(result: Pass, reference: Pass) -> float:
    """Return the relative error of all gradients of parameters as one vector; inf if a loss alone is not finite."""
    if math.isfinite(reference.loss) and not math.isfinite(result.loss):
        return math.inf
    values, expected = ([value for group in run.parameters.values() for value in group] for run in (result, reference))
    return relative_error(values, expected)


def forward_errors(result: Pass, reference: Pass) -> dict[str, tuple[float, float]]:
    """Return, by path, the largest relative error of a layer's outputs, and the largest increase over its inputs."""
    errors: dict[str, tuple[float, float]] = {}
    for (path, inputs, outputs), (_, plain_inputs, plain_outputs) in zip(result.calls, reference.calls, strict=True):
        error = relative_error(outputs, plain_outputs)
        input_error = relative_error(inputs, plain_inputs) if len(inputs) == len(plain_inputs) else 0.0
        of_rounding = error > 1 and _squares(plain_outputs) <= _ROUNDING**2 * _squares(plain_inputs)
        unknown = input_error == math.inf or of_rounding and _finite(outputs)
        increase = 0.0 if unknown else error - input_error
        max_error, max_increase = errors.get(path, (0.0, 0.0))
        errors[path] = max(max_error, error), max(max_increase, increase)
    return errors


def layer_errors(result: Pass, reference: Pass) -> tuple[LayerError, ...]:
    """Return the errors of each layer, in the order in which calls end."""
    gradients = {
        path: relative_error(group, reference.parameters[path]) for path, group in result.parameters.items() if group
    }
    forward = forward_errors(result, reference)
    return tuple(LayerError(path, *errors, gradients.get(path, 0.0)) for path, errors in forward.items())
