"""Cells, losses, optimizers and train steps, under MindSpore's names."""

from mixtrain.lazy_names import serve_names
from mixtrain.cell.cell import Cell, KerasCell
from mixtrain.cell.layer import CellLayer
from mixtrain.compat.mindspore.unsupported import GraphCell
from mixtrain.compat.oneflow.graph import Graph
from mixtrain.nn.wrap.update_cell import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell
from mixtrain.nn.layer import (
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d,
    AvgPool1d, AvgPool2d, AvgPool3d, BatchNorm1d, BatchNorm2d, BatchNorm3d, BiDense, CELU, CTCLoss, CellDict, CellList,
    CentralCrop, ChannelShuffle, ClipByNorm, ConstantPad1d, ConstantPad2d, ConstantPad3d, Conv1d, Conv1dTranspose,
    Conv2d, Conv2dBnAct, Conv2dTranspose, Conv3d, Conv3dTranspose, Dense, DenseBnAct, DiGamma, Dropout, Dropout1d,
    Dropout2d, Dropout3d, ELU, Embedding, EmbeddingLookup, FastGelu, Flatten, FractionalMaxPool2d, FractionalMaxPool3d,
    GELU, GLU, GRU, GRUCell, GaussianNLLLoss, GroupNorm, HShrink, HSigmoid, HSwish, Hardtanh, IGamma, Identity,
    ImageGradients, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, L1Regularizer, LBeta, LGamma, LPPool1d, LPPool2d,
    LRN, LSTM, LSTMCell, LayerNorm, LeakyReLU, LogSigmoid, LogSoftmax, MSSSIM, MatMul, MaxPool1d, MaxPool2d, MaxPool3d,
    MaxUnpool1d, MaxUnpool2d, MaxUnpool3d, Mish, Moments, MultiFieldEmbeddingLookup, MultiLabelSoftMarginLoss,
    MultiMarginLoss, MultiheadAttention, MultilabelMarginLoss, Norm, OneHot, PReLU, PSNR, Pad, ParameterUpdate,
    PixelShuffle, PixelUnshuffle, PoissonNLLLoss, RNN, RNNCell, RReLU, Range, ReLU, ReLU6, ReduceLogSumExp,
    ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d, ReplicationPad3d,
    ResizeBilinear, SSIM, SeLU, SequentialCell, SiLU, Sigmoid, SoftShrink, Softmax, Softmax2d, Softmin, Softsign,
    SparseTensorDenseMatmul, SparseToDense, SyncBatchNorm, Tanh, Tanhshrink, Threshold, TimeDistributed, Transformer,
    TransformerDecoder, TransformerDecoderLayer, TransformerEncoder, TransformerEncoderLayer, Tril, TripletMarginLoss,
    Triu, Unflatten, Unfold, Upsample, ZeroPad2d, get_activation,
)
from mixtrain.nn.loss import (
    BCELoss, BCEWithLogitsLoss, CosineEmbeddingLoss, CrossEntropyLoss, DiceLoss, FocalLoss, HingeEmbeddingLoss,
    HuberLoss, KLDivLoss, L1Loss, LossBase, MAELoss, MSELoss, MarginRankingLoss, MultiClassDiceLoss, NLLLoss, RMSELoss,
    SampledSoftmaxLoss, SmoothL1Loss, SoftMarginLoss, SoftmaxCrossEntropyWithLogits, TripletMarginWithDistanceLoss,
    _Loss,
)
from mixtrain.nn.metrics import (
    F1, MAE, MSE, ROC, Accuracy, BleuScore, ConfusionMatrix, ConfusionMatrixMetric, CosineSimilarity, Dice, Fbeta,
    HausdorffDistance, Loss, MeanSurfaceDistance, Metric, OcclusionSensitivity, Perplexity, Precision, Recall,
    RootMeanSquareDistance, Top1CategoricalAccuracy, Top5CategoricalAccuracy, TopKCategoricalAccuracy, auc,
    get_metric_fn, names, rearrange_inputs,
)
from mixtrain.optim import (
    ASGD, FTRL, LARS, SGD, Adadelta, AdaFactor, Adagrad, Adam, AdaMax, AdamOffload, AdamWeightDecay, Lamb, Momentum,
    Optimizer, ProximalAdagrad, RMSProp, Rprop, opt_init_args_register, thor,
)
from mixtrain.optim.dynamic_lr import (
    cosine_decay_lr, exponential_decay_lr, inverse_decay_lr, natural_exp_decay_lr, piecewise_constant_lr,
    polynomial_decay_lr, warmup_lr,
)
from mixtrain.optim.learning_rate_schedule import (
    CosineDecayLR, ExponentialDecayLR, InverseDecayLR, LearningRateSchedule, NaturalExpDecayLR, PolynomialDecayLR,
    WarmUpLR,
)
from mixtrain.nn.wrap.forward_value_and_grad import ForwardValueAndGrad, WithGradCell
from mixtrain.nn.wrap.jacobian_products import Jvp, Vjp
from mixtrain.nn.wrap.grad_reducer import DistributedGradReducer
from mixtrain.nn.wrap.loss_cell import WithEvalCell, WithLossCell
from mixtrain.nn.wrap.micro_batches import MicroBatchInterleaved, PipelineCell
from mixtrain.nn.wrap.train_cell import TrainOneStepCell, TrainOneStepWithLossScaleCell

