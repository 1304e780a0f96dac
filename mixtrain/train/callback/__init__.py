"""Callbacks: the base class, mixtrain's callbacks, the list that calls them, and adapters for Keras callbacks."""

from mixtrain.lazy_names import serve_names
from mixtrain.train.callback.backup_and_restore import BackupAndRestore
from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.callback.checkpoint_config import CheckpointConfig
from mixtrain.train.callback.early_stopping import EarlyStopping
from mixtrain.train.callback.history import History
from mixtrain.train.callback.lambda_callback import LambdaCallback
from mixtrain.train.callback.learning_rate_scheduler import LearningRateScheduler
from mixtrain.train.callback.loss_monitor import LossMonitor
from mixtrain.train.callback.loss_scale_monitor import LossScaleMonitor
from mixtrain.train.callback.loss_scale_records import LossScaleRecords
from mixtrain.train.callback.metrics_logger import MetricsLogger
from mixtrain.train.callback.model_checkpoint import ModelCheckpoint
from mixtrain.train.callback.on_request_exit import OnRequestExit
from mixtrain.train.callback.overflow_monitor import OverflowMonitor, OverflowRecord
from mixtrain.train.callback.range_monitor import RangeMonitor
from mixtrain.train.callback.reduce_lr_on_plateau import ReduceLROnPlateau
from mixtrain.train.callback.summary_collector import SummaryCollector
from mixtrain.train.callback.time_monitor import TimeMonitor

__all__ = [
    "BackupAndRestore", "Callback", "CallbackList", "CheckpointConfig", "EarlyStopping", "History", "LambdaCallback",
    "LearningRateScheduler", "LossMonitor", "LossScaleMonitor", "LossScaleRecords", "MetricsLogger", "ModelCheckpoint",
    "OnRequestExit", "OverflowMonitor", "OverflowRecord", "RangeMonitor", "ReduceLROnPlateau", "SummaryCollector",
    "TimeMonitor",
]


serve_names(__name__)
