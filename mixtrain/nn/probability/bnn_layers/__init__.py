"""Layers of Bayesian networks, under MindSpore's names."""

from mixtrain.lazy_names import serve_names
from mixtrain.nn.probability.bnn_layers.layers import ConvReparam, DenseLocalReparam, DenseReparam, WithBNNLossCell
from mixtrain.nn.probability.bnn_layers.normal import NormalPosterior, NormalPrior, normal_post_fn

__all__ = [
    "ConvReparam", "DenseLocalReparam", "DenseReparam", "NormalPosterior", "NormalPrior", "WithBNNLossCell",
    "normal_post_fn",
]


serve_names(__name__)
