"""The facade and what turns it: Model, its loop, feeds, callbacks and metrics."""

from mixtrain.train import callback, metrics
from mixtrain.train.callback import Callback, LossMonitor, LossScaleMonitor, TimeMonitor
from mixtrain.train.history import EpochHistory
from mixtrain.train.metrics import (
    MAE,
    MSE,
    Accuracy,
    Loss,
    Metric,
    Top1CategoricalAccuracy,
    Top5CategoricalAccuracy,
    TopKCategoricalAccuracy,
    get_metric_fn,
    names,
    rearrange_inputs,
)
from mixtrain.train.model import Model
from mixtrain.train.records import StepRecords
from mixtrain.train.run_context import CallbackArguments, RunContext

__all__ = [
    "MAE",
    "MSE",
    "Accuracy",
    "Callback",
    "CallbackArguments",
    "EpochHistory",
    "Loss",
    "LossMonitor",
    "LossScaleMonitor",
    "Metric",
    "Model",
    "RunContext",
    "StepRecords",
    "TimeMonitor",
    "Top1CategoricalAccuracy",
    "Top5CategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "callback",
    "get_metric_fn",
    "metrics",
    "names",
    "rearrange_inputs",
]
