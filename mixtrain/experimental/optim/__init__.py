"""Optimizers with `param_groups`, in the manner of PyTorch's, and the schedulers of their learning rates."""

from mixtrain.experimental.optim import lr_scheduler
from mixtrain.experimental.optim.optimizer import Optimizer
from mixtrain.experimental.optim.rules import (
    ASGD, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop,
)

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop",
    "lr_scheduler",
]
