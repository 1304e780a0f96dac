"""Optimizers with `param_groups`, as in PyTorch, and their learning-rate schedulers."""

from mixtrain.experimental.optim import lr_scheduler
from mixtrain.experimental.optim.optimizer import Optimizer
from mixtrain.experimental.optim.rules import (
    ASGD, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop,
)

__all__ = [
    "ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop",
    "lr_scheduler",
]
