"""MnistDataset and its relatives: small grey pictures in IDX files."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence

import numpy as np

from mixtrain.dataset.array_files_dataset import ArrayFilesDataset, Usage, join
from mixtrain.dataset.source_files import first_existing, foreign_file, missing_file, read_idx

# In the order in which the rows of "all" come.
_PARTS = {"test": "t10k", "train": "train"}


class MnistDataset(ArrayFilesDataset):
    """The handwritten digits of MNIST, from the four IDX files, plain or as .gz.

    The columns are image, uint8 (28, 28, 1), and label, uint32. "all" gives the test rows, then those for training;
    where only one of the two parts is in the folder, that one.

    Args:
        dataset_dir: The folder that holds train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte
            and t10k-labels-idx1-ubyte, or those of the part that `usage` names.
        usage: "train", "test" or "all"; None means "all".
        num_samples: The most rows of an epoch. With `shuffle` they are drawn independently, so a row may come twice.
        num_parallel_workers: Without effect: the files are read at once into memory.
        shuffle: Whether rows come in random order, another in each epoch; None means True.
        sampler: A sampler or an iterable of indices, instead of `shuffle` and the shards.
        num_shards: Into how many shards the rows are divided; needs `shard_id`.
        shard_id: Which shard to read, from 0.
        cache: Without effect: the rows are in memory.

    Raises:
        TypeError: An argument has the wrong type.
        ValueError: The folder or one of its files is missing, a file is no IDX file or cut off, or an argument has
            the wrong value.

    Example:
        >>> MnistDataset("no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: MnistDataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path of
        the folder that holds the files.

    Source: MindSpore, `mindspore.dataset.MnistDataset`.
    """

    _COLUMNS = ("image", "label")

    @staticmethod
    def _read(where: str, folder: pathlib.Path, usage: Usage) -> Sequence[np.ndarray]:
        wanted: list[str] = list(_PARTS) if usage == "all" else [usage]
        present = [part for part in wanted if first_existing(folder, _all_names(_PARTS[part]))]
        if not present or usage != "all":
            present = wanted[-1:]
        images, labels = zip(*(_read_part(where, folder, _PARTS[part]) for part in present), strict=True)
        return join(images), join(labels)


class FashionMnistDataset(MnistDataset):
    """The articles of clothing of Fashion-MNIST, from files named and made like those of MNIST.

    The columns are image, uint8 (28, 28, 1), and label, uint32.

    Args:
        dataset_dir: The folder that holds the files; see `MnistDataset`, also for all other arguments.
        usage: "train", "test" or "all"; None means "all".
        num_samples: The most rows of an epoch.
        num_parallel_workers: Without effect.
        shuffle: Whether rows come in random order; None means True.
        sampler: A sampler or an iterable of indices.
        num_shards: Into how many shards the rows are divided; needs `shard_id`.
        shard_id: Which shard to read, from 0.
        cache: Without effect: the rows are in memory.

    Raises:
        ValueError: The folder or one of its files is missing, or a file is no IDX file or cut off.

    Example:
        >>> FashionMnistDataset.__mro__[1] is MnistDataset
        True

    Source: MindSpore, `mindspore.dataset.FashionMnistDataset`.
    """


def _names(prefix: str, kind: str, rank: int) -> Iterator[str]:
    for dot in ("-", "."):
        for suffix in ("", ".gz"):
            yield f"{prefix}-{kind}{dot}idx{rank}-ubyte{suffix}"


def _all_names(prefix: str) -> Iterator[str]:
    yield from _names(prefix, "images", 3)
    yield from _names(prefix, "labels", 1)


def _read_part(where: str, folder: pathlib.Path, prefix: str) -> tuple[np.ndarray, np.ndarray]:
    paths = []
    for kind, rank in (("images", 3), ("labels", 1)):
        names = list(_names(prefix, kind, rank))
        path = first_existing(folder, names)
        if path is None:
            raise missing_file(where, folder, f"the file {names[0]} or {names[1]}")
        paths.append(path)
    images, labels = read_idx(where, paths[0], 3), read_idx(where, paths[1], 1)
    if len(images) != len(labels):
        raise foreign_file(where, paths[1], f"{len(images)} labels, one for each image,", f"{len(labels)} labels")
    return images[..., np.newaxis], labels.astype(np.uint32)
