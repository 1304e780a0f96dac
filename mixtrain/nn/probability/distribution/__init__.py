"""Probability distributions, under MindSpore's names."""

from mixtrain.lazy_names import serve_names
from mixtrain.nn.probability.distribution.continuous import (
    Beta,
    Cauchy,
    Exponential,
    Gamma,
    HalfNormal,
    Laplace,
    Logistic,
    Normal,
    StudentT,
    Uniform,
)
from mixtrain.nn.probability.distribution.discrete import Bernoulli, Categorical, Geometric, Poisson
from mixtrain.nn.probability.distribution.distribution import Distribution
from mixtrain.nn.probability.distribution.transformed import Gumbel, LogNormal, TransformedDistribution

__all__ = [
    "Bernoulli", "Beta", "Categorical", "Cauchy", "Distribution", "Exponential", "Gamma", "Geometric", "Gumbel",
    "HalfNormal", "Laplace", "LogNormal", "Logistic", "Normal", "Poisson", "StudentT", "TransformedDistribution",
    "Uniform",
]


serve_names(__name__)
