"""Every metric gives the reference's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import mixtrain.nn as nn
from mixtrain.common.tensor import Tensor
from mixtrain.nn.metrics.confusion_ratios import ratio_by_name
from tests.nn.reference import case

FILE = "metrics_reference"
RATIOS = (
    "tpr", "tnr", "ppv", "npv", "fnr", "fpr", "fdr", "for", "pt", "ts", "acc", "ba", "f1", "mcc", "fm", "bm", "mk",
)


def measured(metric: nn.Metric, batches: Sequence[Sequence[Any]], **options: Any) -> Any:
    """Return a metric's value after batches."""
    metric.clear()
    for batch in batches:
        metric.update(*(Tensor(column) for column in batch))
    return metric.eval(**options)


def batches(name: str) -> list[tuple[Any, Any]]:
    reference = case(name, FILE)
    return [(reference[f"x{number}"], reference[f"y{number}"]) for number in range(2) if f"x{number}" in reference]


def one_hot(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [(x, np.eye(4, dtype=np.float32)[y]) for x, y in pairs]


def agree(value: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(value, float), np.asarray(expected, float), rtol=1e-5, atol=1e-7)


SCORES: dict[str, tuple[Any, bool, dict[str, Any]]] = {
    "accuracy": (nn.Accuracy(), False, {}),
    "precision": (nn.Precision(), False, {}),
    "precision_average": (nn.Precision(), False, {"average": True}),
    "recall": (nn.Recall(), False, {}),
    "recall_average": (nn.Recall(), True, {"average": True}),
    "f1": (nn.F1(), False, {}),
    "fbeta": (nn.Fbeta(0.5), False, {}),
    "fbeta_average": (nn.Fbeta(0.5), True, {"average": True}),
    "top1": (nn.Top1CategoricalAccuracy(), False, {}),
    "top2": (nn.TopKCategoricalAccuracy(2), True, {}),
    "perplexity": (nn.Perplexity(), False, {}),
    "perplexity_ignore": (nn.Perplexity(1), False, {}),
    "mae": (nn.MAE(), True, {}),
    "mse": (nn.MSE(), True, {}),
    "confusion_no_norm": (nn.ConfusionMatrix(4), False, {}),
    "confusion_target": (nn.ConfusionMatrix(4, "target"), False, {}),
    "confusion_prediction": (nn.ConfusionMatrix(4, "prediction"), False, {}),
    "confusion_all": (nn.ConfusionMatrix(4, "all"), False, {}),
}


@pytest.mark.parametrize("name", SCORES)
def test_metrics_of_class_scores(name: str) -> None:
    metric, with_one_hot, options = SCORES[name]
    pairs = batches("classes")
    agree(measured(metric, one_hot(pairs) if with_one_hot else pairs, **options), case("classes", FILE)[name])


def test_the_mean_loss_of_batches() -> None:
    reference = case("classes", FILE)
    agree(measured(nn.Loss(), [(np.float32(0.5),), (reference["x1"][0],)]), reference["loss"])


@pytest.mark.parametrize("name", ["precision", "recall"])
def test_metrics_of_several_labels(name: str) -> None:
    kind, reference = {"precision": nn.Precision, "recall": nn.Recall}[name], case("multilabel", FILE)
    agree(measured(kind("multilabel"), batches("multilabel")), reference[name])
    agree(measured(kind("multilabel"), batches("multilabel"), average=True), reference[f"{name}_average"])


def test_the_accuracy_of_several_labels() -> None:
    agree(measured(nn.Accuracy("multilabel"), batches("multilabel")), case("multilabel", FILE)["accuracy"])


def test_curves_of_one_class_and_their_areas() -> None:
    reference = case("binary", FILE)
    fpr, tpr, thresholds = measured(nn.ROC(pos_label=1), batches("binary"))
    agree(np.stack([fpr, tpr, thresholds]), reference["roc"])
    agree(nn.auc(fpr, tpr), reference["auc"])
    agree(nn.auc(fpr[::-1], tpr[::-1]), reference["auc_falling"])
    agree(nn.auc(reference["x0"], reference["y0"], reorder=True), reference["auc_reorder"])
    agree(measured(nn.ConfusionMatrix(2, threshold=0.4), batches("binary")), reference["confusion"])


def test_curves_of_each_class() -> None:
    reference = case("square", FILE)
    curves = measured(nn.ROC(class_num=4), batches("square"))
    for number in range(4):
        agree(np.stack([part[number] for part in curves]), reference[f"roc_{number}"])


@pytest.mark.parametrize("ratio", RATIOS)
def test_ratios_of_confusion_matrices(ratio: str) -> None:
    reference, pairs = case("images", FILE), batches("images")
    agree(measured(nn.ConfusionMatrixMetric(metric_name=ratio), pairs), reference[ratio])
    agree(measured(nn.ConfusionMatrixMetric(False, ratio), pairs), reference[f"{ratio}_skip"])
    agree(measured(nn.ConfusionMatrixMetric(True, ratio, True), pairs), reference[f"{ratio}_each"])
    agree(measured(nn.ConfusionMatrixMetric(True, ratio, True, "sum"), pairs), reference[f"{ratio}_sum"])
    assert ratio_by_name("test", ratio.upper()) is ratio_by_name("test", ratio)


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_similarities(similarity: Any) -> None:
    reference = case("vectors", FILE)
    reductions: tuple[Any, ...] = ("none", "sum", "mean")
    for reduction in reductions:
        for diagonal in (True, False):
            metric = nn.CosineSimilarity(similarity, reduction, diagonal)
            agree(measured(metric, [(reference["x0"],)]), reference[f"{similarity}_{reduction}_{int(diagonal)}"])


def test_dice_of_masks() -> None:
    agree(measured(nn.Dice(), batches("masks")), case("masks", FILE)["dice"])
    agree(measured(nn.Dice(0.5), batches("masks")), case("masks", FILE)["dice_smooth"])


def test_bleu_scores() -> None:
    candidates = [["i", "have", "a", "pen", "on", "my", "desk"], ["the", "cat", "sat", "on", "the", "mat"]]
    references = [
        [["i", "have", "a", "pen", "in", "my", "desk"], ["there", "is", "a", "pen", "on", "the", "desk"]],
        [["the", "cat", "sat", "on", "a", "mat", "there"]],
    ]
    for name, expected in case("bleu", FILE).items():
        n_gram, smooth = name.split("_")
        agree(nn.BleuScore(int(n_gram), smooth == "1")(candidates, references), expected)


SURFACES: dict[str, Any] = {
    "hausdorff": lambda metric: nn.HausdorffDistance(metric),
    "hausdorff_directed": lambda metric: nn.HausdorffDistance(metric, 80.0, True),
    "mean": lambda metric: nn.MeanSurfaceDistance(False, metric),
    "mean_symmetric": lambda metric: nn.MeanSurfaceDistance(True, metric),
    "square": lambda metric: nn.RootMeanSquareDistance(False, metric),
    "square_symmetric": lambda metric: nn.RootMeanSquareDistance(True, metric),
}


@pytest.mark.parametrize("kind", ["euclidean", "chessboard", "taxicab"])
def test_distances_of_surfaces(kind: str) -> None:
    reference = case("surfaces", FILE)
    for name, make in SURFACES.items():
        for image in ("plane", "volume"):
            result = make(kind)(Tensor(reference[f"{image}_x"]), Tensor(reference[f"{image}_y"]), 1)
            # The reference takes the root of the symmetric mean square only; its formula has it in both.
            agree(result**2 if name == "square" else result, reference[f"{name}_{kind}_{image}"])


def test_a_mask_without_edge_is_infinitely_far_away() -> None:
    for metric in (nn.HausdorffDistance(), nn.MeanSurfaceDistance(True), nn.RootMeanSquareDistance()):
        assert metric([[1, 0]], [[2, 2]], 1) == np.inf


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.MeanSurfaceDistance(distance_metric="far"), ValueError, "MeanSurfaceDistance: .*distance_metric"),
        (lambda: nn.HausdorffDistance().eval(), RuntimeError, "HausdorffDistance.eval: nothing was gathered"),
        (lambda: nn.HausdorffDistance()([[1]], [[1]]), ValueError, "it takes three inputs; got 2"),
        (lambda: nn.HausdorffDistance()([[1]], [[1, 1]], 1), ValueError, r"must have the shape \(1, 1\)"),
        (lambda: nn.HausdorffDistance()([[1]], [[1]], 3), ValueError, "the label must be in one of the arrays"),
        (lambda: nn.HausdorffDistance()([[1]], [[1]], "a"), TypeError, "the label must be a number"),
        (lambda: nn.OcclusionSensitivity().eval(), RuntimeError, "OcclusionSensitivity.eval: nothing was gathered"),
        (lambda: nn.OcclusionSensitivity()(len, np.ones((2, 3)), 0), ValueError, "one image and one label"),
        (lambda: nn.OcclusionSensitivity(b_box=[0, 3])(len, np.ones((1, 3)), 0), ValueError, "b_box must lie inside"),
    ],
)
def test_bad_calls_of_surfaces_and_occlusion_say_so(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("settings", ["whole", "box"])
def test_sensitivity_to_occlusion(settings: str) -> None:
    reference = case("occlusion", FILE)
    network = nn.SequentialCell(nn.Flatten(), nn.Dense(20, 3, Tensor(reference["weight"]), Tensor(reference["bias"])))
    metric = nn.OcclusionSensitivity()
    if settings == "box":
        metric = nn.OcclusionSensitivity(0.5, b_box=[1, 3, 0, -1], margin=1, n_batch=4)
    result = metric(network, reference["image"], np.array(2, np.int32))
    # Differences of scores near 10, whose last bits are the backend's.
    np.testing.assert_allclose(result, reference[settings], rtol=1e-5, atol=5e-6)


def test_names_are_the_references() -> None:
    assert case("names", FILE)["names"].tolist() == nn.names()
