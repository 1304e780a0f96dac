"""Metrics by name, and every form of `metrics=`, Keras's among them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest

import mixtrain
import mixtrain.train.metrics
from mixtrain.nn.metrics import (
    MAE,
    Accuracy,
    KerasMetric,
    Loss,
    Metric,
    Top5CategoricalAccuracy,
    as_metrics,
    get_metric_fn,
    names,
)


def kinds(metrics: Any) -> dict[str, type]:
    return {name: type(metric) for name, metric in as_metrics(metrics).items()}


def test_names_lead_to_metrics() -> None:
    assert isinstance(get_metric_fn("acc", "multilabel"), Accuracy)
    assert get_metric_fn("topk", k=3).k == 3  # type: ignore[attr-defined]


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(ValueError, match='got \'acuracy\'. Write name="accuracy"'):
        get_metric_fn("acuracy")
    with pytest.raises(ValueError, match='metrics: name must be one of .*; got \'top5\'. Write name="top'):
        as_metrics({"top5"})


def test_none_and_empty_are_no_metrics() -> None:
    assert as_metrics(None) == as_metrics([]) == as_metrics(set()) == {}


def test_a_dict_keeps_its_names() -> None:
    assert kinds({"Accuracy": Accuracy(), "l": "loss", "auc": keras.metrics.AUC()}) == {
        "Accuracy": Accuracy, "l": Loss, "auc": KerasMetric,
    }


def test_sets_lists_and_single_ones_are_named_by_what_they_are() -> None:
    assert list(kinds({"loss", "acc"})) == ["acc", "loss"]
    assert kinds(["top_5_accuracy", MAE()]) == {"top_5_accuracy": Top5CategoricalAccuracy, "mae": MAE}
    assert kinds("accuracy") == {"accuracy": Accuracy}
    assert kinds(Accuracy()) == {"accuracy": Accuracy}
    assert kinds(keras.metrics.Precision()) == {"precision": KerasMetric}


def test_the_case_of_our_names_does_not_matter() -> None:
    assert kinds(["Accuracy", "MAE"]) == {"Accuracy": Accuracy, "MAE": MAE}


def test_keras_names_are_known() -> None:
    metrics = as_metrics(["sparse_categorical_accuracy", "AUC"])
    assert [type(metric.metric).__name__ for metric in metrics.values()] == [  # type: ignore[attr-defined]
        "SparseCategoricalAccuracy", "AUC",
    ]


def test_a_metric_of_the_users_own_is_named_after_its_class() -> None:
    class Mine(Metric):
        pass

    assert kinds([Mine()]) == {"Mine": Mine}


def test_one_name_for_two_metrics_is_refused() -> None:
    with pytest.raises(ValueError, match="each name must stand for one metric; got 'accuracy'"):
        as_metrics(["accuracy", Accuracy()])


@pytest.mark.parametrize("metrics", [3, [3], {"acc": Accuracy}, {1: Accuracy()}, [Accuracy]])
def test_what_is_no_metric_is_refused(metrics: Any) -> None:
    with pytest.raises(TypeError, match="metrics: "):
        as_metrics(metrics)


def test_a_keras_metric_gets_labels_first_and_starts_anew_after_clear() -> None:
    metric = KerasMetric(keras.metrics.SparseCategoricalAccuracy())
    scores = np.array([[0.1, 0.9], [0.8, 0.2]], np.float32)
    assert metric(scores, np.array([1, 1])) == 0.5
    metric.update(scores, np.array([1, 0]))
    assert metric.eval() == 0.75
    assert metric(scores, np.array([1, 0])) == 1.0
    assert type(metric.eval()) is float


def test_a_keras_metric_of_one_value_is_given_one() -> None:
    metric = KerasMetric(keras.metrics.Mean()).set_indexes([0])
    assert metric(3.0, "unused") == 3.0


def test_a_keras_metric_of_many_values_gives_an_array() -> None:
    value = KerasMetric(keras.metrics.F1Score())(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))
    np.testing.assert_allclose(value, [1.0, 1.0], rtol=1e-6)


def test_every_name_that_needs_nothing_more_makes_its_metric() -> None:
    for name in set(names()) - {"auc", "topk", "confusion_matrix"}:
        assert isinstance(as_metrics({name})[name], Metric)
    assert [type(metric).__name__ for metric in as_metrics(["Precision", "f1", "MSE"]).values()] == [
        "Precision", "F1", "MSE",
    ]


def test_auc_is_a_function_by_name_and_keras_metric_for_a_model() -> None:
    assert get_metric_fn("auc", np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 0.5
    assert kinds({"auc"}) == {"auc": KerasMetric}


@pytest.mark.parametrize(
    ("name", "write"),
    [("topk", r'metrics={"topk": TopKCategoricalAccuracy\(5\)}'), ("confusion_matrix", "ConfusionMatrix")],
)
def test_a_name_whose_metric_needs_an_argument_says_so(name: str, write: str) -> None:
    with pytest.raises(ValueError, match=f"needs an argument; got '{name}'. Write .*{write}"):
        as_metrics({name})


def test_both_homes_give_the_same_metrics() -> None:
    assert mixtrain.train.metrics.Accuracy is mixtrain.nn.metrics.Accuracy is mixtrain.nn.Accuracy is Accuracy
    assert set(mixtrain.train.metrics.__all__) == set(mixtrain.nn.metrics.__all__)
