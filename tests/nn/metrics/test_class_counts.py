"""Precision, Recall, Fbeta and F1: by class and by row, over batches, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain.nn as nn

# To call with what the types forbid.
loose: Any = nn

SCORES = [[0.2, 0.8], [0.9, 0.1], [0.3, 0.7]]


def test_batches_add_up_by_class() -> None:
    metric = nn.Precision()
    metric.update(SCORES, [1, 0, 0])
    metric.update(SCORES, [1, 1, 1])
    assert metric.eval().tolist() == [0.5, 0.75]
    assert metric.eval(average=True) == 0.625
    metric.clear()
    metric.update(SCORES, [1, 0, 1])
    assert metric.eval().tolist() == [1.0, 1.0]


@pytest.mark.parametrize("labels", [[1, 0, 0], [[1], [0], [0]], [[0, 1], [1, 0], [1, 0]]])
def test_labels_are_class_numbers_or_one_hot(labels: Any) -> None:
    assert nn.Recall()(SCORES, labels).tolist() == [0.5, 1.0]


def test_a_class_that_never_comes_counts_as_zero() -> None:
    assert nn.F1()([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]], [2, 2]).tolist() == [0.0, 0.0, 1.0]


def test_images_are_counted_by_pixel() -> None:
    scores = np.moveaxis(np.eye(2)[[[0, 1], [1, 1]]], -1, 1)
    assert nn.Recall()(scores, np.array([[0, 1], [0, 1]])).tolist() == [0.5, 1.0]


def test_with_several_labels_there_is_a_value_a_row() -> None:
    metric = nn.Precision("multilabel")
    metric.update([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]])
    metric.update([[1, 1, 1]], [[0, 0, 0]])
    assert metric.eval().tolist() == [0.5, 1.0, 0.0]
    assert metric.eval(True) == 0.5


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: loose.Precision("multi"), TypeError, 'Precision: eval_type must be "classification" or "multilabel"'),
        (lambda: loose.Fbeta(0.0), ValueError, "Fbeta: beta must be greater than 0"),
        (lambda: loose.Recall()(SCORES, [1, 0, 2]), ValueError, "Recall.update: labels must be classes 0 to 1; got 2"),
        (lambda: loose.Recall()(SCORES, [1, 0, -1]), ValueError, "labels must be classes 0 to 1; got -1"),
        (lambda: loose.Recall()(SCORES, [1, 0]), ValueError, r"labels for predictions \(3, 2\) must be class numbers"),
        (
            lambda: loose.Recall().update(SCORES), ValueError,
            "it takes 2 inputs, predictions and labels; got '1 inputs'",
        ),
        (lambda: loose.F1().eval(), RuntimeError, "F1.eval: expected at least one batch; got none"),
        (lambda: loose.F1().eval(average=1), TypeError, "F1.eval: average must be True or False"),
        (lambda: loose.Precision("multilabel")([[0.5, 1]], [[0, 1]]), ValueError, "predictions must be 0 or 1"),
    ],
)
def test_bad_input_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_changed_number_of_classes_is_refused() -> None:
    metric = nn.F1()
    metric.update(SCORES, [1, 0, 0])
    with pytest.raises(ValueError, match="predictions had 2 classes so far; got '3 classes'"):
        metric.update([[0.1, 0.2, 0.7]], [2])
