"""`tune`: measures time, memory and error of each level of mixed precision on this machine."""

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
from mixtrain.train.stepper import Stepper
from mixtrain.train.trial import first_batches, restoring
from mixtrain.typing import Batch, DatasetLike

_WHERE: Final = "tune"
_WARMUP_STEPS: Final = 3
# Steps of microseconds need many rounds to be told apart; steps of seconds only few.
_MIN_ROUNDS: Final = 5
_MAX_ROUNDS: Final = 40
# No round begins after this time, once there are `_MIN_ROUNDS`.
_SECONDS: Final = 4.0
_HALF_LEVELS: Final[tuple[AmpLevel, ...]] = ("O1", "O2", "O3")
_VARIANTS: Final[tuple[tuple[AmpLevel, DType], ...]] = (
    ("O0", float16), *((level, half) for level in _HALF_LEVELS for half in (float16, bfloat16))
)


@dataclasses.dataclass(frozen=True)
class TunedLevel:
    """Time, memory and error of a level.

    `amp_level`: "O0" to "O3". `half`: The half-precision dtype. `milliseconds`: The time of a step: the lower quartile
    of several rounds, with the levels in turn, as other programs only add to a time. `peak_bytes`: Peak memory during
    its steps; None if unknown. `error`: The relative error of the gradients of one batch, as one vector; infinite where
    they overflow.
    """

    amp_level: str
    half: DType
    milliseconds: float
    peak_bytes: int | None
    error: float

    @property
    def line(self) -> str:
        """The arguments to write in `Model`."""
        if self.amp_level == "O0":
            return 'amp_level="O0"'
        return f'amp_level="{self.amp_level}", cast_model_type=mixtrain.{self.half.name}'


@dataclasses.dataclass(frozen=True)
class Tuning:
    """Result of `tune`. Printed, it is a table with the line to write. `best` is the fastest within the tolerance."""

    levels: tuple[TunedLevel, ...]
    best: TunedLevel
    tolerance: float
    device: str

    def __str__(self) -> str:
        head = ("level", "half", "ms a step", "peak MiB", "gradient error")
        cells = [head]
        for level in self.levels:
            peak = "-" if level.peak_bytes is None else f"{level.peak_bytes / 2**20:.0f}"
            half = "-" if level.amp_level == "O0" else level.half.name
            cells.append((level.amp_level, half, f"{level.milliseconds:.3g}", peak, f"{level.error:.2g}"))
        best = f"fastest with an error of at most {self.tolerance:g} on {self.device}: Model(..., {self.best.line})"
        return "\n".join([*aligned(cells), best])


def tune(
    model: Model, dataset: DatasetLike, tolerance: float = 0.1, steps: int = 10, *, verbose: bool = True
) -> Tuning:
    """Measure time, memory and error of every level in float16 and bfloat16, and choose the fastest.

    Each level trains on the same batches, in turn with the others, and all steps are undone. The user's `to_float`
    calls apply at every level.

    Args:
        model: A `Model` of any level; it is left unchanged.
        dataset: Batches, as for `Model.train`.
        tolerance: Maximum relative error of all gradients as one vector.
        steps: Steps of a round; each level runs at least five rounds.
        verbose: Whether to print the table.

    Raises: TypeError if `model` is not a Model, or `steps` not an int. ValueError if the model has no optimizer, or a
        number is too small.
    """
    checks.instance(_WHERE, "model", model, Model, "tune(mixtrain.Model(...), dataset)")
    checks.integer(_WHERE, "steps", steps, at_least=1, example=10)
    checks.number(_WHERE, "tolerance", tolerance, above=0, example=0.1)
    with model._ready_for(_WHERE, dataset) as feed:
        levels = _measure(model, first_batches(feed, steps))
    allowed = [level for level in levels if level.error <= tolerance] or levels[:1]
    device = backend.describe_device()
    result = Tuning(tuple(levels), min(allowed, key=lambda level: level.milliseconds), tolerance, device.name)
    if verbose:
        print(result, flush=True)
    return result


def _measure(model: Model, batches: Sequence[Batch]) -> list[TunedLevel]:
    networks = model._networks
    plans = [plan_precision(networks.network, level, cast_model_type=half) for level, half in _VARIANTS]
    steppers = [Stepper(networks.step) for _ in plans]
    errors, peaks = [], []
    times: list[list[float]] = [[] for _ in plans]
    scale = networks.loss_scale
    reference = None
    try:
        for plan, stepper in zip(plans, steppers, strict=True):
            with under_plan(networks.network, plan), restoring(networks.step.variables()):
                level_pass, scale = run_pass_in_range(networks.examined, networks.with_loss, batches[0], scale)
                reference = reference or level_pass  # That of O0, the first variant.
                errors.append(gradient_error(level_pass, reference))
                backend.peak_memory(restart=True)
                _time_steps(stepper, batches[:_WARMUP_STEPS])
                _time_steps(stepper, batches)
                peaks.append(backend.peak_memory())
        started = time.perf_counter()
        for number in range(_MAX_ROUNDS):
            if number >= _MIN_ROUNDS and time.perf_counter() - started > _SECONDS:
                break
            for plan, stepper, rounds in zip(plans, steppers, times, strict=True):
                rounds.append(_round(model, plan, stepper, batches))
    finally:
        networks.precision.apply()
    return [
        TunedLevel(level, half, float(np.percentile(rounds, 25)), peak, error)
        for (level, half), rounds, peak, error in zip(_VARIANTS, times, peaks, errors, strict=True)
    ]


def _round(model: Model, plan: PrecisionPlan, stepper: Stepper, batches: Sequence[Batch]) -> float:
    """Return the milliseconds of a step under a plan."""
    networks = model._networks
    with under_plan(networks.network, plan), restoring(networks.step.variables()):
        _time_steps(stepper, batches[:1])
        return _time_steps(stepper, batches)


def _time_steps(stepper: Stepper, batches: Sequence[Batch]) -> float:
    """Train on batches, in groups as in host feed; return the milliseconds of a step."""
    started = time.perf_counter()
    group: Any  # No `StreamedGroup`, as `streamed` is left out.
    for group in grouped(iter(batches), stepper.steps_per_call.estimate):
        single = len(group) == 1
        records = (stepper.step(group[0]) if single else run_group(stepper, group, stepper.several)).records
    records.loss  # noqa: B018  (waits for the device)
    return (time.perf_counter() - started) / len(batches) * 1e3
