"""`StepScale`: the loss scale of a training step, updated inside the compiled step."""

from __future__ import annotations

import keras

from mixtrain import faces
from mixtrain.loss_scale.manager import LossScaleManager, host_driven, owner_of_update_cell
from mixtrain.loss_scale.rule import LossScaleState
from mixtrain.typing import Tensor


class StepScale:
    """Loss scale of a training step and its counters. `variable`: The scale that the next step uses."""

    def __init__(self, state: LossScaleState) -> None:
        self.state = state
        self.variable: keras.Variable = state.loss_scale

    def own_variables(self) -> list[keras.Variable]:
        """Return the variables that an update of the user's own has beside `state`."""
        return []

    def variables(self) -> list[keras.Variable]:
        """Return the variables that a step updates, the counts first."""
        return [self.state.counts, self.state.loss_scale, *self.own_variables()]

    def advance(self, finite: Tensor) -> None:
        """Update the loss scale and the counts after a step; `finite` is a bool scalar tensor or a Python bool."""
        self.state.advance(finite)


def scale_of(where: str, manager: LossScaleManager) -> StepScale | None:
    """Return the scale of a manager that the step itself updates; None if Python code updates it."""
    if host_driven(manager):
        return None
    if "new_state" in vars(owner_of_update_cell(manager)):
        return StepScale(manager.new_state())  # type: ignore[attr-defined]
    cell = manager.get_update_cell()
    return None if cell is None else faces.face("scale_of_cell", where, cell)
