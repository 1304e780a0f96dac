"""The cells that are compared with MindSpore: class, arguments and inputs, used by the recipe and the tests.

An input is (kind, *shape) or None, or a list of those for a tuple: "normal" numbers, "ids" (ints below the case's
`below`), "lengths" (ints from 1), "share" (positive rows that sum to 1), "logs" (their logarithms), "sign" (1 or -1)
and "one" (one-hot along axis 1).
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Case(NamedTuple):
    """A cell and its inputs.

    Attributes:
        name: The class.
        args: Positional arguments of the class.
        kwargs: Keyword arguments of the class.
        inputs: Inputs of the call.
        gradient: Whether gradients with respect to the first input (if floating-point) and the parameters are compared.
        below: Upper limit of "ids" and "lengths", exclusive.
        training: Whether the cell is in training mode.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: tuple[Any, ...]
    gradient: bool = False
    below: int = 4
    training: bool = False


N = "normal"


def conv1d(**kwargs: Any) -> Case:
    return Case("Conv1d", (4, 6, 3), {"has_bias": True, **kwargs}, ((N, 2, 4, 7),), True)


def back1d(**kwargs: Any) -> Case:
    return Case("Conv1dTranspose", (4, 6, 3), {"has_bias": True, **kwargs}, ((N, 2, 4, 5),), True)


def back2d(kernel: Any = 3, **kwargs: Any) -> Case:
    return Case("Conv2dTranspose", (4, 6, kernel), {"has_bias": True, **kwargs}, ((N, 2, 4, 4, 3),), True)


def conv3d(**kwargs: Any) -> Case:
    return Case("Conv3d", (2, 4, 3), {"has_bias": True, **kwargs}, ((N, 1, 2, 4, 5, 4),))


def back3d(**kwargs: Any) -> Case:
    return Case("Conv3dTranspose", (2, 4, 3), {"has_bias": True, **kwargs}, ((N, 1, 2, 3, 2, 3),))


def pool(name: str, *args: Any, **kwargs: Any) -> Case:
    return Case(name, args, kwargs, ((N, 2, 3, 7),))


def plain(name: str, *args: Any) -> Case:
    return Case(name, args, {}, ((N, 3, 5),), True)


def sequence(name: str, *inputs: Any, **kwargs: Any) -> Case:
    return Case(name, (3, 4), kwargs, ((N, 5, 2, 3), *inputs), True, 6)


def loss(name: str, *inputs: Any, below: int = 4, **kwargs: Any) -> Case:
    return Case(name, (), kwargs, inputs, True, below)


PAD1 = {"pad_mode": "pad", "padding": 1}

