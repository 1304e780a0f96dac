"""`Finding`: the first tensor that is not finite, and what would help, formatted as text."""

from __future__ import annotations

import dataclasses
import math
from typing import Final, Literal

from mixtrain import checks
from mixtrain.dtype import float_format
from mixtrain.text_table import aligned

Kind = Literal["input", "forward", "loss", "gradient", "parameter", "none"]
_NO_SCALE: Final = "a smaller loss scale cannot help"
_IN_FLOAT32: Final = "float32 has it too"
_EXAMPLES: Final = "a sqrt or norm at 0, or of a where over an inf"
_DOUBLE_WHERE: Final = "write where(ok, f(where(ok, x, 1)), 0)"

# Factor from which a number of the steps before is said to have grown.
_GROWN: Final = 4.0


@dataclasses.dataclass(frozen=True)
class HealthyStep:
    """A step before one that is not finite.

    Attributes:
        step: Its number over all epochs, from 1.
        loss, grad_norm, loss_scale: As of its `StepRecords`; None for a sample of an earlier step.
        largest: The largest magnitude of the tensor of the finding, in float32, if a `RangeMonitor` sampled the step.

    Example: ``HealthyStep(7, 0.25, 3.5, 1024.0)``.
    """

    step: int
    loss: float | None = None
    grad_norm: float | None = None
    loss_scale: float | None = None
    largest: float | None = None


