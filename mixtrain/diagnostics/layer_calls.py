"""The tensors of each call of a layer in one pass over a batch, and the gradients of its outputs and parameters."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras

from mixtrain import backend
from mixtrain.boundary import settled
from mixtrain.common.referenced_layers import referenced_variables
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.seed import stream_states


@dataclasses.dataclass(frozen=True)
class LayerCall:
    """One call of a layer.

    Attributes:
        path: The layer's path.
        inputs: The float tensors that came in, after the casts of the plan.
        outputs: Those that came out.
    """

    path: str
    inputs: list[Any]
    outputs: list[Any]


@dataclasses.dataclass(frozen=True)
class LayerGradients:
    """The gradients of one pass.

    Attributes:
        calls: Its calls of layers, in the order in which they end.
        loss: Its loss.
        of_outputs: The gradients of the outputs of each call.
        of_parameters: The gradients of the parameters that a layer owns, by its path.
    """

    calls: list[LayerCall]
    loss: Any
    of_outputs: list[list[Any]]
    of_parameters: dict[str, list[Any]]


def watched(
    network: Any, run: Callable[[], Any], taps: Iterator[list[Any]] | None = None
) -> tuple[list[LayerCall], Any]:
    """Run a forward pass; note the float tensors of each layer call, innermost first, adding a tap to each output."""
    calls: list[LayerCall] = []
    nodes = list(tree_of(network).walk())
    variables = [*referenced_variables([network, run]), *stream_states()]
    before = [(variable, backend.snapshot(variable)) for variable in variables]

    def watching(path: str) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def call(*args: Any, **kwargs: Any) -> Any:
                inputs = list(filter(is_float_tensor, keras.tree.flatten(settled((args, kwargs)))))
                result = settled(forward(*args, **kwargs))
                flat = keras.tree.flatten(result)
                places = [i for i, value in enumerate(flat) if is_float_tensor(value)]
                if taps is not None:
                    for place, tap in zip(places, next(taps, []), strict=False):
                        flat[place] = flat[place] + tap
                calls.append(LayerCall(path, inputs, [flat[place] for place in places]))
                return keras.tree.pack_sequence_as(result, flat)

            return call

        return wrap

    with contextlib.ExitStack() as stack:
        for node in nodes:
            stack.callback(interpose(node.layer, watching(node.path)))
        loss = run()
    for variable, value in before:
        variable.assign(value)
    return calls, loss


class Backward:
    """A pass forward, and the gradients of each layer's outputs and parameters at any loss scale.

    Args:
        network: The network to look into.
        run: Runs it and returns the loss.

    Attributes:
        calls: The calls of its layers, in the order in which they end.
        loss: The loss.
    """

    def __init__(self, network: Any, run: Callable[[], Any]) -> None:
        self._network = network
        self._run = run
        self.calls, self.loss = watched(network, run)
        self._owned = _parameters_by_path(network)

    def at(self, loss_scale: Any) -> LayerGradients:
        """Return the gradients at a loss scale, a float or scalar tensor, by another pass."""
        return self.at_each([loss_scale])[0]

    def at_each(self, loss_scales: Sequence[Any]) -> list[LayerGradients]:
        """Return the gradients at several loss scales, by one pass forward and one backward for each."""
        taps = [[keras.ops.zeros_like(value) for value in call.outputs] for call in self.calls]

        def tapped(*tapping: Any) -> tuple[Any, Any]:
            given = iter(tapping)
            calls, loss = watched(self._network, self._run, iter([[next(given) for _ in group] for group in taps]))
            tensors = [(call.inputs, call.outputs) for call in calls]
            return keras.ops.cast(loss, "float32"), (tensors, settled(loss))

        variables = [variable for group in self._owned.values() for variable in group]
        scales = [keras.ops.convert_to_tensor(scale, "float32") for scale in loss_scales]
        _, (tensors, loss), found = backend.value_and_gradients(
            tapped, variables, [tap for group in taps for tap in group], scales
        )
        calls = [LayerCall(call.path, *groups) for call, groups in zip(self.calls, tensors, strict=True)]
        return [self._gradients(calls, loss, iter(gradients), taps) for gradients in found]

    def _gradients(
        self, calls: list[LayerCall], loss: Any, gradients: Iterator[Any], taps: Sequence[Sequence[Any]]
    ) -> LayerGradients:
        of_parameters = {path: [next(gradients) for _ in held] for path, held in self._owned.items()}
        return LayerGradients(calls, loss, [[next(gradients) for _ in group] for group in taps], of_parameters)


def _parameters_by_path(network: Any) -> dict[str, list[Any]]:
    """Return the trainable variables by the path of the innermost layer that holds them."""
    owned: dict[str, list[Any]] = {}
    seen: set[int] = set()
    for node in reversed(list(tree_of(network).walk())):
        held = node.layer.trainable_params() if is_cell(node.layer) else getattr(node.layer, "trainable_variables", ())
        owned[node.path] = [variable for variable in held if id(variable) not in seen]
        seen |= {id(variable) for variable in held}
    return owned


def is_float_tensor(value: Any) -> bool:
    """Whether a value is a backend tensor of a floating-point format."""
    return backend.is_tensor(value) and "float" in keras.backend.standardize_dtype(value.dtype)