# Omitted, because the reference is wrong on the CPU: EmbeddingLookup's max_norm (equal rows give unequal results),
# SeLU's gradient (evaluated at another point), and SoftMarginLoss and InstanceNorm (no kernel). They are compared with
# their formulas.
LAYERS: dict[str, Case] = {
    "conv1d_same": conv1d(), "conv1d_s2": conv1d(stride=2), "conv1d_valid_d2": conv1d(pad_mode="valid", dilation=2),
    "conv1d_pad": conv1d(**PAD1), "conv1d_group": conv1d(group=2),
    "back1d_same_s2": back1d(stride=2), "back1d_valid": back1d(pad_mode="valid", stride=2),
    "back1d_pad": back1d(**PAD1, stride=2),
    "back2d_same": back2d(), "back2d_same_s2": back2d(stride=2), "back2d_same_k2_s3": back2d(2, stride=3),
    "back2d_valid_s2": back2d(pad_mode="valid", stride=2), "back2d_valid_k2_s3": back2d(2, pad_mode="valid", stride=3),
    "back2d_pad_k4_s2": back2d(4, **PAD1, stride=2), "back2d_pad_tblr": back2d(pad_mode="pad", padding=(1, 0, 0, 1)),
    "back2d_more": back2d(**PAD1, stride=2, output_padding=1), "back2d_group": back2d(group=2, stride=2),
    "back2d_rect": back2d((2, 3), stride=(1, 2)), "back2d_dilated": back2d(**PAD1, dilation=2),
    "conv3d_same": conv3d(), "conv3d_s2": conv3d(stride=2), "conv3d_valid": conv3d(pad_mode="valid"),
    "conv3d_pad": conv3d(pad_mode="pad", padding=(1, 0, 0, 1, 1, 1)), "back3d_same_s2": back3d(stride=2),
    "back3d_valid": back3d(pad_mode="valid"), "back3d_pad_s2": back3d(**PAD1, stride=2),
    "maxpool1d_valid": pool("MaxPool1d", 3, 2), "maxpool1d_same": pool("MaxPool1d", 3, 2, "same"),
    "maxpool1d_pad": pool("MaxPool1d", 3, 2, "pad", 1), "avgpool1d_valid": pool("AvgPool1d", 3, 2),
    "avgpool1d_same": pool("AvgPool1d", 3, 2, "same"), "avgpool1d_pad": pool("AvgPool1d", 2, 2, "pad", 1),
    "avgpool1d_exclude": pool("AvgPool1d", 2, 2, "pad", 1, count_include_pad=False),
    "adaptive_avg1d": Case("AdaptiveAvgPool1d", (3,), {}, ((N, 2, 3, 6),)),
    "adaptive_max1d": Case("AdaptiveMaxPool1d", (3,), {}, ((N, 2, 3, 6),)),
    "adaptive_avg2d": Case("AdaptiveAvgPool2d", ((2, 3),), {}, ((N, 2, 3, 5, 7),), True),
    "adaptive_avg2d_none": Case("AdaptiveAvgPool2d", ((None, 1),), {}, ((N, 2, 3, 5, 4),)),
    "batchnorm3d": Case("BatchNorm3d", (3,), {}, ((N, 2, 3, 2, 2, 3),)),
    "batchnorm3d_train": Case("BatchNorm3d", (3,), {}, ((N, 2, 3, 2, 2, 3),), training=True),
    "groupnorm": Case("GroupNorm", (2, 4), {}, ((N, 2, 4, 3, 3),), True),
    "groupnorm_one": Case("GroupNorm", (1, 4), {"eps": 1e-3}, ((N, 2, 4, 5),)),
    "groupnorm_each": Case("GroupNorm", (4, 4), {}, ((N, 2, 4, 3, 3),), True),
    "embedding": Case("Embedding", (5, 3), {}, (("ids", 2, 4),), True, 5),
    "embedding_one_hot": Case("Embedding", (5, 3), {"use_one_hot": True}, (("ids", 2, 4),), True, 5),
    "embedding_lookup": Case("EmbeddingLookup", (5, 3), {}, (("ids", 2, 4),), False, 5),
    "lstm": sequence("LSTM"), "lstm_no_bias": sequence("LSTM", has_bias=False),
    "lstm_state": sequence("LSTM", [(N, 1, 2, 4), (N, 1, 2, 4)]),
    "lstm_deep_both": sequence("LSTM", num_layers=2, bidirectional=True),
    "lstm_lengths": sequence("LSTM", None, ("lengths", 2), bidirectional=True),
    "lstm_batch_first": sequence("LSTM", [(N, 1, 5, 4), (N, 1, 5, 4)], batch_first=True),
    "gru": sequence("GRU"), "gru_deep_both": sequence("GRU", num_layers=2, bidirectional=True),
    "gru_lengths": sequence("GRU", (N, 1, 2, 4), ("lengths", 2)),
    "rnn": sequence("RNN"), "rnn_relu_both": sequence("RNN", bidirectional=True, nonlinearity="relu"),
    "lstm_cell": Case("LSTMCell", (3, 4), {}, ((N, 2, 3), [(N, 2, 4), (N, 2, 4)])),
    "gru_cell": Case("GRUCell", (3, 4), {}, ((N, 2, 3), (N, 2, 4))),
    "rnn_cell": Case("RNNCell", (3, 4), {"has_bias": False, "nonlinearity": "relu"}, ((N, 2, 3), (N, 2, 4))),
    "pad": Case("Pad", (((0, 0), (1, 2)),), {}, ((N, 3, 4),)),
    "pad_image": Case("Pad", (((0, 0), (0, 0), (1, 2), (3, 0)),), {}, ((N, 1, 2, 3, 4),)),
    "pad_reflect": Case("Pad", (((1, 1), (2, 2)), "REFLECT"), {}, ((N, 3, 4),)),
    "pad_symmetric": Case("Pad", (((1, 1), (2, 2)), "SYMMETRIC"), {}, ((N, 3, 4),)),
    "prelu": Case("PReLU", (3,), {}, ((N, 2, 3, 4, 2),), True), "prelu_one": Case("PReLU", (), {}, ((N, 2, 5),), True),
    "elu": plain("ELU", 1.0), "celu": plain("CELU", 2.0), "selu": Case("SeLU", (), {}, ((N, 3, 5),)),
    "silu": plain("SiLU"), "mish": plain("Mish"), "hswish": plain("HSwish"), "hsigmoid": plain("HSigmoid"),
    "logsigmoid": plain("LogSigmoid"), "tanhshrink": plain("Tanhshrink"), "softsign": plain("Softsign"),
    "fastgelu": plain("FastGelu"), "softshrink": plain("SoftShrink", 0.3), "hshrink": plain("HShrink"),
    "hardtanh": plain("Hardtanh", -0.5, 0.8),
    "threshold": plain("Threshold", 0.2, 3.0), "leakyrelu": plain("LeakyReLU"), "softmin": plain("Softmin"),
    "logsoftmax": plain("LogSoftmax"), "glu": Case("GLU", (), {}, ((N, 3, 6),)),
    "softmax2d": Case("Softmax2d", (), {}, ((N, 2, 3, 2, 2),)),
    "clip_by_norm": Case("ClipByNorm", (), {}, ((N, 3, 4), (N, 1))),
    "norm": Case("Norm", (1,), {"keep_dims": True}, ((N, 3, 4),)), "norm_all": Case("Norm", (), {}, ((N, 3, 4),)),
    "one_hot": Case("OneHot", (), {"depth": 4, "on_value": 0.9, "off_value": 0.1}, (("ids", 3),), False, 5),
    "range": Case("Range", (1, 8, 3), {}, ()),
    "matmul": Case("MatMul", (False, True), {}, ((N, 2, 3, 4), (N, 2, 5, 4)), True),
    "matmul_vector": Case("MatMul", (), {}, ((N, 4), (N, 2, 4, 3))),
    "pixel_shuffle": Case("PixelShuffle", (2,), {}, ((N, 2, 8, 3, 2),)),
    "pixel_unshuffle": Case("PixelUnshuffle", (2,), {}, ((N, 2, 2, 4, 6),)),
    "upsample": Case("Upsample", (), {"size": (5, 7)}, ((N, 1, 2, 3, 4),)),
    "upsample_corners": Case("Upsample", ((5, 7), None, "bilinear", True), {}, ((N, 1, 2, 3, 4),)),
    "upsample_centers": Case("Upsample", ((5, 7),), {"mode": "bilinear"}, ((N, 1, 2, 3, 4),)),
    "conv2d_bn_act": Case("Conv2dBnAct", (2, 3, 3), {"has_bn": True, "activation": "relu"}, ((N, 1, 2, 4, 4),)),
    "dense_bn_act": Case("DenseBnAct", (4, 3), {"has_bn": True, "activation": "leakyrelu"}, ((N, 5, 4),)),
}

