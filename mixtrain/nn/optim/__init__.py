"""Optimizers: MindSpore's update rules and parameter groups, and the driver that also takes Keras's optimizers."""

from mixtrain.nn.optim.adam import Adam
from mixtrain.nn.optim.adam_weight_decay import AdamWeightDecay
from mixtrain.nn.optim.momentum import Momentum
from mixtrain.nn.optim.optimizer import Optimizer
from mixtrain.nn.optim.schedule import LearningRateSchedule
from mixtrain.nn.optim.sgd import SGD

__all__ = ["SGD", "Adam", "AdamWeightDecay", "LearningRateSchedule", "Momentum", "Optimizer"]
