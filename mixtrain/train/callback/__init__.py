"""Callbacks: the base class, mixtrain's callbacks, the list that calls them, and adapters for Keras callbacks."""

from typing import TYPE_CHECKING

from mixtrain.lazy_names import serve_names
from mixtrain.train.callback.backup_and_restore import BackupAndRestore
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.callback.checkpoint_config import CheckpointConfig
from mixtrain.train.callback.loss_monitor import LossMonitor
from mixtrain.train.callback.loss_scale_monitor import LossScaleMonitor
from mixtrain.train.callback.loss_scale_records import LossScaleRecords
from mixtrain.train.callback.metrics_logger import MetricsLogger
from mixtrain.train.callback.model_checkpoint import ModelCheckpoint
from mixtrain.train.callback.overflow_monitor import OverflowMonitor, OverflowRecord
from mixtrain.train.callback.range_monitor import RangeMonitor

if TYPE_CHECKING:
    from mixtrain.compat.mindspore.train import (
        EarlyStopping,
        History,
        LambdaCallback,
        LearningRateScheduler,
        OnRequestExit,
        ReduceLROnPlateau,
        SummaryCollector,
        TimeMonitor,
    )

__all__ = [
    "BackupAndRestore", "Callback", "CallbackList", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback",
    "LearningRateScheduler", "LossMonitor", "LossScaleMonitor", "LossScaleRecords", "MetricsLogger", "ModelCheckpoint",
    "OnRequestExit", "OverflowMonitor", "OverflowRecord", "RangeMonitor", "ReduceLROnPlateau", "SummaryCollector",
    "TimeMonitor",
]

# Callbacks that only MindSpore's scripts use.
serve_names(__name__, {name: "mixtrain.compat.mindspore.train" for name in __all__ if name not in globals()})
