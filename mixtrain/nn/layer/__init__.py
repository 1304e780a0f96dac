"""Layers: cells with MindSpore's names, arguments, defaults and initial values."""

from mixtrain.nn.layer.activation import (
    GELU,
    Identity,
    LeakyReLU,
    LogSoftmax,
    ReLU,
    ReLU6,
    Sigmoid,
    Softmax,
    Tanh,
)
from mixtrain.nn.layer.avg_pool import AvgPool2d
from mixtrain.nn.layer.batch_norm import BatchNorm1d, BatchNorm2d
from mixtrain.nn.layer.container import CellList, SequentialCell
from mixtrain.nn.layer.conv import Conv2d
from mixtrain.nn.layer.dense import Dense
from mixtrain.nn.layer.dropout import Dropout
from mixtrain.nn.layer.flatten import Flatten
from mixtrain.nn.layer.layer_norm import LayerNorm
from mixtrain.nn.layer.max_pool import MaxPool2d

__all__ = [
    "GELU",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "CellList",
    "Conv2d",
    "Dense",
    "Dropout",
    "Flatten",
    "Identity",
    "LayerNorm",
    "LeakyReLU",
    "LogSoftmax",
    "MaxPool2d",
    "ReLU",
    "ReLU6",
    "SequentialCell",
    "Sigmoid",
    "Softmax",
    "Tanh",
]
