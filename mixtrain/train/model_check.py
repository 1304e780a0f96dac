"""`Model.check`: one step on one batch that is undone, and what it tells of the training to come."""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np

from mixtrain import backend
from mixtrain.diagnostics.deviation import (
    TOLERANCE,
    LayerError,
    deviating,
    gradient_error,
    layer_errors,
    run_pass,
    run_pass_in_range,
)
from mixtrain.diagnostics.finding import Finding
from mixtrain.diagnostics.ranges import RangeRecords
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.text_table import aligned
from mixtrain.train.compiled_networks import CompiledNetworks
from mixtrain.train.first_scale import FIRST_MARGIN
from mixtrain.train.networks import Networks
from mixtrain.train.trial import largest_exponent, restoring
from mixtrain.typing import Batch

# As many values of a tensor are counted as `RangeMonitor` counts.
_MAX_VALUES: Final = 2048
_MAX_ROWS: Final = 5


@dataclasses.dataclass(frozen=True)
class ModelCheck:
    """Result of `Model.check`. Printed, it is the plan and what to expect of training.

    Attributes:
        plan: The precision plan.
        loss, float32_loss: The loss of the batch under the plan, and in float32.
        error: The error of all gradients as one vector, relative to float32; infinite if one is not finite.
        layers: The error of each layer.
        ranges: The values of each layer's outputs and gradients at `loss_scale`, as `RangeMonitor` counts them.
        first_scale: The loss scale in use; None without loss scaling.
        finds_scale: Whether training finds its first scale by itself, on its first batch.
        largest_scale: The largest power of two at which no gradient of the batch overflows; None without loss scaling,
            or if there is none.
        loss_scale: The scale to expect: `first_scale`, or if that overflows, the one that training finds, or half of
            `largest_scale`.
        finding: What is not finite at any scale, or None.
        peak_bytes: Peak memory of a step, on a CPU that of the process; None where it is unknown.
        device: The kind of the device.
    """

    plan: PrecisionPlan
    loss: float
    float32_loss: float
    error: float
    layers: tuple[LayerError, ...]
    ranges: RangeRecords
    first_scale: float | None
    finds_scale: bool
    largest_scale: float | None
    loss_scale: float | None
    finding: Finding | None
    peak_bytes: int | None
    device: str

    def __str__(self) -> str:
        return "\n".join([str(self.plan), *self._deviation(), *self._headroom(), *self._scale(), *self._memory()])

    def _deviation(self) -> list[str]:
        line = (f"deviation from float32: loss {self.loss:.6g}, in float32 {self.float32_loss:.6g}; gradients differ "
                f"by {self.error:.2g}")
        if self.finding is not None:
            return [line, f"  {self.finding}"]
        layers = deviating(self.layers)
        if self.error <= TOLERANCE and not layers:
            return [line]
        worst = max(layers or self.layers, key=lambda layer: layer.added, default=None)
        added = "" if worst is None or not worst.added else f", most of it from {worst.path or 'the network itself'}"
        return [f"{line}{added}: suggest_rules(model, dataset) finds the layers to keep in float32"]

    def _headroom(self) -> list[str]:
        """Return the tensors whose largest values come nearest to the largest number of the half dtype."""
        half = self.plan.half.name
        if self.plan.half not in self.plan.compute_dtypes():
            return []
        rows = sorted((row for row in self.ranges if row.largest), key=lambda row: row.headroom(half))[:_MAX_ROWS]
        cells = [("  doublings left", "largest", "kind", "layer")] + [
            (f"  {row.headroom(half):.1f}", f"{row.largest:.2g}", row.kind, row.path or "(network)") for row in rows
        ]
        return [f"headroom in {half}, the least first:", *aligned(cells)]

    def _scale(self) -> list[str]:
        if self.first_scale is None:
            return ["loss scale: none"]
        if self.largest_scale is None:
            return ["loss scale: none is small enough for this batch"]
        fits = f"no gradient of this batch overflows up to {self.largest_scale:.10g}"
        if self.first_scale <= self.largest_scale or self.finds_scale:
            found = ", found on the first batch" if self.finds_scale else ""
            return [f"loss scale: {self.loss_scale:.10g}{found}; {fits}"]
        return [f"loss scale: starts at {self.first_scale:.10g}, but {fits}: DynamicLossScaleManager("
                f"{self.loss_scale:.10g}) loses no step to it"]

    def _memory(self) -> list[str]:
        if self.peak_bytes is None:
            return []
        of = " (of the whole process)" if self.device == "CPU" else ""
        return [f"peak memory of a step: {self.peak_bytes / 2**20:,.0f} MiB{of} on {self.device}"]


def checked_step(networks: Networks, compiled: CompiledNetworks, batch: Batch) -> ModelCheck:
    """Run a step on a batch, and passes layer by layer, undo all of it, and return what they found."""
    networks.precision.apply()
    stepper, scale = compiled.stepper, networks.step.scale
    stepper.trial(batch)  # Compiles, which takes memory of its own.
    # The passes below keep the tensors of all layers: the memory of a step is measured before them.
    backend.peak_memory(restart=True)
    stepper.trial(batch)
    peak = backend.peak_memory()
    finds_scale = networks.finds_scale
    first = largest = expected = None
    if scale is not None:
        first = expected = networks.loss_scale
        exponent = largest_exponent(stepper, scale.variable, batch)
        if exponent is not None:
            largest = math.ldexp(1.0, exponent)
            if first > largest:
                expected = max(largest / (FIRST_MARGIN if finds_scale else 2.0), 1.0)
    with networks.in_float32():
        reference = run_pass(networks.examined, networks.with_loss, batch, 1.0)
    networks.precision.apply()
    half, _ = run_pass_in_range(networks.examined, networks.with_loss, batch, expected or 1.0)
    with restoring([] if scale is None else [scale.variable]):
        if scale is not None:
            scale.variable.assign(np.float32(expected))
        ranges = compiled.range_sampler(batch, _MAX_VALUES)[1]
        len(ranges)  # Reads the counts from the device.
    finding = None if half.finite and np.isfinite(half.loss) else compiled.diagnosis(batch, 1.0)
    compiled.diagnosis.forget_batch()
    return ModelCheck(
        networks.precision.plan, half.loss, reference.loss, gradient_error(half, reference),
        layer_errors(half, reference), ranges, first, finds_scale, largest, expected, finding, peak,
        backend.describe_device().kind,
    )
