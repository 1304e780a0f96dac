"""Layers: cells with MindSpore's names, arguments, defaults and initial values."""

from mixtrain.lazy_names import serve_names
from mixtrain.nn.layer.activation import get_activation
from mixtrain.nn.layer.adaptive_pool import AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveMaxPool1d
from mixtrain.nn.layer.arithmetic import MatMul, Norm, OneHot, Range
from mixtrain.nn.layer.avg_pool import AvgPool1d, AvgPool2d
from mixtrain.nn.layer.batch_norm import BatchNorm1d, BatchNorm2d
from mixtrain.nn.layer.batch_norm3d import BatchNorm3d
from mixtrain.nn.layer.bn_act import Conv2dBnAct, DenseBnAct
from mixtrain.nn.layer.channel_dropout import Dropout1d, Dropout2d, Dropout3d
from mixtrain.nn.layer.clip_by_norm import ClipByNorm
from mixtrain.nn.layer.container import CellDict, CellList, SequentialCell
from mixtrain.nn.layer.conv import Conv1d, Conv2d, Conv3d
from mixtrain.nn.layer.conv_transpose import Conv1dTranspose, Conv2dTranspose, Conv3dTranspose
from mixtrain.nn.layer.dense import BiDense, Dense
from mixtrain.nn.layer.dropout import Dropout
from mixtrain.nn.layer.elementwise import (
    CELU, ELU, GELU, FastGelu, HShrink, HSigmoid, HSwish, Hardtanh, LeakyReLU, LogSigmoid, Mish, RReLU, ReLU, ReLU6,
    SeLU, SiLU, Sigmoid, SoftShrink, Softsign, Tanh, Tanhshrink, Threshold,
)
from mixtrain.nn.layer.embedding import Embedding, EmbeddingLookup, MultiFieldEmbeddingLookup
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
from mixtrain.nn.layer.parameter_update import ParameterUpdate
from mixtrain.nn.layer.time_distributed import TimeDistributed
from mixtrain.nn.layer.attention import MultiheadAttention
from mixtrain.nn.layer.sides import (
    ConstantPad1d, ConstantPad2d, ConstantPad3d, ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d,
    ReplicationPad2d, ReplicationPad3d, ZeroPad2d,
)
from mixtrain.nn.layer.small import (
    ChannelShuffle, DiGamma, IGamma, L1Regularizer, LBeta, LGamma, Moments, ReduceLogSumExp, Unflatten,
)
from mixtrain.nn.layer.transformer import (
    Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer,
)
from mixtrain.nn.layer.operation_cells import (
    AdaptiveAvgPool3d, AdaptiveMaxPool2d, AdaptiveMaxPool3d, AvgPool3d, CTCLoss, CentralCrop, FractionalMaxPool2d,
    FractionalMaxPool3d, GaussianNLLLoss, ImageGradients, LPPool1d, LPPool2d, LRN, MaxPool3d, MaxUnpool1d, MaxUnpool2d,
    MaxUnpool3d, MultiLabelSoftMarginLoss, MultiMarginLoss, MultilabelMarginLoss, PoissonNLLLoss,
    SparseTensorDenseMatmul, SparseToDense, Tril, TripletMarginLoss, Triu, Unfold,
)
from mixtrain.nn.layer.image_similarity import MSSSIM, PSNR, SSIM

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "BiDense",
    "CELU", "CTCLoss", "CellDict", "CellList", "CentralCrop", "ChannelShuffle", "ClipByNorm", "ConstantPad1d",
    "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv1dTranspose", "Conv2d", "Conv2dBnAct", "Conv2dTranspose", "Conv3d",
    "Conv3dTranspose", "Dense", "DenseBnAct", "DiGamma", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU",
    "Embedding", "EmbeddingLookup", "FastGelu", "Flatten", "FractionalMaxPool2d", "FractionalMaxPool3d", "GELU", "GLU",
    "GRU", "GRUCell", "GaussianNLLLoss", "GroupNorm", "HShrink", "HSigmoid", "HSwish", "Hardtanh", "IGamma", "Identity",
    "ImageGradients", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "L1Regularizer", "LBeta", "LGamma",
    "LPPool1d", "LPPool2d", "LRN", "LSTM", "LSTMCell", "LayerNorm", "LeakyReLU", "LogSigmoid", "LogSoftmax", "MSSSIM",
    "MatMul", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "Mish", "Moments",
    "MultiFieldEmbeddingLookup", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "MultiheadAttention",
    "MultilabelMarginLoss", "Norm", "OneHot", "PReLU", "PSNR", "Pad", "ParameterUpdate", "PixelShuffle",
    "PixelUnshuffle", "PoissonNLLLoss", "RNN", "RNNCell", "RReLU", "Range", "ReLU", "ReLU6", "ReduceLogSumExp",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ResizeBilinear", "SSIM", "SeLU", "SequentialCell", "SiLU", "Sigmoid", "SoftShrink", "Softmax", "Softmax2d",
    "Softmin", "Softsign", "SparseTensorDenseMatmul", "SparseToDense", "SyncBatchNorm", "Tanh", "Tanhshrink",
    "Threshold", "TimeDistributed", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer", "Tril", "TripletMarginLoss", "Triu", "Unflatten", "Unfold",
    "Upsample", "ZeroPad2d", "get_activation",
]


serve_names(__name__)
