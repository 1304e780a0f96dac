"""Data for training, with MindSpore's names: sources, the steps between them and the model, and samplers."""

from mixtrain.dataset import config
from mixtrain.dataset.batch import BatchInfo
from mixtrain.dataset.dataset import Dataset
from mixtrain.dataset.dataset import zip_datasets as zip
from mixtrain.dataset.generator_dataset import GeneratorDataset
from mixtrain.dataset.numpy_slices_dataset import NumpySlicesDataset
from mixtrain.dataset.sampler import Sampler
from mixtrain.dataset.samplers import (
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    SubsetSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchInfo",
    "Dataset",
    "DistributedSampler",
    "GeneratorDataset",
    "NumpySlicesDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "SubsetSampler",
    "WeightedRandomSampler",
    "config",
    "zip",
]
