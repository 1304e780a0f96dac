"""Advice from the results of a run, in sentences that its own tables prove."""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from mixtrain.diagnostics.ranges import RangeRecords, TensorRanges
from mixtrain.dtype import float_format
from mixtrain.train.callback.overflow_monitor import OverflowRecord
from mixtrain.train.records import StepRecords

# Share of steps, or of a tensor's values, from which overflows are worth a sentence. A scale that grows every 2000
# steps until one overflows, as it should, skips fewer.
_MANY: Final = 0.01
_MIN_SKIPPED: Final = 2
# The findings that no loss scale cures, and the sentence about them.
_SENTENCES: Final = {
    "forward": "The output of layer {layer} overflowed in {count}: keep it in float32, to_float(mixtrain.float32); "
               "suggest_rules(model, dataset) looks for the fewest such lines.",
    "input": "The batches of {count} had values that are not finite, or do not fit: look at the data.",
    "loss": "The loss itself overflowed in {count}: look at the loss function and the labels.",
}


def advice(
    steps: StepRecords, overflows: Sequence[OverflowRecord], ranges: RangeRecords, first_step: int = 1
) -> list[str]:
    """Return advice from the results of a run; `first_step` is the number of the first of its steps."""
    lines = []
    kinds = collections.Counter((record.finding.kind, record.finding.layer) for record in overflows)
    for (kind, layer), count in kinds.most_common():
        if kind in _SENTENCES:
            lines.append(_SENTENCES[kind].format(layer=layer or "(network)", count=_steps(count)))
    overflowing = _overflowing(ranges)
    of_scale = _of_scale(steps, overflows, overflowing, first_step)
    lines += of_scale
    underflowing = ranges.underflowing("float16")
    if underflowing:
        cure = "train in bfloat16" if of_scale else "train with a larger loss scale, or in bfloat16"
        lines.append(f"float16 flushes most of the gradients of {_names(underflowing)} to zero: {cure}.")
    tight = [row for row in ranges if row.kind == "activation" and row.headroom("float16") < 1 and row.largest]
    if tight:
        lines.append(f"The outputs of {_names(tight)} come near float16's largest number: keep these layers in "
                     "float32, or train in bfloat16.")
    return lines


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"


def _names(rows: Sequence[TensorRanges]) -> str:
    return ", ".join(dict.fromkeys(row.path or "(network)" for row in rows))


def _share(row: TensorRanges) -> float:
    return row.counts("float16").overflow / max(row.size, 1)


def _overflowing(ranges: RangeRecords) -> list[TensorRanges]:
    """Return the gradients of which many values overflow in float16, the worst first."""
    rows = [row for row in ranges if row.kind != "activation" and _share(row) > _MANY]
    return sorted(rows, key=_share, reverse=True)


def _of_scale(
    steps: StepRecords, overflows: Sequence[OverflowRecord], overflowing: Sequence[TensorRanges], first_step: int
) -> list[str]:
    """Return the sentence about steps that were lost to a loss scale that was too large, and where to start it."""
    count, skipped = len(steps), int(steps.overflow.sum())
    columns = ""
    if overflowing:
        columns = (f"{_share(overflowing[0]):.0%} of the gradients of {_names(overflowing[:1])} that were sampled were "
                   "above 65504")
    if skipped >= max(_MIN_SKIPPED, _MANY * count):
        head = f"{skipped:,} of {count:,} steps were skipped"
        cures = [record.finding.scale for record in overflows]
        known = [cure for cure in cures if cure is not None]
        if cures and not known:
            return [f"{head}: by their verdicts no loss scale helps."]
        # A step that no scale cures says nothing about the scales.
        curable = steps.overflow.copy()
        incurable = [record.step - first_step for record in overflows if record.finding.scale is None]
        curable[[index for index in incurable if 0 <= index < count]] = False
        scale = settled_scale(steps.loss_scale, curable)
        if scale is not None:
            below = steps.loss_scale <= scale
            lost, rare = int(curable[~below].sum()), int(curable[below].sum())
            proof = f"{rare} of {int(below.sum()):,} steps" if rare else "no step"
            also = f"; {columns}" if columns else ""
            return [f"{head}, {lost:,} of them at loss scales above {scale:.10g}, at or below which {proof} "
                    f"overflowed{also}: {_start_at(scale)}"]
        if known:
            return [f"{head}; their verdicts say that scale {min(known):.10g} would do: {_start_at(min(known))}"]
        return [f'{head}: DynamicLossScaleManager("auto") or calibrate_loss_scale(model, dataset) starts at a scale '
                "that fits; explain_overflow=True tells whether one does."]
    fitting = min(map(_fitting_scale, overflowing), default=0.0)
    if fitting >= 1:
        return [f"{columns}, and all of them fit at a loss scale of {fitting:.10g}: {_start_at(fitting)}"]
    return []


def _start_at(scale: float) -> str:
    return f"start at {scale:.10g}, DynamicLossScaleManager({scale:.10g})."


def settled_scale(scales: np.ndarray, overflow: np.ndarray) -> float | None:
    """Return the largest loss scale of a run at or below which few steps overflowed; None if there is none.

    More steps must have run there than overflowed above it, else these may have stopped overflowing by chance.
    """
    tried, index = np.unique(scales, return_inverse=True)
    count, lost = np.bincount(index), np.bincount(index, weights=overflow)
    few = (lost < count) & (np.cumsum(lost) <= _MANY * np.cumsum(count))
    if not few.any():
        return None
    place = int(np.flatnonzero(few)[-1])
    below, above = count[: place + 1].sum(), lost[place + 1 :].sum()
    return float(tried[place]) if 0 < above < below else None


def _fitting_scale(row: TensorRanges) -> float:
    """Return the largest power of two at which all values of a gradient fit in float16."""
    exponents = row.exponents(unscaled=True)
    # A value of exponent n is below 2**(n + 1).
    return 2.0 ** (math.floor(math.log2(float_format("float16").max)) - max(exponents) - 1) if exponents else math.inf
