"""The input pipeline of torchvision's transforms in a `DataLoader` of two workers, which stay from epoch to epoch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from benchmarks.contender import Contender, Round
from benchmarks.pictures import DEVIATION, MEAN, PICTURES, epochs_of, folder_of
from benchmarks.workloads import Workload


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Return what makes the loader."""
    folder = folder_of(workload)
    torch.set_num_threads(1)

    def prepare() -> Round:
        change = transforms.Compose([
            transforms.Resize((PICTURES[workload.network].resized,) * 2),
            transforms.RandomCrop(workload.shape[:2]),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, DEVIATION),
        ])
        data = datasets.ImageFolder(folder, change)
        loader = DataLoader(
            data, workload.batch, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True
        )

        def run() -> None:
            left = steps
            for _ in range(epochs_of(workload, steps)):
                for images, _labels in loader:
                    assert len(images) == workload.batch
                    left -= 1
                    if not left:
                        return

        return run

    return prepare
