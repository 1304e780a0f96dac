"""Evaluation metrics under MindSpore's names, and an adapter of Keras's metrics."""

from mixtrain.nn.metrics.accuracy import Accuracy
from mixtrain.nn.metrics.bleu_score import BleuScore
from mixtrain.nn.metrics.class_counts import F1, Fbeta, Precision, Recall
from mixtrain.nn.metrics.confusion_matrix import ConfusionMatrix
from mixtrain.nn.metrics.confusion_matrix_metric import ConfusionMatrixMetric
from mixtrain.nn.metrics.error import MAE, MSE
from mixtrain.nn.metrics.factory import as_metrics, get_metric_fn, names
from mixtrain.nn.metrics.keras_metric import KerasMetric
from mixtrain.nn.metrics.loss import Loss
from mixtrain.nn.metrics.metric import Metric, MetricLike, rearrange_inputs
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
