"""`Model`, its training loop, data adapters, callbacks and metrics."""

from typing import TYPE_CHECKING

from mixtrain.lazy_names import serve_names
from mixtrain.train import callback
from mixtrain.train.calibration import calibrate_loss_scale
from mixtrain.train.callback import (
    BackupAndRestore, Callback, CheckpointConfig, LossMonitor, LossScaleMonitor, MetricsLogger, ModelCheckpoint,
    OverflowMonitor, RangeMonitor,
)
from mixtrain.train.history import EpochHistory
from mixtrain.train.model import Model
from mixtrain.train.records import StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext
from mixtrain.train.suggestion import suggest_rules
from mixtrain.train.tuning import tune

if TYPE_CHECKING:
    from mixtrain.compat.mindspore.train import (
        EarlyStopping, History, LambdaCallback, LearningRateScheduler, OnRequestExit, ReduceLROnPlateau,
        SummaryCollector, SummaryRecord, TimeMonitor,
    )
    from mixtrain.nn import metrics
    from mixtrain.nn.metrics import (
        F1, MAE, MSE, ROC, Accuracy, BleuScore, ConfusionMatrix, ConfusionMatrixMetric, CosineSimilarity, Dice, Fbeta,
        HausdorffDistance, Loss, MeanSurfaceDistance, Metric, OcclusionSensitivity, Perplexity, Precision, Recall,
        RootMeanSquareDistance, Top1CategoricalAccuracy, Top5CategoricalAccuracy, TopKCategoricalAccuracy, auc,
        get_metric_fn, names, rearrange_inputs,
    )

__all__ = [
    "F1", "MAE", "MSE", "ROC", "Accuracy", "BackupAndRestore", "BleuScore", "Callback", "CallbackArguments",
    "CheckpointConfig", "ConfusionMatrix", "ConfusionMatrixMetric", "CosineSimilarity", "Dice", "EarlyStopping",
    "EpochHistory", "Fbeta", "History", "LambdaCallback", "LearningRateScheduler", "Loss", "LossMonitor",
    "LossScaleMonitor", "Metric", "Model", "MetricsLogger", "ModelCheckpoint", "OnRequestExit", "OverflowMonitor",
    "Perplexity", "Precision", "Recall", "RangeMonitor", "ReduceLROnPlateau", "RunContext", "StepRecords",
    "SummaryCollector", "SummaryRecord", "TimeMonitor", "Top1CategoricalAccuracy", "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy", "auc", "calibrate_loss_scale", "callback", "get_metric_fn", "metrics", "names",
    "rearrange_inputs", "suggest_rules", "tune", "HausdorffDistance", "MeanSurfaceDistance", "OcclusionSensitivity",
    "RootMeanSquareDistance",
]

# MindSpore has the names of its metrics here, too, and callbacks that only its scripts use.
serve_names(__name__, {
    **{name: "mixtrain.nn.metrics" for name in __all__ if name not in globals()}, "metrics": "mixtrain.nn.metrics:",
    **dict.fromkeys((
        "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "OnRequestExit", "ReduceLROnPlateau",
        "SummaryCollector", "SummaryRecord", "TimeMonitor",
    ), "mixtrain.compat.mindspore.train"),
})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
