"""Optimizers: MindSpore's update rules and parameter groups, and the driver that also takes Keras's optimizers."""

from mixtrain.nn.learning_rate_schedule import LearningRateSchedule
from mixtrain.nn.optim.ada_grad import Adagrad
from mixtrain.nn.optim.adam import Adam
from mixtrain.nn.optim.adam_weight_decay import AdamWeightDecay
from mixtrain.nn.optim.ftrl import FTRL
from mixtrain.nn.optim.lamb import Lamb
from mixtrain.nn.optim.lars import LARS
from mixtrain.nn.optim.momentum import Momentum
from mixtrain.nn.optim.optimizer import Optimizer, opt_init_args_register
from mixtrain.nn.optim.rmsprop import RMSProp
from mixtrain.nn.optim.sgd import SGD
from mixtrain.nn.optim.thor import thor

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
