"""`Finding`: where numbers first went wrong, and what would help, in words."""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

from mixtrain.dtype import float_format

Kind = Literal["input", "forward", "loss", "gradient", "parameter", "none"]
_NO_SCALE: Final = "a smaller loss scale cannot help"


@dataclasses.dataclass(frozen=True)
class Finding:
    """Where numbers first went wrong, and what would help. Findings are equal where kind and layer are.

    Attributes:
        kind: "input": a column of the batch is not finite, or not in the format that it is cast to; "forward": a
            layer's output; "loss": only the loss; "gradient": only a gradient, at this loss scale, of a layer's output;
            "parameter": of a layer's parameter; "none": everything is finite.
        layer: The layer's path, or None.
        column: Number of the batch's column, for "input".
        count: How many values of that tensor are not finite.
        size: How many it has.
        dtype: The floating-point format that they do not fit in.
        largest: The largest magnitude, where it can be told: of a gradient by a pass at a smaller scale, of an output
            by a pass in float32.
        forward_finite: Whether every layer's output and the loss are finite.
        scale: The largest scale, a power of the factor below the one used, whose gradients are finite; None where no
            scale helps.

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
        place = "the network itself" if self.layer == "" else f"layer {self.layer}"
        if self.kind == "none":
            return "a second pass over the batch at hand found every output and gradient finite"
        if self.kind == "loss":
            return (
                f"the loss: {self._values()}, every layer's output is finite; {_NO_SCALE}: look at the loss function "
                "and the labels"
            )
        if self.kind == "input":
            cure = "look at the data" if self.largest is None else "scale the data, or keep what reads it in float32"
            return f"column {self.column} of the batch: {self._values()}; {_NO_SCALE}: {cure}"
        if self.kind == "forward":
            overflows = self.largest is not None
            cure = _in_float32(place) if overflows else "look at its weights and its inputs"
            return f"output of {place}: {self._values()}; {_NO_SCALE}: {cure}"
        of = f"gradient of {place}'s output" if self.kind == "gradient" else f"gradient of a parameter of {place}"
        forward = "forward finite" if self.forward_finite else "forward not finite"
        cure = "look at its weights" if self.dtype == "float32" else _in_float32(place)
        cure = f"no scale helps: {cure}" if self.scale is None else f"scale {self.scale:.10g} would do"
        return f"{of}: {self._values()}; {forward}; {cure}"

    def _values(self) -> str:
        if self.largest is None:
            return f"{self.count:,} of {self.size:,} values not finite"
        limit = float_format(self.dtype).max
        return f"{self.count:,} of {self.size:,} values above {limit:.6g}, the largest {self.largest:.2g}"


def _in_float32(place: str) -> str:
    return f"keep {place} in float32, to_float(mixtrain.float32)"
