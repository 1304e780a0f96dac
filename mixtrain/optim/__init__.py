"""Optimizers: MindSpore's update rules and parameter groups, and the driver that also takes Keras's optimizers."""

from mixtrain.optim.ada_grad import Adagrad
from mixtrain.optim.adam import Adam
from mixtrain.optim.adam_weight_decay import AdamWeightDecay
from mixtrain.optim.ftrl import FTRL
from mixtrain.optim.lamb import Lamb
from mixtrain.optim.lars import LARS
from mixtrain.optim.learning_rate_schedule import LearningRateSchedule
from mixtrain.optim.momentum import Momentum
from mixtrain.optim.optimizer import Optimizer, opt_init_args_register
from mixtrain.optim.rmsprop import RMSProp
from mixtrain.optim.sgd import SGD
from mixtrain.optim.thor import thor

__all__ = [
    "FTRL",
    "LARS",
    "SGD",
    "Adagrad",
    "Adam",
    "AdamWeightDecay",
    "Lamb",
    "LearningRateSchedule",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "opt_init_args_register",
    "thor",
]
