"""Losses: cells that compute in float32, with MindSpore's names, arguments and defaults."""

from mixtrain.nn.loss.base import LossBase
from mixtrain.nn.loss.binary_cross_entropy import BCELoss, BCEWithLogitsLoss
from mixtrain.nn.loss.cross_entropy import CrossEntropyLoss
from mixtrain.nn.loss.regression import L1Loss, MSELoss
from mixtrain.nn.loss.softmax_cross_entropy import SoftmaxCrossEntropyWithLogits

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "L1Loss",
    "LossBase",
    "MSELoss",
    "SoftmaxCrossEntropyWithLogits",
]