@dataclasses.dataclass(frozen=True)
class Finding:
    """The first tensor that is not finite, and what would help.

    Findings are equal if kind, layer, column and part are, and whether float32 has it too.

    Attributes:
        kind: What is not finite. "input": a column of the batch, itself or after its cast to half; "forward": a layer's
            output; "loss": only the loss; "gradient": only a gradient, at this loss scale, of a layer's output;
            "parameter": only that of a layer's parameter; "none": everything is finite.
        layer: The layer's path, or None. For "loss", the layer that adds the loss that is not finite; for a gradient
            that float32 has too, the layer that computes it.
        column: Index of the batch's column, for "input".
        part: Which tensor of a column with several it is, as "['image']"; "" for the column itself.
        count: How many values of the tensor are not finite.
        nan: How many of these are NaN; None if unknown.
        size: How many values it has.
        dtype: The dtype that overflowed.
        largest: The largest magnitude, if known: for a gradient from a pass at a smaller scale, for an output from a
            pass in float32.
        forward_finite: Whether every layer's output and the loss are finite.
        scale: The largest scale, the used one divided by a power of the factor, at which the step is finite; None if no
            scale helps.
        cure: The paths of the layers with which in float32 a pass over the batch was finite, for `to_float`; "" for the
            whole network.
        cures_all: Whether the gradients are finite too where the whole network computes in float32.
        in_float32: Whether it is not finite either where the whole network computes in float32.
        growth: The factor by which the largest weight has grown since the run began, if that is the cause.
        steps: In how many steps it did.
        origin: The line of the user's code that first computed such a value, "net.py:12 (y = x * x)"; "its MatMul" for
            an operation of a layer of a library, or "the cast of its input"; None if it is unknown or a smaller scale
            helps.
        before: The last healthy steps of the run, oldest first; empty if a smaller scale helps.
        float8: What is wrong with a scale of the layer's float8 products, with what to write; None if nothing is.

    Example:
        >>> print(Finding("gradient", "conv2", count=11, size=2**21, dtype="float16", largest=1.3e5, scale=32768.0))
        gradient of layer conv2's output: 11 of 2,097,152 values above 65504, the largest 1.3e+05; forward finite;
        scale 32768 would do
    """

    kind: Kind
    layer: str | None = None
    column: int | None = None
    part: str = ""
    count: int = dataclasses.field(default=0, compare=False)
    nan: int | None = dataclasses.field(default=None, compare=False)
    size: int = dataclasses.field(default=0, compare=False)
    dtype: str = dataclasses.field(default="float32", compare=False)
    largest: float | None = dataclasses.field(default=None, compare=False)
    forward_finite: bool = dataclasses.field(default=True, compare=False)
    scale: float | None = dataclasses.field(default=None, compare=False)
    cure: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    cures_all: bool = dataclasses.field(default=True, compare=False)
    in_float32: bool = False
    growth: float | None = dataclasses.field(default=None, compare=False)
    steps: int = dataclasses.field(default=0, compare=False)
    origin: str | None = dataclasses.field(default=None, compare=False)
    before: tuple[HealthyStep, ...] = dataclasses.field(default=(), compare=False)
    float8: str | None = dataclasses.field(default=None, compare=False)

    def __str__(self) -> str:
        if self.kind == "none":
            return "a second pass over the batch at hand found every output and gradient finite"
        forward = "" if self.kind in ("input", "forward", "loss") else "; forward finite"
        if forward and not self.forward_finite:
            forward = "; forward not finite"
        where = "the derivative of " if self.kind in ("gradient", "parameter") else ""
        origin = "" if self.origin is None else f", first in {where}{self.origin}"
        advice = self.advice()
        return f"{self._tensor()}: {self._values()}{origin}{forward}; {advice}{self._development()}"

    def table(self) -> str:
        """Return the healthy steps before it as a table."""
        rows = [("step", "loss", "gradient norm", "loss scale", "largest value")]
        rows += [(f"{row.step}", *map(_short, dataclasses.astuple(row)[1:])) for row in self.before]  # type: ignore
        return "\n".join(aligned(rows))

    def _development(self) -> str:
        """Return how the numbers of the steps before have grown, if they have."""
        texts = []
        for field, name in (("loss", "loss"), ("grad_norm", "gradient norm"), ("largest", "largest value")):
            rows = [(row.step, getattr(row, field)) for row in self.before if getattr(row, field) is not None]
            if len(rows) > 1 and abs(rows[-1][1]) > _GROWN * abs(rows[0][1]):
                (first, start), (last, end) = rows[0], rows[-1]
                texts.append(f"{name} from {start:.2g} to {end:.2g}" + (
                    f" in {last - first + 1} steps" if field != "largest" else f" since step {first}"))
        return f"; before it grew: {', '.join(texts)}" if texts else ""

    def _tensor(self) -> str:
        layer = _named(self.layer or "")
        if self.kind == "input":
            return f"column {self.column}{self.part} of the batch"
        if self.kind == "loss":
            return "the loss" if self.layer is None else f"the loss that {layer} adds"
        if self.kind == "forward":
            return f"output of {layer}"
        if self.kind == "parameter":
            return f"gradient of a parameter of {layer}"
        if self.in_float32:
            return f"gradient that {'the loss function' if self.layer is None else layer} computes"
        return f"gradient of {layer}'s output"

    def _values(self) -> str:
        count, size, nan = self.count, self.size, self.nan or 0
        limit = float_format(self.dtype).max
        if self.largest is not None and self.largest > limit and count > nan:
            also = f", and {nan:,} NaN" if nan else ""
            return f"{count - nan:,} of {size:,} values above {limit:.6g}, the largest {self.largest:.2g}{also}"
        kinds = ", ".join(f"{number:,} {name}" for number, name in ((count - nan, "inf"), (nan, "NaN")) if number)
        text = f"{count:,} of {size:,} values not finite" + (f" ({kinds})" if self.nan is not None and count else "")
        if self.kind == "loss" and self.layer is None:
            return f"{text}, every layer's output is finite"
        if self.largest is None or not math.isfinite(self.largest):
            return text
        # What they were computed from overflowed, or was rounded to 0 or to a number at which they are not finite.
        largest = f"though the largest would be {self.largest:.2g}"
        return f"{text}, {largest}: {self.dtype} does not hold a value on the way to them"

    def advice(self) -> str:
        """Return what would help."""
        if self.float8 is not None:
            return self.float8
        is_gradient = self.kind in ("gradient", "parameter")
        if self.scale is not None:
            rounded = "" if is_gradient else "; the compiled step does not round it to half"
            return f"scale {self.scale:.10g} would do{rounded}"
        advice = self._advice_without_scale()
        return f"no scale helps: {advice}" if is_gradient else f"{_NO_SCALE}: {advice}"

    def _advice_without_scale(self) -> str:
        if self.growth is not None:
            steps = f"{self.steps:,} step{'s' if self.steps > 1 else ''}"
            if self.growth == math.inf:
                return f"weights are not finite after {steps}: lower the learning rate"
            return f"weights grew by 2**{round(math.log2(self.growth))} in {steps}: lower the learning rate"
        has_it = f"{_IN_FLOAT32}, " if self.in_float32 and self.dtype != "float32" else ""
        if self.kind in ("gradient", "parameter"):
            if self.in_float32:
                if self.nan:
                    return f"{_IN_FLOAT32}: 0 * inf, as in the derivative of {_EXAMPLES}; {_DOUBLE_WHERE}"
                return f"{_IN_FLOAT32}: an infinite derivative, as of a sqrt at 0: look at its inputs"
            return "look at its weights" if self.dtype == "float32" and not self.cure else self._keep_float32()
        if self.kind == "input":
            if self.largest is None:
                return "look at the data"
            if self.in_float32:
                return "scale the data"
            return f"scale the data, or {self._keep_float32() if self.cure else 'keep what reads it in float32'}"
        if self.cure or (self.kind == "forward" and self.largest is not None):
            return self._keep_float32()
        if self.kind == "forward":
            return f"{has_it}look at its weights and its inputs"
        if self.layer is None:
            return "look at the loss function and the labels"
        return f"{has_it}look at what it adds and at its inputs"

    def _keep_float32(self) -> str:
        paths = self.cure or (self.layer or "",)
        first = self.layer if self.layer in paths else paths[0]
        others = checks.join_names(path for path in paths if path != first)
        also = f", and so {others}" if others else ""
        also += "" if self.cures_all else "; then a gradient is not finite, which float32 has too"
        return f"keep {_named(first)} in float32, to_float(mixtrain.float32){also}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _named(path: str) -> str:
    return f"layer {path}" if path else "the network itself"
