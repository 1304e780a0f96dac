"""Callbacks: mixtrain's base and monitors, the list that tells them, and Keras's callbacks in the same place."""

from mixtrain.train.callback.callback import Callback
from mixtrain.train.callback.callback_list import CallbackList
from mixtrain.train.callback.checkpoint_config import CheckpointConfig
from mixtrain.train.callback.loss_monitor import LossMonitor
from mixtrain.train.callback.loss_scale_monitor import LossScaleMonitor
from mixtrain.train.callback.loss_scale_records import LossScaleRecords
from mixtrain.train.callback.model_checkpoint import ModelCheckpoint
from mixtrain.train.callback.summary_collector import SummaryCollector
from mixtrain.train.callback.time_monitor import TimeMonitor

__all__ = [
    "Callback",
    "CallbackList",
    "CheckpointConfig",
    "LossMonitor",
    "LossScaleMonitor",
    "LossScaleRecords",
    "ModelCheckpoint",
    "SummaryCollector",
    "TimeMonitor",
]
