"""MnistDataset and FashionMnistDataset: small gray images in IDX files."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Sequence

import numpy as np

from mixtrain.dataset.array_files_dataset import ArrayFilesDataset, Usage, join
from mixtrain.dataset.source_files import first_existing, foreign_file, missing_file, read_idx

# In the order of the rows of "all".
_PARTS = {"test": "t10k", "train": "train"}


class MnistDataset(ArrayFilesDataset):
    """The handwritten digits of MNIST, from the four IDX files, plain or as .gz.

    The columns are image, uint8 (28, 28, 1), and label, uint32. "all" means the test rows, then the training rows; if
    the folder has only one of the two parts, that one.

    Args:
        usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: As in `Cifar10Dataset`.
        dataset_dir: The folder of train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and
            t10k-labels-idx1-ubyte, or of the part that `usage` names.

    Example:
        >>> MnistDataset("no/such/folder")
        Traceback (most recent call last):
        ...
        ValueError: MnistDataset: dataset_dir must be a folder that exists; got 'no/such/folder'. Write the path of
        the folder that holds the files.
    """

    _COLUMNS = ("image", "label")

    @staticmethod
    def _read(where: str, folder: pathlib.Path, usage: Usage) -> Sequence[np.ndarray]:
        parts: list[str] = [usage]
        if usage == "all":
            parts = [part for part in _PARTS if first_existing(folder, _all_names(_PARTS[part]))] or ["train"]
        images, labels = zip(*(_read_part(where, folder, _PARTS[part]) for part in parts), strict=True)
        return join(images), join(labels)


class FashionMnistDataset(MnistDataset):
    """The articles of clothing of Fashion-MNIST, from files with the names and the format of MNIST's.

    The columns are image, uint8 (28, 28, 1), and label, uint32.

    Args: dataset_dir, usage, num_samples, num_parallel_workers, shuffle, sampler, num_shards, shard_id, cache: As in
        `MnistDataset`.

    Example:
        >>> FashionMnistDataset.__mro__[1] is MnistDataset
        True
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
