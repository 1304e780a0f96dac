"""Layers: cells with MindSpore's names, arguments, defaults and initial values."""

from mixtrain.nn.layer.activation import get_activation
from mixtrain.nn.layer.adaptive_pool import AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveMaxPool1d
from mixtrain.nn.layer.arithmetic import MatMul, Norm, OneHot, Range
from mixtrain.nn.layer.avg_pool import AvgPool1d, AvgPool2d
from mixtrain.nn.layer.batch_norm import BatchNorm1d, BatchNorm2d
from mixtrain.nn.layer.batch_norm3d import BatchNorm3d
from mixtrain.nn.layer.bn_act import Conv2dBnAct, DenseBnAct
from mixtrain.nn.layer.channel_dropout import Dropout1d, Dropout2d, Dropout3d
from mixtrain.nn.layer.clip_by_norm import ClipByNorm
from mixtrain.nn.layer.container import CellList, SequentialCell
from mixtrain.nn.layer.conv import Conv1d, Conv2d, Conv3d
from mixtrain.nn.layer.conv_transpose import Conv1dTranspose, Conv2dTranspose, Conv3dTranspose
from mixtrain.nn.layer.dense import Dense
from mixtrain.nn.layer.dropout import Dropout
from mixtrain.nn.layer.elementwise import (
    CELU,
    ELU,
    GELU,
    FastGelu,
    HShrink,
    HSigmoid,
    HSwish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    Mish,
    RReLU,
    ReLU,
    ReLU6,
    SeLU,
    SiLU,
    Sigmoid,
    SoftShrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from mixtrain.nn.layer.embedding import Embedding, EmbeddingLookup
from mixtrain.nn.layer.flatten import Flatten
from mixtrain.nn.layer.group_norm import GroupNorm
from mixtrain.nn.layer.identity import Identity
from mixtrain.nn.layer.instance_norm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from mixtrain.nn.layer.layer_norm import LayerNorm
from mixtrain.nn.layer.max_pool import MaxPool1d, MaxPool2d
from mixtrain.nn.layer.padding import Pad
from mixtrain.nn.layer.pixel_shuffle import PixelShuffle, PixelUnshuffle
from mixtrain.nn.layer.prelu import PReLU
from mixtrain.nn.layer.recurrent import GRU, LSTM, RNN
from mixtrain.nn.layer.recurrent_cell import GRUCell, LSTMCell, RNNCell
from mixtrain.nn.layer.resize import ResizeBilinear, Upsample
from mixtrain.nn.layer.softmax import GLU, LogSoftmax, Softmax, Softmax2d, Softmin
from mixtrain.nn.layer.sync_batch_norm import SyncBatchNorm
from mixtrain.nn.layer.attention import MultiheadAttention
from mixtrain.nn.layer.sides import (
    ConstantPad1d, ConstantPad2d, ConstantPad3d, ReflectionPad1d, ReflectionPad2d, ReflectionPad3d,
    ReplicationPad1d, ReplicationPad2d, ReplicationPad3d, ZeroPad2d,
)
from mixtrain.nn.layer.small import ChannelShuffle, DiGamma, L1Regularizer, LGamma, ReduceLogSumExp, Unflatten

__all__ = [
    "ChannelShuffle",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "DiGamma",
    "L1Regularizer",
    "LGamma",
    "MultiheadAttention",
    "ReduceLogSumExp",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "Unflatten",
    "ZeroPad2d",
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "CellList",
    "ClipByNorm",
    "Conv1d",
    "Conv1dTranspose",
    "Conv2d",
    "Conv2dBnAct",
    "Conv2dTranspose",
    "Conv3d",
    "Conv3dTranspose",
    "Dense",
    "DenseBnAct",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Embedding",
    "EmbeddingLookup",
    "FastGelu",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "HShrink",
    "HSigmoid",
    "HSwish",
    "Hardtanh",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LSTMCell",
    "LayerNorm",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "MatMul",
    "MaxPool1d",
    "MaxPool2d",
    "Mish",
    "Norm",
    "OneHot",
    "PReLU",
    "Pad",
    "PixelShuffle",
    "PixelUnshuffle",
    "RNNCell",
    "RReLU",
    "Range",
    "ReLU",
    "ReLU6",
    "ResizeBilinear",
    "SeLU",
    "SequentialCell",
    "SiLU",
    "Sigmoid",
    "SoftShrink",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softsign",
    "SyncBatchNorm",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "Upsample",
    "get_activation",
]
