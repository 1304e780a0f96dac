"""Workloads: a network, its sample shape and batch size; imports no framework, since children import it."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

Network = Literal["mlp", "lenet", "cifar_cnn", "resnet20", "resnet50", "transformer"]
VOCABULARY = 1000


@dataclasses.dataclass(frozen=True)
class Workload:
    """A network and the shape of its batches.

    Attributes:
        title: Name in the tables.
        network: Key of the networks of `benchmarks.networks`.
        shape: Shape of a sample, images channels last.
        batch: Batch size.
        width: Units of the hidden layers of the MLP and the transformer.
        depth: Number of hidden layers of the MLP or of blocks of the transformer.
        classes: Number of classes.
        heads: Attention heads of the transformer.
    """

    title: str
    network: Network
    shape: tuple[int, ...]
    batch: int
    width: int = 0
    depth: int = 0
    classes: int = 10
    heads: int = 4

    @property
    def images(self) -> bool:
        """Whether a sample is an image."""
        return len(self.shape) == 3

    @property
    def tokens(self) -> bool:
        """Whether a sample is a sequence of token ids."""
        return self.network == "transformer"


MLP = Workload("MLP with 3 small layers, batch 32", "mlp", (64,), 32, width=64, depth=2)
LENET = Workload("LeNet-5, batch 32", "lenet", (32, 32, 1), 32)
CIFAR = Workload("CIFAR CNN, batch 64", "cifar_cnn", (32, 32, 3), 64)
RESNET = Workload("ResNet-20, batch 64", "resnet20", (32, 32, 3), 64)
TRANSFORMER = Workload("Transformer encoder of 2 blocks, batch 32", "transformer", (64,), 32, width=128, depth=2)
RESNET_128 = dataclasses.replace(RESNET, title="ResNet-20, batch 128", batch=128)
RESNET_50 = Workload("ResNet-50, 224x224, batch 128", "resnet50", (224, 224, 3), 128, classes=1000)
ENCODER = Workload(
    "Transformer encoder of 12 blocks, 768 wide, rows of 512, batch 32", "transformer", (512,), 32, 768, 12, heads=12
)
CIFAR_512 = dataclasses.replace(CIFAR, title="CIFAR CNN, batch 512", batch=512)


def arrays(workload: Workload, steps: int, *, channels_first: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return the samples and one-hot labels of some steps, batch by batch along the first axis.

    Args:
        workload: The workload.
        steps: Number of batches.
        channels_first: Whether images are (channels, height, width).

    Returns:
        Arrays (steps, batch, ...): float32 samples (int32 tokens) and float32 labels (steps, batch, classes).
    """
    random = np.random.default_rng(0)
    shape = (steps, workload.batch, *workload.shape)
    if workload.tokens:
        x: np.ndarray = random.integers(0, VOCABULARY, shape, np.int32)
    else:
        x = random.standard_normal(shape, np.float32)
    if channels_first and workload.images:
        x = np.ascontiguousarray(np.moveaxis(x, -1, 2))
    labels = random.integers(0, workload.classes, shape[:2])
    return x, np.eye(workload.classes, dtype=np.float32)[labels]
