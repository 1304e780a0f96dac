"""Losses: cells that compute in float32, with MindSpore's names, arguments and defaults."""

from mixtrain.lazy_names import serve_names
from mixtrain.nn.loss.base import LossBase, _Loss
from mixtrain.nn.loss.binary_cross_entropy import BCELoss, BCEWithLogitsLoss
from mixtrain.nn.loss.cross_entropy import CrossEntropyLoss
from mixtrain.nn.loss.likelihood import KLDivLoss, NLLLoss
from mixtrain.nn.loss.margin import (
    CosineEmbeddingLoss, HingeEmbeddingLoss, MarginRankingLoss, SoftMarginLoss, TripletMarginWithDistanceLoss,
)
from mixtrain.nn.loss.regression import HuberLoss, L1Loss, MAELoss, MSELoss, RMSELoss, SmoothL1Loss
from mixtrain.nn.loss.sampled_softmax import SampledSoftmaxLoss
from mixtrain.nn.loss.segmentation import DiceLoss, FocalLoss, MultiClassDiceLoss
from mixtrain.nn.loss.softmax_cross_entropy import SoftmaxCrossEntropyWithLogits

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "DiceLoss", "FocalLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LossBase", "MAELoss", "MSELoss", "MarginRankingLoss",
    "MultiClassDiceLoss", "NLLLoss", "RMSELoss", "SampledSoftmaxLoss", "SmoothL1Loss", "SoftMarginLoss",
    "SoftmaxCrossEntropyWithLogits", "TripletMarginWithDistanceLoss", "_Loss",
]


serve_names(__name__)
