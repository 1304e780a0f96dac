"""Data pipelines with MindSpore's names: sources, samplers, and the steps from a source to the model."""

from mixtrain.dataset import config, text, transforms, vision
from mixtrain.dataset.batch import BatchInfo
from mixtrain.dataset.cache import DatasetCache
from mixtrain.dataset.celeba_dataset import CelebADataset
from mixtrain.dataset.cifar_dataset import Cifar10Dataset, Cifar100Dataset
from mixtrain.dataset.coco_dataset import CocoDataset
from mixtrain.dataset.config import set_seed
from mixtrain.dataset.csv_dataset import CSVDataset
from mixtrain.dataset.dataset import Dataset, zip_datasets as zip
from mixtrain.dataset.generator_dataset import GeneratorDataset
from mixtrain.dataset.image_folder_dataset import ImageFolderDataset
from mixtrain.dataset.mind_dataset import MindDataset
from mixtrain.dataset.mnist_dataset import (
    EMnistDataset, FashionMnistDataset, KMnistDataset, MnistDataset, QMnistDataset,
)
from mixtrain.dataset.numpy_slices_dataset import NumpySlicesDataset
from mixtrain.dataset.padded_dataset import PaddedDataset
from mixtrain.dataset.sampler import IterSampler, Sampler
from mixtrain.dataset.samplers import (
    DistributedSampler, PKSampler, RandomSampler, SequentialSampler, SubsetRandomSampler, SubsetSampler,
    WeightedRandomSampler,
)
from mixtrain.dataset.schema import Schema
from mixtrain.dataset.shuffle_mode import Shuffle
from mixtrain.dataset.text_file_dataset import TextFileDataset
from mixtrain.dataset.tfrecord_dataset import TFRecordDataset
from mixtrain.dataset.voc_dataset import VOCDataset
from mixtrain.lazy_names import serve_names

__all__ = [
    "BatchInfo", "CSVDataset", "CelebADataset", "Cifar100Dataset", "Cifar10Dataset", "CocoDataset", "Dataset",
    "DatasetCache", "DistributedSampler", "EMnistDataset", "FashionMnistDataset", "GeneratorDataset",
    "ImageFolderDataset", "IterSampler", "KMnistDataset", "MindDataset", "MnistDataset", "NumpySlicesDataset",
    "PKSampler", "PaddedDataset", "QMnistDataset", "RandomSampler", "Sampler", "Schema", "SequentialSampler",
    "Shuffle", "SubsetRandomSampler", "SubsetSampler", "TFRecordDataset", "TextFileDataset", "VOCDataset",
    "WeightedRandomSampler", "config", "set_seed", "text", "transforms", "vision", "zip",
]


serve_names(__name__)