_PAIRS: dict[str, tuple[Any, ...]] = {
    "MAELoss": ((N, 3, 4), (N, 3, 4)), "SmoothL1Loss": ((N, 3, 4), (N, 3, 4)), "HuberLoss": ((N, 3, 4), (N, 3, 4)),
    "HingeEmbeddingLoss": ((N, 3, 4), ("sign", 3, 4)),
    "KLDivLoss": (("logs", 3, 4), ("share", 3, 4)), "NLLLoss": (("logs", 3, 4), ("ids", 3)),
    "CosineEmbeddingLoss": ((N, 3, 4), (N, 3, 4), ("sign", 3)),
    "MarginRankingLoss": ((N, 5), (N, 5), ("sign", 5)), "FocalLoss": ((N, 3, 4), ("ids", 3, 1)),
}

LOSSES: dict[str, Case] = {
    f"{name.lower()}_{reduction}": loss(name, *inputs, reduction=reduction)
    for name, inputs in _PAIRS.items() for reduction in ("none", "mean", "sum")
}
LOSSES |= {
    "smoothl1_beta": loss("SmoothL1Loss", (N, 3, 4), (N, 3, 4), beta=0.3),
    "huber_delta": loss("HuberLoss", (N, 3, 4), (N, 3, 4), delta=0.3),
    "kldiv_batchmean": loss("KLDivLoss", ("logs", 3, 4), ("share", 3, 4), reduction="batchmean"),
    "nll_image": loss("NLLLoss", ("logs", 2, 4, 2, 3), ("ids", 2, 2, 3)),
    "nll_ignore": loss("NLLLoss", ("logs", 3, 4), ("ids", 3), ignore_index=1),
    "cosine_margin": loss("CosineEmbeddingLoss", (N, 3, 4), (N, 3, 4), ("sign", 3), margin=0.2),
    "hinge_margin": loss("HingeEmbeddingLoss", (N, 3, 4), ("sign", 3, 4), margin=2.0),
    "focal_one_hot": loss("FocalLoss", (N, 3, 4, 2), ("one", 3, 4, 2), gamma=1.5),
    "focal_image": loss("FocalLoss", (N, 3, 4, 2, 2), ("ids", 3, 1, 2, 2)),
    "rmse": loss("RMSELoss", (N, 3, 4), (N, 3, 4)),
    "dice": loss("DiceLoss", ("share", 3, 4), ("one", 3, 4)),
    "multi_dice": loss("MultiClassDiceLoss", (N, 3, 4), ("one", 3, 4)),
    "multi_dice_ignore": loss("MultiClassDiceLoss", (N, 3, 4), ("one", 3, 4), ignore_indiex=1, activation="sigmoid"),
}

CASES = {**LAYERS, **LOSSES}
