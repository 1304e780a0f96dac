"""Transforms of any column, with MindSpore's names; those of images are in `vision`."""

from mixtrain.dataset.transforms.arrays import Concatenate, Duplicate, Fill, Mask, PadEnd, Relational, Slice, Unique
from mixtrain.dataset.transforms.compose import Compose
from mixtrain.dataset.transforms.one_hot import OneHot
from mixtrain.dataset.transforms.operation import PyTensorOperation, TensorOperation
from mixtrain.dataset.transforms.random_choice import RandomApply, RandomChoice, RandomOrder
from mixtrain.dataset.transforms.type_cast import TypeCast
from mixtrain.lazy_names import serve_names

__all__ = [
    "Compose", "Concatenate", "Duplicate", "Fill", "Mask", "OneHot", "PadEnd", "PyTensorOperation", "RandomApply",
    "RandomChoice", "RandomOrder", "Relational", "Slice", "TensorOperation", "TypeCast", "Unique",
]


serve_names(__name__)
