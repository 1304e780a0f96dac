"""`Finding`: the first tensor that is not finite, and what would help, formatted as text."""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

from mixtrain.dtype import float_format

Kind = Literal["input", "forward", "loss", "gradient", "parameter", "none"]
_NO_SCALE: Final = "a smaller loss scale cannot help"


@dataclasses.dataclass(frozen=True)
class Finding:
    """The first tensor that is not finite, and what would help. Findings are equal if kind and layer are.

    Attributes:
        kind: What is not finite. "input": a column of the batch, itself or after its cast to half; "forward": a layer's
            output; "loss": only the loss; "gradient": only a gradient, at this loss scale, of a layer's output;
            "parameter": only that of a layer's parameter; "none": everything is finite.
        layer: The layer's path, or None.
        column: Index of the batch's column, for "input".
        count: How many values of the tensor are not finite.
        size: How many values it has.
        dtype: The dtype that overflowed.
        largest: The largest magnitude, if known: for a gradient from a pass at a smaller scale, for an output from a
            pass in float32.
        forward_finite: Whether every layer's output and the loss are finite.
        scale: The largest scale, the used one divided by a power of the factor, at which gradients are finite; None if
            no scale helps.

    Example:
        >>> print(Finding("gradient", "conv2", count=11, size=2**21, dtype="float16", largest=1.3e5, scale=32768.0))
        gradient of layer conv2's output: 11 of 2,097,152 values above 65504, the largest 1.3e+05; forward finite;
        scale 32768 would do
    """

    kind: Kind
    layer: str | None = None
    column: int | None = dataclasses.field(default=None, compare=False)
    count: int = dataclasses.field(default=0, compare=False)
    size: int = dataclasses.field(default=0, compare=False)
    dtype: str = dataclasses.field(default="float32", compare=False)
    largest: float | None = dataclasses.field(default=None, compare=False)
    forward_finite: bool = dataclasses.field(default=True, compare=False)
    scale: float | None = dataclasses.field(default=None, compare=False)

    def __str__(self) -> str:
        layer = "the network itself" if self.layer == "" else f"layer {self.layer}"
        if self.kind == "none":
            return "a second pass over the batch at hand found every output and gradient finite"
        if self.kind == "loss":
            return (
                f"the loss: {self._values()}, every layer's output is finite; {_NO_SCALE}: look at the loss function "
                "and the labels"
            )
        if self.kind == "input":
            advice = "look at the data" if self.largest is None else "scale the data, or keep what reads it in float32"
            return f"column {self.column} of the batch: {self._values()}; {_NO_SCALE}: {advice}"
        if self.kind == "forward":
            advice = "look at its weights and its inputs" if self.largest is None else _keep_float32(layer)
            return f"output of {layer}: {self._values()}; {_NO_SCALE}: {advice}"
        tensor = f"gradient of {layer}'s output" if self.kind == "gradient" else f"gradient of a parameter of {layer}"
        forward = "forward finite" if self.forward_finite else "forward not finite"
        if self.scale is not None:
            advice = f"scale {self.scale:.10g} would do"
        else:
            advice = f"no scale helps: {'look at its weights' if self.dtype == 'float32' else _keep_float32(layer)}"
        return f"{tensor}: {self._values()}; {forward}; {advice}"

    def _values(self) -> str:
        if self.largest is None:
            return f"{self.count:,} of {self.size:,} values not finite"
        limit = float_format(self.dtype).max
        if self.largest <= limit:  # A sum of them, or what they were computed from, overflowed.
            return (
                f"{self.count:,} of {self.size:,} values not finite, though the largest would be {self.largest:.2g}: "
                "an overflow on the way to them"
            )
        return f"{self.count:,} of {self.size:,} values above {limit:.6g}, the largest {self.largest:.2g}"


def _keep_float32(layer: str) -> str:
    return f"keep {layer} in float32, to_float(mixtrain.float32)"
