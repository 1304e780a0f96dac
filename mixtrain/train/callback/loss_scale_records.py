"""`LossScaleRecords`: loss scaling in a run, one row per step, with its events and a summary."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

_MAX_EVENTS = 5


@dataclasses.dataclass(frozen=True, eq=False)
class LossScaleRecords:
    """The steps of a run, oldest first, as arrays of shape (n,).

    Attributes:
        epoch: Number of the epoch, from 1.
        step: Number of the step over all epochs, from 1.
        loss: The unscaled loss, float32.
        loss_scale: The scale that the step used, float32.
        overflow: Whether gradients of the step were not finite.
        applied: Whether the weights were changed.
    """

    epoch: np.ndarray
    step: np.ndarray
    loss: np.ndarray
    loss_scale: np.ndarray
    overflow: np.ndarray
    applied: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[LossScaleRecords]) -> LossScaleRecords:
        """Concatenate parts of a run."""
        if not parts:
            empty = np.zeros(0, np.float32)
            return cls(empty.astype(int), empty.astype(int), empty, empty, empty.astype(bool), empty.astype(bool))
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def __len__(self) -> int:
        return len(self.step)

    def skipped(self) -> Iterator[tuple[int, str]]:
        """Yield (row, line) for each skipped step."""
        for row in np.flatnonzero(~self.applied).tolist():
            if np.isfinite(self.loss[row]):
                reason = f"gradients overflowed at scale {self.loss_scale[row]:.10g}"
            else:
                reason = (
                    "the loss itself was not finite: look at the inputs and the forward pass; a smaller scale cannot "
                    "help"
                )
            yield row, f"{self._label(row)}: skipped, {reason}"

    def changes(self) -> Iterator[tuple[int, str]]:
        """Yield (row, line) for each step whose scale changed, except for decreases after a skipped step."""
        last_change = 0
        for row in range(1, len(self)):
            previous, scale = self.loss_scale[row - 1], self.loss_scale[row]
            if scale > previous:
                yield row, (
                    f"{self._label(row)}: scale grew from {previous:.10g} to {scale:.10g} after {row - last_change} "
                    "steps without overflow"
                )
            elif scale < previous and self.applied[row - 1]:
                yield row, f"{self._label(row)}: scale was lowered from {previous:.10g} to {scale:.10g}"
            if scale != previous or not self.applied[row - 1]:
                last_change = row

    def events(self, first_row: int = 0) -> list[str]:
        """Return the lines of skipped steps and scale changes, in order, from `first_row` on."""
        events = sorted([*self.skipped(), *self.changes()], key=lambda event: event[0])
        return [line for row, line in events if row >= first_row]

    def summary(self, final_scale: float | None = None) -> str:
        """Summarize the run in a few lines; `final_scale` is that after the last step, by default the last one used."""
        if not len(self):
            return "Loss scale: no steps."
        final = float(self.loss_scale[-1]) if final_scale is None else final_scale
        changes = [line for _, line in self.changes()]
        growths = sum("grew" in line for line in changes)
        applied = int(self.applied.sum())
        lines = [
            f"Loss scale: {final:.10g} at the end, {self.loss_scale[0]:.10g} at first; {applied} steps applied, "
            f"{len(self) - applied} skipped, the scale grew {growths} {'time' if growths == 1 else 'times'}."
        ]
        for events in ([line for _, line in self.skipped()], changes):
            lines += [f"  {line}" for line in events[:_MAX_EVENTS]]
            if len(events) > _MAX_EVENTS:
                lines.append(f"  ... and {len(events) - _MAX_EVENTS} more")
        return "\n".join(lines)

    def _label(self, row: int) -> str:
        return f"step {self.step[row]} (epoch {self.epoch[row]})"
