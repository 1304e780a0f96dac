"""Cifar10Dataset and Cifar100Dataset: small color images in binary files."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence

import numpy as np

from mixtrain.dataset.array_files_dataset import ArrayFilesDataset, join
from mixtrain.dataset.source_files import foreign_file, missing_file

_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32


class Cifar10Dataset(ArrayFilesDataset):
    """The images of CIFAR-10, from the files of its binary version.

    The columns are image, uint8 (32, 32, 3), and label, uint32. "all" means the training rows, then the test rows; if
    the folder has only one of the two parts, that one.

    Args:
        dataset_dir: The folder of data_batch_1.bin to data_batch_5.bin and test_batch.bin, or of the part that `usage`
            names.
        usage: "train", "test" or "all"; None means "all".
        num_samples: Maximum number of rows in an epoch. With `shuffle` rows are sampled with replacement.
        num_parallel_workers, cache: Without effect: the files are read into memory at once.
        shuffle: Whether to shuffle the rows, in a new order in each epoch; None means True.
        sampler: A sampler or an iterable of indices, instead of `shuffle` and the shards.
        num_shards, shard_id: Number of shards that the rows are divided into, and which of them to read, from 0.

    Raises: ValueError: The folder or one of its files is missing, a file is truncated or has another format, or an
        argument has the wrong value.

    Example:
        >>> Cifar10Dataset("no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: Cifar10Dataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path of
        the folder that holds the files.
    """

    _COLUMNS = ("image", "label")

    def _read(self, where: str, folder: pathlib.Path, usage: str) -> Sequence[np.ndarray]:
        files = []
        if usage != "test":
            files += _batches(where, folder)
        if usage != "train" and (folder / "test_batch.bin").is_file():
            files.append(folder / "test_batch.bin")
        if not files:
            names = {"train": "data_batch_1.bin", "test": "test_batch.bin", "all": "data_batch_1.bin to test_batch.bin"}
            raise missing_file(where, folder, f"{names[usage]} of CIFAR-10's binary version")
        return _read_rows(where, files, labels=1)


class Cifar100Dataset(ArrayFilesDataset):
    """The images of CIFAR-100, from the files of its binary version.

    The columns are image, uint8 (32, 32, 3), coarse_label and fine_label, uint32. "all" means the test rows, then the
    training rows; if the folder has only one of the two parts, that one.

    Args:
        usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: As in `Cifar10Dataset`.
        dataset_dir: The folder of train.bin and test.bin, or of the one that `usage` names.

    Raises: ValueError: The folder or one of its files is missing, a file is truncated or has another format, or an
        argument has the wrong value.

    Example:
        >>> Cifar100Dataset("no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: Cifar100Dataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path of
        the folder that holds the files.
    """

    _COLUMNS = ("image", "coarse_label", "fine_label")

    def _read(self, where: str, folder: pathlib.Path, usage: str) -> Sequence[np.ndarray]:
        names = ("test.bin", "train.bin") if usage == "all" else (f"{usage}.bin",)
        files = [folder / name for name in names if (folder / name).is_file()]
        if not files:
            raise missing_file(where, folder, f"{' or '.join(names)} of CIFAR-100's binary version")
        return _read_rows(where, files, labels=2)


def _batches(where: str, folder: pathlib.Path) -> list[pathlib.Path]:
    """Return the files data_batch_1.bin, data_batch_2.bin, ... of the folder; a missing number is an error."""
    numbers = sorted(
        int(match[1]) for entry in folder.iterdir() if (match := re.fullmatch(r"data_batch_(\d+)\.bin", entry.name))
    )
    for expected, number in enumerate(numbers, start=1):
        if number != expected:
            raise missing_file(where, folder, f"data_batch_{expected}.bin beside data_batch_{number}.bin")
    return [folder / f"data_batch_{number}.bin" for number in numbers]


def _read_rows(where: str, files: Sequence[pathlib.Path], *, labels: int) -> Sequence[np.ndarray]:
    """Return the images of the files, channels-last, then one array for each of the `labels` bytes of a row."""
    blocks = []
    length = labels + _PIXELS
    for path in files:
        data = np.fromfile(path, np.uint8)
        if not len(data) or len(data) % length:
            raise foreign_file(
                where, path, f"rows of {length} bytes, as in CIFAR's binary version,",
                f"{len(data)} bytes: the file is cut off or of another kind",
            )
        blocks.append(data.reshape(-1, length))
    rows = join(blocks)
    images = np.ascontiguousarray(rows[:, labels:].reshape(-1, *_SHAPE).transpose(0, 2, 3, 1))
    return images, *(rows[:, column].astype(np.uint32) for column in range(labels))
