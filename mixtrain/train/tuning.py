"""`tune`: what each level of mixed precision costs and gains on this machine, measured."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mixtrain import backend, checks
from mixtrain.diagnostics.deviation import gradient_error, run_pass_in_range
from mixtrain.dtype import DType, bfloat16, float16
from mixtrain.precision.apply import under_plan
from mixtrain.precision.levels import AmpLevel
from mixtrain.precision.plan import PrecisionPlan
from mixtrain.precision.planner import plan_precision
from mixtrain.text_table import aligned
from mixtrain.train.model import Model
from mixtrain.train.step_groups import grouped, run_group
from mixtrain.train.stepper import Batch, Stepper
from mixtrain.train.trial import all_put_back, first_batches

_WHERE: Final = "tune"
_WARM: Final = 3
# Steps of microseconds are told apart by many rounds; those of seconds by few.
_ROUNDS_AT_LEAST: Final = 5
_ROUNDS_AT_MOST: Final = 40
_SECONDS: Final = 4.0
_HALVED: Final[tuple[AmpLevel, ...]] = ("O1", "O2", "O3")
_VARIANTS: Final[tuple[tuple[AmpLevel, DType], ...]] = (
    ("O0", float16), *((level, half) for level in _HALVED for half in (float16, bfloat16))
)


@dataclasses.dataclass(frozen=True)
class TunedLevel:
    """What one level came to.

    Attributes:
        amp_level: "O0" to "O3".
        half: The half format.
        milliseconds: The time of a step: the median of several rounds, the levels taking turns.
        peak_bytes: The most memory held while its steps ran; None where that is not known.
        error: The relative error of the gradients of one batch, as one vector; infinite where they overflow.
    """

    amp_level: str
    half: DType
    milliseconds: float
    peak_bytes: int | None
    error: float

    @property
    def line(self) -> str:
        """What to write in `Model`."""
        if self.amp_level == "O0":
            return 'amp_level="O0"'
        return f'amp_level="{self.amp_level}", cast_model_type=mixtrain.{self.half.name}'


@dataclasses.dataclass(frozen=True)
class Tuning:
    """What `tune` measured. Printed, it is a table with the line to write.

    Attributes:
        levels: What each level came to.
        best: The fastest within the tolerance.
        tolerance: The error that was allowed.
        device: What it was measured on.
    """

    levels: tuple[TunedLevel, ...]
    best: TunedLevel
    tolerance: float
    device: str

    def __str__(self) -> str:
        head = ("level", "half", "ms a step", "peak MiB", "gradient error")
        cells = [head]
        for one in self.levels:
            peak = "-" if one.peak_bytes is None else f"{one.peak_bytes / 2**20:.0f}"
            half = "-" if one.amp_level == "O0" else one.half.name
            cells.append((one.amp_level, half, f"{one.milliseconds:.3g}", peak, f"{one.error:.2g}"))
        best = f"fastest with an error of at most {self.tolerance:g} on {self.device}: Model(..., {self.best.line})"
        return "\n".join([*aligned(cells), best])


def tune(model: Model, dataset: Any, tolerance: float = 0.1, steps: int = 10, *, verbose: bool = True) -> Tuning:
    """Measure time, memory and error of every level in float16 and bfloat16, and say which to write.

    Each level trains on the same batches, in turn with the others, and all that is undone. `to_float` of the user's
    counts at every level.

    Args:
        model: A `Model` of any level; it is as before when this returns.
        dataset: Batches, as for `Model.train`.
        tolerance: What the relative error of all gradients, as one vector, may be.
        steps: Steps of a round; a level runs five rounds at least.
        verbose: Whether the table is printed.

    Returns:
        The `Tuning`.

    Raises:
        TypeError: `model` is not a Model, or `steps` not an int.
        ValueError: The model has no optimizer, or a number is too small.
    """
    checks.instance(_WHERE, "model", model, Model, "tune(mixtrain.Model(...), dataset)")
    checks.integer(_WHERE, "steps", steps, at_least=1, example=10)
    checks.number(_WHERE, "tolerance", tolerance, above=0, example=0.1)
    with model._ready_for(_WHERE, dataset) as feed:
        found = _measured(model, first_batches(feed, steps))
    allowed = [one for one in found if one.error <= tolerance] or found[:1]
    device = backend.describe_device()
    result = Tuning(tuple(found), min(allowed, key=lambda one: one.milliseconds), tolerance, device.name)
    if verbose:
        print(result, flush=True)
    return result


def _measured(model: Model, batches: Sequence[Batch]) -> list[TunedLevel]:
    networks = model._networks
    plans = [plan_precision(networks.network, level, cast_model_type=half) for level, half in _VARIANTS]
    steppers = [Stepper(networks.train_network, scaled=networks.scaled, prepare=lambda: None) for _ in plans]
    errors, peaks = [], []
    times: list[list[float]] = [[] for _ in plans]
    scale = networks.loss_scale
    reference = None
    try:
        for plan, stepper in zip(plans, steppers, strict=True):
            with under_plan(networks.network, plan), all_put_back(networks):
                found, scale = run_pass_in_range(networks.examined, networks.with_loss, batches[0], scale)
                reference = reference or found
                errors.append(gradient_error(found, reference))
                backend.peak_memory(restart=True)
                _timed(stepper, batches[:_WARM])
                _timed(stepper, batches)
                peaks.append(backend.peak_memory())
        started = time.perf_counter()
        for number in range(_ROUNDS_AT_MOST):
            if number >= _ROUNDS_AT_LEAST and time.perf_counter() - started > _SECONDS:
                break
            for plan, stepper, rounds in zip(plans, steppers, times, strict=True):
                rounds.append(_round(model, plan, stepper, batches))
    finally:
        networks.precision.enter()
    return [
        TunedLevel(level, half, float(np.median(rounds)), peak, error)
        for (level, half), rounds, peak, error in zip(_VARIANTS, times, peaks, errors, strict=True)
    ]


def _round(model: Model, plan: PrecisionPlan, stepper: Stepper, batches: Sequence[Batch]) -> float:
    """Return the milliseconds of a step under a plan."""
    with under_plan(model._networks.network, plan), all_put_back(model._networks):
        _timed(stepper, batches[:1])
        return _timed(stepper, batches)


def _timed(stepper: Stepper, batches: Sequence[Batch]) -> float:
    """Train on batches, as many in a call as in host feed; return the milliseconds of a step."""
    started = time.perf_counter()
    for group in grouped(iter(batches), stepper.steps_per_call.estimate):
        alone = len(group) == 1
        records = (stepper.step(group[0]) if alone else run_group(stepper, group, stepper.several)).records
    records.loss  # noqa: B018  (waits for the device)
    return (time.perf_counter() - started) / len(batches) * 1e3
