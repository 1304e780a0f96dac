"""Optimizers with MindSpore's update rules and parameter groups, and a driver interface shared with Keras's."""

from mixtrain.optim import cell_driver as _cell_driver  # noqa: F401  Registers the driver.
from mixtrain.optim.ada_delta import Adadelta
from mixtrain.optim.ada_factor import AdaFactor
from mixtrain.optim.ada_grad import Adagrad
from mixtrain.optim.ada_max import AdaMax
from mixtrain.optim.adam import Adam, AdamOffload
from mixtrain.optim.adam_weight_decay import AdamWeightDecay
from mixtrain.optim.asgd import ASGD
from mixtrain.optim.ftrl import FTRL
from mixtrain.optim.lamb import Lamb
from mixtrain.optim.lars import LARS
from mixtrain.optim.learning_rate_schedule import LearningRateSchedule
from mixtrain.optim.momentum import Momentum
from mixtrain.optim.optimizer import Optimizer, opt_init_args_register
from mixtrain.optim.proximal_ada_grad import ProximalAdagrad
from mixtrain.optim.rmsprop import RMSProp
from mixtrain.optim.rprop import Rprop
from mixtrain.optim.sgd import SGD
from mixtrain.optim.thor import thor

__all__ = [
    "ASGD", "FTRL", "LARS", "SGD", "AdaFactor", "AdaMax", "Adadelta", "Adagrad", "Adam", "AdamOffload",
    "AdamWeightDecay", "Lamb", "LearningRateSchedule", "Momentum", "Optimizer", "ProximalAdagrad", "RMSProp", "Rprop",
    "opt_init_args_register", "thor",
]
