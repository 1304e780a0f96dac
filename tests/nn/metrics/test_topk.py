"""Top-k accuracy: ranks, ties and labels."""

from __future__ import annotations

import numpy as np
import pytest

from mixtrain.nn.metrics import Top1CategoricalAccuracy, Top5CategoricalAccuracy, TopKCategoricalAccuracy

SCORES = np.array([[0.2, 0.5, 0.3, 0.6, 0.2], [0.1, 0.35, 0.5, 0.2, 0.0], [0.9, 0.6, 0.2, 0.01, 0.3]], np.float32)


def test_the_label_may_be_among_the_k_greatest() -> None:
    assert TopKCategoricalAccuracy(3)(SCORES, [2, 0, 1]) == 2 / 3
    assert Top1CategoricalAccuracy()(SCORES, [2, 0, 1]) == 0.0
    assert Top5CategoricalAccuracy()(SCORES, [2, 0, 1]) == 1.0


@pytest.mark.parametrize("labels", [np.array([[2], [0], [1]]), np.eye(5)[[2, 0, 1]]])
def test_one_hot_and_column_labels_count_the_same(labels: np.ndarray) -> None:
    assert TopKCategoricalAccuracy(3)(SCORES, labels) == 2 / 3


def test_of_equal_scores_the_first_comes_first() -> None:
    assert TopKCategoricalAccuracy(2)(np.zeros((4, 4)), [0, 1, 2, 3]) == 0.5


def test_batches_add_up_by_rows() -> None:
    metric = TopKCategoricalAccuracy(1)
    metric.update(SCORES, [3, 2, 0])
    metric.update(SCORES[:1], [0])
    assert metric.eval() == 0.75


def test_bad_arguments_and_inputs_are_refused() -> None:
    with pytest.raises(ValueError, match="k must be at least 1; got 0"):
        TopKCategoricalAccuracy(0)
    with pytest.raises(TypeError, match="k must be an int"):
        TopKCategoricalAccuracy(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="C at least k=5"):
        Top5CategoricalAccuracy().update(SCORES[:, :4], [0, 0, 0])
    with pytest.raises(ValueError, match="labels must be class numbers"):
        TopKCategoricalAccuracy(1).update(SCORES, [0, 0])
    with pytest.raises(RuntimeError, match="Top5CategoricalAccuracy.eval"):
        Top5CategoricalAccuracy().eval()
