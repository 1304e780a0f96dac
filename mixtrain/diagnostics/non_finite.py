"""Finding the first layer whose output, or its gradient, is not finite: an instrumented pass over one batch."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Literal

import keras
import numpy as np

from mixtrain import backend
from mixtrain.boundary import settled
from mixtrain.common.referenced_layers import referenced_variables
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.seed import stream_states

Kind = Literal["input", "forward", "loss", "gradient", "parameter", "none"]
Outputs = list[tuple[str, list[Any]]]  # the float outputs of each layer call, innermost first


@dataclasses.dataclass(frozen=True)
class Finding:
    """Where numbers first went wrong.

    Attributes:
        kind: "input": a column of the batch is not finite; "forward": a layer's output; "loss": only the loss;
            "gradient": only a gradient, at this loss scale, of a layer's output; "parameter": of a layer's parameter;
            "none": everything is finite.
        layer: The layer's path, or None.
    """

    kind: Kind
    layer: str | None = None

    def __str__(self) -> str:
        place = "the network itself" if self.layer == "" else f"layer {self.layer}"
        return {
            "input": "the batch itself holds values that are not finite; clean the data, a smaller loss scale cannot "
            "help",
            "forward": f"the first output that is not finite is that of {place}, in the forward pass; a smaller loss "
            f"scale cannot help: keep that layer in float32 (to_float), or look at its weights",
            "loss": "every layer's output is finite but the loss is not; a smaller loss scale cannot help: look at "
            "the loss function and the labels",
            "gradient": f"the forward pass is finite; the first gradient that is not finite, counted from the loss, "
            f"is that of the output of {place}",
            "parameter": f"the forward pass is finite; the first gradient that is not finite, counted from the loss, "
            f"is that of a parameter of {place}",
            "none": "a second pass over the batch at hand found every output and gradient finite",
        }[self.kind]


def find_non_finite(
    network: Any, loss_of: Callable[..., Any], batch: Sequence[Any], loss_scale: float
) -> Finding:
    """Run forward and backward once, layer by layer, and say where numbers first went wrong.

    Args:
        network: The network to look into.
        loss_of: Takes the columns of a batch, runs `network` and returns the loss.
        batch: The columns.
        loss_scale: What the loss is multiplied by before gradients are taken.

    Returns:
        The finding. Variables that the forward pass writes (moving statistics) are put back.
    """
    if not all(_finite(column) for column in keras.tree.flatten(list(batch))):
        return Finding("input")
    outputs, loss = _watched(network, lambda: loss_of(*batch), taps=None)
    for path, values in outputs:
        if not all(_finite(value) for value in values):
            return Finding("forward", path)
    if not _finite(loss):
        return Finding("loss")
    return _gradient_finding(network, lambda: loss_of(*batch), outputs, loss_scale)


def _gradient_finding(network: Any, run: Callable[[], Any], outputs: Outputs, loss_scale: float) -> Finding:
    """Look, from the loss backwards, at the gradients of each layer's outputs and of its own parameters."""
    taps = [[keras.ops.zeros_like(value) for value in values] for _, values in outputs]
    owned = _parameters_by_path(network)

    def scaled(*tapping: Any) -> tuple[Any, Any]:
        given = iter(tapping)
        _, tapped = _watched(network, run, taps=iter([[next(given) for _ in group] for group in taps]))
        return keras.ops.cast(tapped, "float32") * loss_scale, ()

    variables = [variable for group in owned.values() for variable in group]
    gradients = iter(backend.value_and_gradient(scaled, variables, [tap for group in taps for tap in group])[2])
    of_parameters = {path: [next(gradients) for _ in held] for path, held in owned.items()}
    of_outputs = [(path, [next(gradients) for _ in values]) for path, values in outputs]
    calls = collections.Counter(path for path, _ in of_outputs)
    for path, values in reversed(of_outputs):
        if not all(map(_finite_gradient, values)):
            return Finding("gradient", path)
        calls[path] -= 1
        # A gradient of a parameter is the sum over all calls of its layer, so it is looked at after the last of them.
        if calls[path] == 0 and not all(map(_finite_gradient, of_parameters.pop(path, ()))):
            return Finding("parameter", path)
    # Parameters of layers that are not called themselves, whose holder reads them.
    rest = (path for path, values in of_parameters.items() if not all(map(_finite_gradient, values)))
    found = next(rest, None)
    return Finding("none") if found is None else Finding("parameter", found)


def _parameters_by_path(network: Any) -> dict[str, list[Any]]:
    """Return the trainable variables by the path of the innermost layer that holds them."""
    owned: dict[str, list[Any]] = {}
    seen: set[int] = set()
    for node in reversed(list(tree_of(network).walk())):
        held = node.layer.trainable_params() if is_cell(node.layer) else getattr(node.layer, "trainable_variables", ())
        owned[node.path] = [variable for variable in held if id(variable) not in seen]
        seen |= {id(variable) for variable in held}
    return owned


def _watched(network: Any, run: Callable[[], Any], taps: Any) -> tuple[Outputs, Any]:
    """Run a forward pass; note the float outputs of each layer call, innermost first, adding a tap to each."""
    outputs: Outputs = []
    nodes = list(tree_of(network).walk())
    variables = [*referenced_variables([network, run]), *stream_states()]
    before = [(variable, backend.snapshot(variable)) for variable in variables]

    def watching(path: str) -> Callable[[Forward], Forward]:
        def wrap(forward: Forward) -> Forward:
            def call(*args: Any, **kwargs: Any) -> Any:
                result = settled(forward(*args, **kwargs))
                flat = keras.tree.flatten(result)
                places = [i for i, value in enumerate(flat) if _is_float_tensor(value)]
                if taps is not None:
                    for place, tap in zip(places, next(taps, []), strict=False):
                        flat[place] = flat[place] + tap
                outputs.append((path, [flat[place] for place in places]))
                return keras.tree.pack_sequence_as(result, flat)

            return call

        return wrap

    with contextlib.ExitStack() as stack:
        for node in nodes:
            stack.callback(interpose(node.layer, watching(node.path)))
        loss = run()
    for variable, value in before:
        variable.assign(value)
    return outputs, loss


def _is_float_tensor(value: Any) -> bool:
    return backend.is_tensor(value) and "float" in keras.backend.standardize_dtype(value.dtype)


def _finite_gradient(gradient: Any) -> bool:
    return gradient is None or bool(backend.all_finite([gradient]))


def _finite(value: Any) -> bool:
    if not _is_float_tensor(value):
        array = np.asarray(value) if not backend.is_tensor(value) else None
        return array is None or array.dtype.kind != "f" or bool(np.isfinite(array).all())
    return bool(np.isfinite(backend.to_numpy(value)).all())
