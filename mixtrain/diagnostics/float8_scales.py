"""Scales of float8 products that do not fit their tensors: invalid ones, and those that clip values or flush them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import keras
import numpy as np

from mixtrain import backend
from mixtrain.dtype import FloatFormat, float_format
from mixtrain.network.marks import HISTORIES
from mixtrain.network.walk import is_cell, tree_of
from mixtrain.typing import Layer, Network

_OPERANDS: Final = {
    "inputs": ("its inputs", "float8_e4m3fn"), "kernel": ("its weights", "float8_e4m3fn"),
    "outputs_grad": ("the gradient of its outputs", "float8_e5m2"),
}
_CURE: Final = "scale by each batch, to_float(mixtrain.float8)"
# Values beyond the range by less are those of one step that differs from the one before.
_BEYOND: Final = 2.0
# Share of the values that are not 0 from which it is told that they become 0.
_MANY: Final = 0.5


@dataclasses.dataclass(frozen=True)
class Float8Scale:
    """The scale of an operand of a layer's float8 products, by a plan or in a float8 layer of Keras's.

    `path`: The layer. `operand`: A key of `_OPERANDS`. `value`: The scale. `history`: The magnitudes that it is from.
    """

    path: str
    operand: str
    value: float
    history: np.ndarray

    @property
    def name(self) -> str:
        return _OPERANDS[self.operand][0]

    @property
    def form(self) -> FloatFormat:
        return float_format(_OPERANDS[self.operand][1])

    def invalid(self) -> str:
        """Return what is wrong with the scale itself, with what to write; "" if nothing is."""
        if np.isfinite(self.value) and self.value > 0:
            return ""
        return f"the float8 scale of {self.name} is {self.value:g}: assign 1 to it, or {_CURE}"

    def misfit(self, values: np.ndarray) -> str:
        """Return what the scale does to values of its operand, with what to write; "" if they fit."""
        magnitudes = np.abs(values[np.isfinite(values) & (values != 0)])
        limit = self.form.max * self.value
        clipped, largest = int((magnitudes > limit).sum()), magnitudes.max(initial=0.0)
        if largest > _BEYOND * limit:
            return (
                f"{clipped:,} of {values.size:,} values of {self.name} are clipped to {limit:.3g} in float8, the "
                f"largest is {largest:.3g}: {_CURE}"
            )
        flushed = int((magnitudes <= self.form.smallest_subnormal / 2 * self.value).sum())
        if magnitudes.size and flushed > _MANY * magnitudes.size:
            return (
                f"{flushed:,} of {values.size:,} values of {self.name} become 0 in float8, whose scale is for values "
                f"up to {limit:.3g}: {_CURE}"
            )
        return ""


def scaled_layers(network: Network) -> list[tuple[str, Layer]]:
    """Return the layers of a network whose float8 products have scales that are kept from step to step, with paths."""
    return [(node.path, node.layer) for node in tree_of(network).walk() if any(_variables(node.layer))]


def float8_scales(layers: Iterable[tuple[str, Layer]]) -> Iterator[Float8Scale]:
    """Yield the scales of `scaled_layers`."""
    for path, layer in layers:
        for operand, (scale, history) in _variables(layer):
            yield Float8Scale(path, operand, float(backend.to_numpy(scale)), backend.to_numpy(history))


def _variables(layer: Layer) -> Iterable[tuple[str, Sequence[keras.Variable]]]:
    if getattr(layer, "quantization_mode", None) == "float8":
        return [(name, [getattr(layer, f"{name}_{kind}") for kind in ("scale", "amax_history")]) for name in _OPERANDS]
    histories = HISTORIES.of(layer)
    return [] if histories is None else zip(_OPERANDS, (each.variables for each in histories.of_operands), strict=True)


def misfits(network: Network, inputs: Iterable[tuple[str, Sequence[np.ndarray]]]) -> dict[str, str]:
    """Return by layer what its scales do to the tensors of a batch, with what to write; nothing of those that fit.

    `inputs`: The float inputs of layer calls, with the layers' paths. Of gradients the last magnitude is known.
    """
    layers = dict(scaled_layers(network))
    known = {path: np.concatenate([np.ravel(value) for value in values]) for path, values in inputs if len(values)}
    found: dict[str, str] = {}
    for scale in float8_scales(layers.items()):
        layer = layers[scale.path]
        if scale.operand == "kernel":
            values = backend.to_numpy(next(iter(layer.own_parameters().values())) if is_cell(layer) else layer.kernel)
        else:
            values = known.get(scale.path, np.zeros(0)) if scale.operand == "inputs" else scale.history[:1]
        text = scale.invalid() or scale.misfit(np.asarray(values, np.float32))
        if text:
            found.setdefault(scale.path, text)
    return found
