"""Accuracy: labels of every form, and those that do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mixtrain.common.tensor import Tensor
from mixtrain.nn.metrics import Accuracy

SCORES = np.array([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05], [0.1, 0.2, 0.7], [0.4, 0.4, 0.2]], np.float32)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, 0, 0, 0]),
        np.array([[1], [0], [0], [0]], np.uint8),
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.eye(3, dtype=np.float32)[[1, 0, 0, 0]],
        Tensor([1, 0, 0, 0], "int32"),
    ],
)
def test_class_numbers_and_one_hot_labels_count_the_same(labels: Any) -> None:
    value = Accuracy()(Tensor(SCORES), labels)
    assert value == 0.75
    assert type(value) is float


def test_batches_add_up_by_rows() -> None:
    metric = Accuracy()
    metric.update(SCORES, [1, 0, 2, 0])
    metric.update(SCORES[:1], [0])
    assert metric.eval() == 4 / 5
    metric.clear()
    metric.update(SCORES[:1], [1])
    assert metric.eval() == 1.0


def test_classes_lie_on_axis_1_of_images() -> None:
    scores = np.zeros((1, 2, 2, 2), np.float32)
    scores[0, 1, 0] = 1.0
    assert Accuracy()(scores, np.array([[[1, 1], [0, 1]]])) == 0.75


def test_multilabel_rows_count_where_all_labels_are_right() -> None:
    metric = Accuracy("multilabel")
    assert metric([[0, 1, 1], [1, 0, 0]], [[0, 1, 1], [1, 1, 0]]) == 0.5


@pytest.mark.parametrize(
    ("predictions", "labels", "message"),
    [
        (SCORES, [1, 0], r"for predictions \(4, 3\) must be class numbers \(4,\) or one-hot; got 'shape \(2,\)'"),
        (SCORES, SCORES, "must be class numbers"),
        (SCORES[:, :1], [1, 0, 0, 0], r"C at least 2; got \(4, 1\). Write .*BinaryAccuracy"),
        ([0.1, 0.9], [0, 1], r"shape \(N, C, ...\)"),
    ],
)
def test_labels_that_do_not_fit_are_refused(predictions: Any, labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Accuracy().update(predictions, labels)


def test_the_number_of_classes_must_stay() -> None:
    metric = Accuracy()
    metric.update(SCORES, [0, 0, 0, 0])
    with pytest.raises(ValueError, match="predictions had 3 classes so far; got '2 classes'"):
        metric.update(SCORES[:, :2], [0, 0, 0, 0])


def test_multilabel_takes_only_zeros_and_ones_of_one_shape() -> None:
    with pytest.raises(ValueError, match="predictions must be 0 or 1 with multilabel"):
        Accuracy("multilabel").update([[0.5, 1.0]], [[0, 1]])
    with pytest.raises(ValueError, match=r"labels must have the predictions' shape \(1, 2\)"):
        Accuracy("multilabel").update([[0, 1]], [1])


def test_two_inputs_and_a_batch_are_needed() -> None:
    with pytest.raises(ValueError, match="it takes 2 inputs, predictions and labels; got '3 inputs'"):
        Accuracy().update(SCORES, [0, 0, 0, 0], 1)
    with pytest.raises(RuntimeError, match="Accuracy.eval: expected at least one batch; got none"):
        Accuracy().eval()


def test_another_type_is_refused() -> None:
    with pytest.raises(TypeError, match='eval_type must be "classification" or "multilabel"'):
        Accuracy("binary")  # type: ignore[arg-type]
