"""Perplexity, similarities, curves and translations: more than one batch, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mixtrain.nn as nn

# To call with what the types forbid.
loose: Any = nn


def test_curves_go_over_all_batches() -> None:
    metric = nn.ROC(pos_label=1)
    metric.update([0.1, 0.4], [0, 1])
    metric.update([0.8], [1])
    fpr, tpr, thresholds = metric.eval()
    assert (fpr.tolist(), tpr.tolist()) == ([0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 1.0, 1.0])
    np.testing.assert_allclose(thresholds, [1.8, 0.8, 0.4, 0.1])


def test_curves_of_many_classes_need_no_square_batch() -> None:
    fpr, tpr, _ = nn.ROC(class_num=2)([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]], [0, 0, 1])
    assert [part.tolist() for part in tpr] == [[0.0, 0.5, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0]]
    assert [part.tolist() for part in fpr] == [[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.5, 1.0]]


def test_a_similarity_is_of_the_last_rows_and_can_be_read_twice() -> None:
    metric = nn.CosineSimilarity(reduction="sum")
    metric.update([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    metric.update([[3.0, 0.0], [5.0, 0.0]])
    assert metric.eval().tolist() == metric.eval().tolist() == [1.0, 1.0]


def test_perplexity_takes_sequences() -> None:
    likely = np.full((2, 3, 4), 0.25, np.float32)
    assert nn.Perplexity()(likely, np.zeros((2, 3), np.int32)) == pytest.approx(4.0)


def test_a_translation_without_a_word_in_common_scores_zero() -> None:
    assert nn.BleuScore()([["a"]], [[["b"]]]) == 0.0


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: loose.Perplexity()([[0.5, 0.5]], [2]), ValueError, "Perplexity.update: labels .* from 0 to 1; got 2"),
        (lambda: loose.ROC()([0.1, 0.2], [1, 1]), ValueError, "ROC.eval: each class must have labels of it and others"),
        (lambda: loose.ROC()([[0.1, 0.2]], [1]), ValueError, r"Write ROC\(class_num=C\) for scores"),
        (lambda: loose.ROC(class_num=3)([[0.1, 0.2]], [1]), ValueError, r"must have shape \(N, 3\) for labels"),
        (lambda: loose.ROC(class_num=2.0), TypeError, "ROC: class_num must be an int"),
        (lambda: loose.auc([0, 1], [0, 1]), TypeError, "auc: x must be a ndarray; got list"),
        (lambda: loose.auc(np.array([0, 1, 0]), np.arange(3)), ValueError, "auc: x must rise or fall"),
        (lambda: loose.auc(np.array([0]), np.array([0])), ValueError, "as many points, 2 or more; got '1 and 1'"),
        (lambda: loose.auc(np.ones((2, 2)), np.arange(2)), ValueError, r"auc: x must have shape \(N,\)"),
        (lambda: loose.Perplexity("0"), TypeError, "Perplexity: ignore_label must be an int"),
        (lambda: loose.Perplexity()([[0.5, 0.5]], [0, 1]), ValueError, "one label for each row of predictions"),
        (lambda: loose.CosineSimilarity("cos"), ValueError, 'Write similarity="cosine"'),
        (lambda: loose.CosineSimilarity().eval(), RuntimeError, "at least one batch"),
        (lambda: loose.Dice(0.0), ValueError, "Dice: smooth must be greater than 0"),
        (
            lambda: loose.Dice()([[1.0]], [[1.0, 0.0]]), ValueError,
            "Dice.update: labels must have the predictions' shape",
        ),
        (lambda: loose.BleuScore(5), ValueError, "BleuScore: n_gram must be at most 4; got 5"),
        (lambda: loose.BleuScore()([["a"]], []), ValueError, "translations and as many lists of references"),
    ],
)
def test_bad_input_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
