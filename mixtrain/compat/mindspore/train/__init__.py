"""What MindSpore's `train` has besides the engine's: summaries, some callbacks, and what loops of scripts import."""

from mixtrain.compat.mindspore.train.early_stopping import EarlyStopping
from mixtrain.compat.mindspore.train.history import History
from mixtrain.compat.mindspore.train.lambda_callback import LambdaCallback
from mixtrain.compat.mindspore.train.learning_rate_scheduler import LearningRateScheduler
from mixtrain.compat.mindspore.train.on_request_exit import OnRequestExit
from mixtrain.compat.mindspore.train.reduce_lr_on_plateau import ReduceLROnPlateau
from mixtrain.compat.mindspore.train.summary_collector import SummaryCollector
from mixtrain.compat.mindspore.train.summary_record import SummaryRecord
from mixtrain.compat.mindspore.train.time_monitor import TimeMonitor

__all__ = [
    "EarlyStopping", "History", "LambdaCallback", "LearningRateScheduler", "OnRequestExit", "ReduceLROnPlateau",
    "SummaryCollector", "SummaryRecord", "TimeMonitor",
]
