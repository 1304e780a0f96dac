"""What an epoch comes to, by the records of its steps."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.train.epoch_values import epoch_values
from mixtrain.train.records import StepRecords


def test_an_epochs_values_leave_skipped_steps_out() -> None:
    records = StepRecords(
        np.array([1.0, np.nan, 3.0], np.float32), np.array([False, True, False]), np.array([8, 8, 4], np.float32)
    )
    assert epoch_values(records) == {"loss": 2.0, "loss_scale": 4.0, "skipped_steps": 1}


@pytest.mark.parametrize(
    ("losses", "expected"), [([1.0, np.inf, 5.0], 4.0), ([2.0, np.nan, 2.0], 2.0), ([np.nan, np.inf, np.nan], np.nan)]
)
def test_an_epoch_in_which_every_step_was_skipped_has_the_mean_of_the_finite_losses(
    losses: list[float], expected: float
) -> None:
    overflow, rows = np.array([True] * 3), np.array([1, 9, 3])
    values = epoch_values(StepRecords(np.float32(losses), overflow, np.float32([8, 4, 2]), rows=rows))
    np.testing.assert_equal(values, {"loss": expected, "loss_scale": 2.0, "skipped_steps": 3})


def test_without_loss_scaling_an_epoch_has_a_loss_alone() -> None:
    assert epoch_values(StepRecords(np.array([1.0, 2.0], np.float32))) == {"loss": 1.5}
