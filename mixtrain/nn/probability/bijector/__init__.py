"""Invertible functions of tensors, under MindSpore's names."""

from mixtrain.lazy_names import serve_names
from mixtrain.nn.probability.bijector.bijector import Bijector
from mixtrain.nn.probability.bijector.bijectors import (
    Exp,
    GumbelCDF,
    Invert,
    PowerTransform,
    ScalarAffine,
    Softplus,
)

__all__ = ["Bijector", "Exp", "GumbelCDF", "Invert", "PowerTransform", "ScalarAffine", "Softplus"]


serve_names(__name__)
