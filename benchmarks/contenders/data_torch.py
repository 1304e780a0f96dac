"""The input pipeline of torchvision's transforms in a `DataLoader` with two persistent workers."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from benchmarks.contender import Contender, Round
from benchmarks.pictures import DEVIATION, MEAN, PICTURES, epochs_of, folder_of
from benchmarks.workloads import Workload


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build the files; return a function that creates the loader."""
    folder = folder_of(workload)
    torch.set_num_threads(1)

    def prepare() -> Round:
        transform = transforms.Compose([
            transforms.Resize((PICTURES[workload.network].resized,) * 2),
            transforms.RandomCrop(workload.shape[:2]),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, DEVIATION),
        ])
        data = datasets.ImageFolder(folder, transform)
        loader = DataLoader(
            data, workload.batch, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True
        )

        def run() -> None:
            remaining = steps
            for _ in range(epochs_of(workload, steps)):
                for images, _labels in loader:
                    assert len(images) == workload.batch
                    remaining -= 1
                    if not remaining:
                        return

        return run

    return prepare
