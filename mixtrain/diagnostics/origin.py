"""`Origins`: finds the line of the user's code whose operation first computed a value that is not finite."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.finding import Finding
from mixtrain.diagnostics.layer_calls import parameters_by_path, record_calls
from mixtrain.dtype import as_dtype, float_format
from mixtrain.network.interpose import Forward, interpose
from mixtrain.network.walk import tree_of
from mixtrain.typing import Network, Tensor, Tree

# The codes of values: finite, -inf as in a mask, and others that are not finite.
_FINITE, _MASKED, _BAD = range(3)
# The operations of TensorFlow and JAX that change a dtype, and those that compute nothing.
_CASTS: Final = ("Cast", "convert_element_type")
_MOVES: Final = ("Reshape", "reshape", "Transpose", "transpose", "ExpandDims", "Squeeze", "squeeze", "Identity")
# Where the operations of a layer find what is not finite in a tensor, or in a weight, that none of them made.
_OF_INPUT: Final = "the cast of its input"


def _entered(forward: Forward) -> Forward:
    """Return a function that does the same, whose frame on the stack marks the operations inside it."""

    def entered(*args: Any, **kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    return entered


_INSIDE: Final = _entered(lambda: None).__code__  # type: ignore[attr-defined]


class Origins:
    """Runs a batch again, operation by operation, for findings of a network that no smaller loss scale helps.

    `network`, `loss_of`, `float32`: As of `Replay`. `compiled`: Compiles a function of tensors; None to run eagerly.
    """

    def __init__(
        self, network: Network, loss_of: Callable[..., Tensor],
        float32: Callable[[Sequence[str]], contextlib.AbstractContextManager[Any]],
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]] | None,
    ) -> None:
        self._network = network
        self._loss_of = loss_of
        self._float32 = float32
        self._compiled = compiled
        # The function of a batch, and the names of its operations, by kind and layer of the finding and by shapes.
        self._runs: dict[Any, tuple[Callable[..., Any], list[Any]]] = {}

    def __call__(self, finding: Finding, batch: Sequence[Tree], loss_scale: float) -> str | None:
        """Return the line, or the library's operation, that first computed a value that is not finite, or None.

        Of a gradient it is the operation whose derivative does so.
        """
        backward = finding.kind in ("gradient", "parameter")
        if finding.kind not in ("forward", "loss") and (not backward or finding.scale is not None):
            return None
        # A layer is known to compute a gradient only if float32 has it too; else any operation of the pass may.
        path = finding.layer if finding.kind == "forward" or finding.in_float32 and backward else None
        in_float32 = backward and finding.in_float32
        scale = backend.to_tensor(np.float32(1.0 if in_float32 else loss_scale))
        shapes = tuple(str(getattr(part, "shape", None)) for part in keras.tree.flatten(list(batch)))
        key = path, backward, in_float32, shapes
        with self._float32([""]) if in_float32 else contextlib.nullcontext():
            if key not in self._runs:
                self._runs[key] = self._made(path, backward)
            call, names = self._runs[key]
            values = backend.call_with_branches(call, scale, *batch)
        if not backward:
            name = _first(names, [backend.to_numpy(value) for value in values])
            return None if name == _OF_INPUT and not self._weights_are_finite() else name
        # Those whose own derivative is not finite; on TensorFlow an operation counts as well if one before it is.
        found = [name for name, (outputs, inputs) in zip(names, backend.to_numpy(values), strict=True)
                 if outputs and not inputs]
        return found[0] if found and (in_float32 or len(set(found)) == 1) else None

    def _weights_are_finite(self) -> bool:
        weights = (weight for group in parameters_by_path(self._network).values() for weight in group)
        return all(bool(keras.ops.all(keras.ops.isfinite(weight))) for weight in weights)

    def _made(self, path: str | None, backward: bool) -> tuple[Callable[..., Any], list[Any]]:
        layers = [node.layer for node in tree_of(self._network).walk() if node.path == path]
        names: list[Any] = []

        def run(scale: Tensor, *batch: Tensor) -> Any:
            with contextlib.ExitStack() as stack:
                for layer in layers:
                    stack.callback(interpose(layer, _entered))
                loss = self._loss_of if layers else _entered(self._loss_of)
                if not backward:
                    return _forward(lambda: self._results(path, lambda: loss(*batch)), names)
                return _backward(lambda: record_calls(self._network, lambda: loss(*batch)).loss, scale, names)

        return run if self._compiled is None else self._compiled(run), names

    def _results(self, path: str | None, run: Callable[[], Tensor]) -> list[Tensor]:
        """Return the outputs of each call of a layer; the loss without one."""
        recorded = record_calls(self._network, run)
        if path is None:
            return [recorded.loss]
        return [value for call in recorded.calls if call.path == path for value in call.outputs]


def _named(operation: backend.Operation) -> str | None:
    """Return the line of an operation, or its name if it was called by a library; None if that says nothing."""
    if operation.line is None and operation.name in _CASTS:
        return f"its cast to {as_dtype(operation.outputs[0].dtype).name}"
    return operation.line or (None if operation.name.lower().endswith("call") else f"its {operation.name}")


# ---- forward --------------------------------------------------------------------------------------------------------
def _forward(function: Callable[[], list[Tensor]], names: list[Any]) -> list[Tensor]:
    """Return the codes of the values of each float tensor in a function's operations, and set `names`.

    These have the name and the positions of the inputs and the outputs of each operation; the last item has the
    positions of the results.
    """
    results, operations = backend.run_operations(function, _INSIDE)
    # The tensors, and their positions, by identity.
    tensors: dict[int, Tensor] = {}
    order: dict[int, int] = {}
    made_by: dict[int, str | None] = {}

    def positions(values: Sequence[Any]) -> list[int]:
        tensors.update((id(value), value) for value in values)
        return [order.setdefault(id(value), len(order)) for value in values]

    names.clear()
    for run in operations:
        name = _named(run)
        if run.line is None and run.name in (*_CASTS, *_MOVES) and run.inputs:
            # A library casts, or gives another shape to, the result of the operation that overflows.
            name = made_by.get(id(run.inputs[0]), name)
        made_by.update((id(value), name) for value in run.outputs)
        names.append((name, positions(run.inputs), positions(run.outputs)))
    names.append(positions(results))
    return [_codes(value) for value in tensors.values()]


def _codes(value: Tensor) -> Tensor:
    wide = keras.ops.cast(value, "float32")
    limit = np.float32(float_format(as_dtype(value.dtype).name).max)
    code = keras.ops.where(wide < -limit, np.int8(_MASKED), np.int8(_BAD))
    return keras.ops.where(keras.ops.abs(wide) <= limit, np.int8(_FINITE), code)


def _first(names: Sequence[Any], codes: Sequence[np.ndarray]) -> str | None:
    """Return the name of the first operation on the way to the first result that is not finite.

    A value that is not finite, but is masked out before, is not on the way.
    """
    *operations, results = names
    start = next((position for position in results if codes[position].any()), None)
    produced = {position for _, _, outputs in operations for position in outputs}
    # By the position of a tensor, which of its values make the result non-finite.
    guilty = {} if start is None else {start: codes[start] != _FINITE}
    found: list[tuple[bool, str | None]] = []
    for name, inputs, outputs in reversed(operations):
        reached = [position for position in outputs if position in guilty]
        bad = {position: codes[position] != _FINITE for position in inputs if position in produced}
        bad = {position: mask for position, mask in bad.items() if mask.any()}
        if reached and not bad:
            # A layer casts its inputs before its own operations.
            cast = any(position not in produced and (codes[position] == _BAD).any() for position in inputs)
            name = _OF_INPUT if cast else name
            found.append((all((codes[position][guilty[position]] == _MASKED).all() for position in reached), name))
        for position in reached:
            # Most operations on tensors of one shape are elementwise: then the same values are to blame.
            same = {other: mask & guilty[position] if mask.shape == guilty[position].shape else mask
                    for other, mask in bad.items()}
            for other, mask in (same if any(mask.any() for mask in same.values()) else bad).items():
                if mask.any():
                    guilty[other] = guilty.get(other, False) | mask
    # -inf is meant as a mask, unless there is nothing else.
    return min(reversed(found), key=lambda row: row[0])[1] if found else None


# ---- backward -------------------------------------------------------------------------------------------------------
def _backward(function: Callable[[], Tensor], scale: Tensor, names: list[Any]) -> Tensor:
    """Return whether the gradients of each operation's outputs and of its inputs are finite, and set `names`."""
    operations, flags = backend.finite_gradients(function, scale, _INSIDE)
    names[:] = map(_named, operations)
    return flags
