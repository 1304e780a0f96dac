"""MAE, MSE and Loss: what is summed and what it is divided by."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.nn.metrics import MAE, MSE, Loss


def test_errors_are_divided_by_rows_not_by_elements() -> None:
    predictions, labels = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[3.0, 2.0], [3.0, 2.0]])
    assert MAE()(predictions, labels) == 2.0
    assert MSE()(predictions, labels) == 4.0


def test_labels_take_the_shape_of_the_predictions() -> None:
    assert MAE()(np.array([[1.0], [2.0]]), np.array([1.0, 4.0])) == 1.0


def test_error_batches_add_up_by_rows() -> None:
    metric = MSE()
    metric.update([1.0, 1.0, 1.0], [0.0, 0.0, 0.0])
    metric.update([5.0], [0.0])
    assert metric.eval() == 7.0


def test_labels_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match=r"MAE.update: labels must have the predictions' shape \(2,\); got \(3,\)"):
        MAE().update([1.0, 2.0], [1.0, 2.0, 3.0])


def test_every_batch_of_losses_counts_the_same() -> None:
    metric = Loss()
    metric.update(np.float32(1.0))
    metric.update(np.array([2.0, 4.0]))
    assert metric.eval() == 2.0
    assert type(metric.eval()) is float


def test_wrong_losses_are_refused() -> None:
    with pytest.raises(ValueError, match="it takes 1 input, the loss; got '2 inputs'"):
        Loss().update(1.0, 2.0)
    with pytest.raises(ValueError, match=r"scalar or of shape \(N,\); got \(1, 1\)"):
        Loss().update([[1.0]])
    with pytest.raises(RuntimeError, match="Loss.eval: expected at least one batch"):
        Loss().eval()