__all__ = [
    "ASGD", "Accuracy", "AdaFactor", "AdaMax", "Adadelta", "Adagrad", "Adam", "AdamOffload", "AdamWeightDecay",
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BCELoss", "BCEWithLogitsLoss", "BatchNorm1d",
    "BatchNorm2d", "BatchNorm3d", "BiDense", "BleuScore", "CELU", "CTCLoss", "Cell", "CellDict", "CellLayer",
    "CellList", "CentralCrop", "ChannelShuffle", "ClipByNorm", "ConfusionMatrix", "ConfusionMatrixMetric",
    "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv1dTranspose", "Conv2d", "Conv2dBnAct",
    "Conv2dTranspose", "Conv3d", "Conv3dTranspose", "CosineDecayLR", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "Dense", "DenseBnAct", "DiGamma", "Dice", "DiceLoss", "DistributedGradReducer", "Dropout",
    "Dropout1d", "Dropout2d", "Dropout3d", "DynamicLossScaleUpdateCell", "ELU", "Embedding", "EmbeddingLookup",
    "ExponentialDecayLR", "F1", "FTRL", "FastGelu", "Fbeta", "FixedLossScaleUpdateCell", "Flatten", "FocalLoss",
    "ForwardValueAndGrad", "FractionalMaxPool2d", "FractionalMaxPool3d", "GELU", "GLU", "GRU", "GRUCell",
    "GaussianNLLLoss", "Graph", "GraphCell", "GroupNorm", "HShrink", "HSigmoid", "HSwish", "Hardtanh",
    "HausdorffDistance", "HingeEmbeddingLoss", "HuberLoss", "IGamma", "Identity", "ImageGradients", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "InverseDecayLR", "Jvp", "KLDivLoss", "KerasCell", "L1Loss", "L1Regularizer",
    "LARS", "LBeta", "LGamma", "LPPool1d", "LPPool2d", "LRN", "LSTM", "LSTMCell", "Lamb", "LayerNorm", "LeakyReLU",
    "LearningRateSchedule", "LogSigmoid", "LogSoftmax", "Loss", "LossBase", "MAE", "MAELoss", "MSE", "MSELoss",
    "MSSSIM", "MarginRankingLoss", "MatMul", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d", "MeanSurfaceDistance", "Metric", "MicroBatchInterleaved", "Mish", "Moments", "Momentum",
    "MultiClassDiceLoss", "MultiFieldEmbeddingLookup", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
    "MultiheadAttention", "MultilabelMarginLoss", "NLLLoss", "NaturalExpDecayLR", "Norm", "OcclusionSensitivity",
    "OneHot", "Optimizer", "PReLU", "PSNR", "Pad", "ParameterUpdate", "Perplexity", "PipelineCell", "PixelShuffle",
    "PixelUnshuffle", "PoissonNLLLoss", "PolynomialDecayLR", "Precision", "ProximalAdagrad", "RMSELoss", "RMSProp",
    "RNN", "RNNCell", "ROC", "RReLU", "Range", "ReLU", "ReLU6", "Recall", "ReduceLogSumExp", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "ResizeBilinear",
    "RootMeanSquareDistance", "Rprop", "SGD", "SSIM", "SampledSoftmaxLoss", "SeLU",
    "SequentialCell", "SiLU", "Sigmoid", "SmoothL1Loss",
    "SoftMarginLoss", "SoftShrink", "Softmax", "Softmax2d", "SoftmaxCrossEntropyWithLogits", "Softmin", "Softsign",
    "SparseTensorDenseMatmul", "SparseToDense", "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold", "TimeDistributed",
    "Top1CategoricalAccuracy", "Top5CategoricalAccuracy", "TopKCategoricalAccuracy", "TrainOneStepCell",
    "TrainOneStepWithLossScaleCell", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer", "Tril", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
    "Triu", "Unflatten", "Unfold", "Upsample", "Vjp", "WarmUpLR", "WithEvalCell", "WithGradCell", "WithLossCell",
    "ZeroPad2d", "_Loss", "auc", "cosine_decay_lr", "exponential_decay_lr", "get_activation", "get_metric_fn",
    "inverse_decay_lr", "names", "natural_exp_decay_lr", "opt_init_args_register", "piecewise_constant_lr",
    "polynomial_decay_lr", "rearrange_inputs", "thor", "warmup_lr",
]


serve_names(__name__, {"probability": "mixtrain.nn.probability:"})
