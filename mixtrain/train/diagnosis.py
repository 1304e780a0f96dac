"""`OverflowDiagnosis`: runs the batch of a skipped step again, instrumented, and says what overflowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mixtrain.diagnostics.non_finite import Finding, find_non_finite
from mixtrain.step.train_cell import TrainOneStepWithLossScaleCell
from mixtrain.train.networks import Networks

# What smaller scales are looked for by where the scale is constant.
_FACTOR: Final = 2.0


class OverflowDiagnosis:
    """Explains overflows of one run; asked twice of the same batch and scale, it answers from memory.

    A skipped step leaves everything as it was, random states too, so that a second pass has the numbers of the first.

    Args:
        networks: What is trained.
    """

    def __init__(self, networks: Networks) -> None:
        self._networks = networks
        self._last: tuple[Any, float, Finding] | None = None

    def __call__(self, batch: Sequence[Any], loss_scale: float) -> Finding:
        """Return where numbers went wrong.

        Args:
            batch: The columns of the batch.
            loss_scale: The scale that the step used.
        """
        last = self._last
        if last is not None and last[0] is batch and last[1] == loss_scale:
            return last[2]
        networks = self._networks
        train = networks.train_network
        factor, minimum = _FACTOR, 1.0
        if isinstance(train, TrainOneStepWithLossScaleCell):
            rule = train.state.rule
            shrinking = rule.factor if rule.backoff is None else 1.0 / rule.backoff
            factor, minimum = (shrinking if shrinking > 1 else _FACTOR), rule.minimum
        networks.precision.hold()
        finding = find_non_finite(
            networks.examined, networks.with_loss, batch, loss_scale, factor=factor, minimum=minimum,
            in_float32=networks.in_float32,
        )
        self._last = batch, loss_scale, finding
        return finding
