"""Probability distributions, bijectors and Bayesian layers, under MindSpore's names."""

from mixtrain.lazy_names import serve_names
from mixtrain.nn.probability import bijector, distribution

__all__ = ["bijector", "distribution"]


serve_names(__name__, {"bnn_layers": "mixtrain.nn.probability.bnn_layers:"})
