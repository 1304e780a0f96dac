"""The input pipeline of a MindSpore script, on MindSpore's `dataset` or, with the import swapped, on mixtrain's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from benchmarks.contender import Contender, Round
from benchmarks.pictures import DEVIATION, MEAN, PICTURES, epochs_of, folder_of
from benchmarks.workloads import Workload


def build(contender: Contender, workload: Workload, steps: int) -> Callable[[], Round]:
    """Build the files; return a function that creates the pipeline."""
    name = "mindspore" if contender.kind == "mindspore data" else "mixtrain"
    dataset, vision, transforms = (
        importlib.import_module(f"{name}.{part}") for part in ("dataset", "dataset.vision", "dataset.transforms")
    )
    types: Any = importlib.import_module(name)
    folder = folder_of(workload)

    def prepare() -> Round:
        operations = [
            vision.Decode(),
            vision.Resize((PICTURES[workload.network].resized,) * 2),
            vision.RandomCrop(workload.shape[:2]),
            vision.RandomHorizontalFlip(0.5),
            vision.Normalize([255 * value for value in MEAN], [255 * value for value in DEVIATION]),
        ]
        data = dataset.ImageFolderDataset(folder, shuffle=True)
        data = data.map(operations, "image").map(transforms.TypeCast(types.int32), "label")
        data = data.batch(workload.batch, drop_remainder=True).repeat(epochs_of(workload, steps))

        def run() -> None:
            iterator = data.create_tuple_iterator(num_epochs=1, output_numpy=True)
            for _, (images, labels) in zip(range(steps), iterator, strict=False):
                assert images.shape == (workload.batch, *workload.shape) and len(labels) == workload.batch

        return run

    return prepare
