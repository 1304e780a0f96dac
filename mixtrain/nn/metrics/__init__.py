"""Evaluation metrics under MindSpore's names, and an adapter of Keras's metrics."""

from mixtrain.lazy_names import serve_names
from mixtrain.metrics import KerasMetric, Metric, MetricLike, as_metrics, rearrange_inputs
from mixtrain.metrics.factory import register_metrics
from mixtrain.nn.metrics.accuracy import Accuracy
from mixtrain.nn.metrics.bleu_score import BleuScore
from mixtrain.nn.metrics.class_counts import F1, Fbeta, Precision, Recall
from mixtrain.nn.metrics.confusion_matrix import ConfusionMatrix
from mixtrain.nn.metrics.confusion_matrix_metric import ConfusionMatrixMetric
from mixtrain.nn.metrics.error import MAE, MSE
from mixtrain.nn.metrics.lookup import get_metric_fn, names
from mixtrain.nn.metrics.loss import Loss
from mixtrain.nn.metrics.occlusion_sensitivity import OcclusionSensitivity
from mixtrain.nn.metrics.perplexity import Perplexity
from mixtrain.nn.metrics.roc import ROC, auc
from mixtrain.nn.metrics.similarity import CosineSimilarity, Dice
from mixtrain.nn.metrics.surface_distance import HausdorffDistance, MeanSurfaceDistance, RootMeanSquareDistance
from mixtrain.nn.metrics.topk import Top1CategoricalAccuracy, Top5CategoricalAccuracy, TopKCategoricalAccuracy

__all__ = [
    "F1", "MAE", "MSE", "ROC", "Accuracy", "BleuScore", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity",
    "Dice", "Fbeta", "HausdorffDistance", "KerasMetric", "Loss", "MeanSurfaceDistance", "Metric", "MetricLike",
    "OcclusionSensitivity", "Perplexity", "Precision", "Recall", "RootMeanSquareDistance", "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "as_metrics", "auc", "get_metric_fn", "names",
    "rearrange_inputs",
]

register_metrics(
    {
        "F1": F1,
        "accuracy": Accuracy,
        "acc": Accuracy,
        "auc": auc,
        "bleu_score": BleuScore,
        "confusion_matrix": ConfusionMatrix,
        "confusion_matrix_metric": ConfusionMatrixMetric,
        "cosine_similarity": CosineSimilarity,
        "dice": Dice,
        "hausdorff_distance": HausdorffDistance,
        "loss": Loss,
        "mae": MAE,
        "mean_surface_distance": MeanSurfaceDistance,
        "mse": MSE,
        "occlusion_sensitivity": OcclusionSensitivity,
        "perplexity": Perplexity,
        "precision": Precision,
        "recall": Recall,
        "roc": ROC,
        "root_mean_square_distance": RootMeanSquareDistance,
        "top_1_accuracy": Top1CategoricalAccuracy,
        "top_5_accuracy": Top5CategoricalAccuracy,
        "topk": TopKCategoricalAccuracy,
    },
    required_arguments={
        TopKCategoricalAccuracy: "TopKCategoricalAccuracy(5)", ConfusionMatrix: "ConfusionMatrix(num_classes=10)",
    },
)


serve_names(__name__)
