"""Confusion matrices and their ratios: forms of predictions, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain.nn as nn

# To call with what the types forbid.
loose: Any = nn


def test_scores_class_numbers_and_probabilities_are_taken() -> None:
    expected = [[1.0, 1.0], [0.0, 1.0]]
    assert nn.ConfusionMatrix(2)([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]], [0, 1, 0]).tolist() == expected
    assert nn.ConfusionMatrix(2)([0, 1, 1], [0, 1, 0]).tolist() == expected
    assert nn.ConfusionMatrix(2, threshold=0.6)([0.5, 0.6, 0.7], [0, 1, 0]).tolist() == expected


def test_batches_add_up_and_rows_without_labels_stay_zero() -> None:
    metric = nn.ConfusionMatrix(3, "target")
    metric.update([0, 1], [0, 0])
    metric.update([0, 0], [0, 1])
    np.testing.assert_allclose(metric.eval(), np.array([[2 / 3, 1 / 3, 0], [1, 0, 0], [0, 0, 0]]))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: loose.ConfusionMatrix(0), ValueError, "ConfusionMatrix: num_classes must be at least 1"),
        (lambda: loose.ConfusionMatrix(2, "label"), ValueError, "normalize must be one of .*; got 'label'"),
        (lambda: loose.ConfusionMatrix(2)([0, 2], [0, 1]), ValueError, r"predictions must be classes 0 to 1; got 2"),
        (
            lambda: loose.ConfusionMatrix(2)([0, 1], [0, 1, 1]), ValueError,
            r"labels must have the predictions' shape \(2,\)",
        ),
        (lambda: loose.ConfusionMatrix(2).eval(), RuntimeError, "ConfusionMatrix.eval: expected at least one batch"),
        (
            lambda: loose.ConfusionMatrixMetric(metric_name="sensitivty"), ValueError,
            "ConfusionMatrixMetric: metric_name must be one of .* Write metric_name=\"sensitivity\"",
        ),
        (lambda: loose.ConfusionMatrixMetric(decrease="max"), ValueError, "decrease must be one of"),
        (lambda: loose.ConfusionMatrixMetric()([[1, 0]], [[1, 0, 0]]), ValueError, "must have one shape"),
        (lambda: loose.ConfusionMatrixMetric()([[1, 0]], [[1, 2]]), ValueError, "labels must be 0 or 1; got "),
        (
            lambda: loose.ConfusionMatrixMetric(calculation_method=True)([[1, 0]], [[1, 0]]), ValueError,
            "with 3 axes or more",
        ),
    ],
)
def test_bad_input_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_kept_axis_must_have_one_entry() -> None:
    masks = [[[1, 0], [0, 1]]]
    assert nn.ConfusionMatrixMetric(calculation_method=True, decrease="mean_channel")(masks, masks) == 1.0
    with pytest.raises(ValueError, match='decrease="mean_batch" must leave one value; got \'2 values\''):
        nn.ConfusionMatrixMetric(calculation_method=True, decrease="mean_batch")(masks, masks)


def test_a_ratio_of_nothing_is_not_a_number() -> None:
    assert np.isnan(nn.ConfusionMatrixMetric(metric_name="hit rate")([[0, 0]], [[0, 0]]))[0]
